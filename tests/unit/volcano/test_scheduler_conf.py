"""The configuration file of Volcano's scheduler for its settings."""

from typing import Any

import pytest
import yaml

from components.volcano.manifests import scheduler_conf
from components.volcano.settings import VolcanoSchedulerSettings


def conf(**settings: Any) -> dict[str, Any]:
    text = scheduler_conf(VolcanoSchedulerSettings.model_validate(settings))
    return dict(yaml.safe_load(text))


def plugins(**settings: Any) -> dict[str, dict[str, Any]]:
    return {plugin["name"]: plugin for tier in conf(**settings)["tiers"] for plugin in tier["plugins"]}


def test_a_queue_reclaims_its_deserved_share_by_default() -> None:
    assert conf()["actions"] == "enqueue, allocate, backfill, reclaim"
    assert conf(actions=["allocate", "backfill"])["actions"] == "allocate, backfill"


def test_gangs_and_shares_of_queues_agree_on_evictions() -> None:
    """Only plugins of one tier decide together: with the shares in the second, a queue lost its deserved share."""
    first = [plugin["name"] for plugin in conf()["tiers"][0]["plugins"]]
    assert {"gang", "conformance", "capacity"} <= set(first)


def test_overcommit_and_shares_of_queues_decide_which_jobs_wait() -> None:
    """In the second tier it would not be asked: shares decide in the first. With `reclaim` it is off by default."""
    first = [plugin["name"] for plugin in conf(plugins={"overcommit": {"factor": 1.5}})["tiers"][0]["plugins"]]
    assert {"overcommit", "capacity"} <= set(first)
    assert plugins(plugins={"overcommit": {"factor": 1.5}})["overcommit"]["arguments"] == {"overcommit-factor": 1.5}
    assert "overcommit" not in plugins()


def test_gangs_are_not_broken_up_by_default() -> None:
    assert plugins()["gang"]["enableReclaimable"] is True
    assert plugins(plugins={"gang": {"reclaimMinimum": True}})["gang"]["enableReclaimable"] is False


def test_queues_share_by_capacity_with_parents_or_by_weight_and_never_both() -> None:
    assert plugins()["capacity"]["enableHierarchy"] is True
    assert "proportion" not in plugins()
    assert "capacity" not in plugins(queueShares="proportion")
    assert "proportion" in plugins(queueShares="proportion")


def test_gpus_count_most_when_nodes_are_filled() -> None:
    arguments = plugins()["binpack"]["arguments"]
    assert arguments["binpack.resources"] == "nvidia.com/gpu"
    assert arguments["binpack.resources.nvidia.com/gpu"] > arguments["binpack.cpu"] + arguments["binpack.memory"]
    # The opposite of filling nodes.
    assert plugins()["nodeorder"]["arguments"]["leastrequested.weight"] == 0


def test_weights_have_volcanos_names() -> None:
    weights = {"weight": 3, "cpu": 2, "memory": 0, "resources": {"nvidia.com/gpu": 7, "example.com/foo": 1}}
    assert plugins(plugins={"binpack": weights})["binpack"]["arguments"] == {
        "binpack.weight": 3,
        "binpack.cpu": 2,
        "binpack.memory": 0,
        "binpack.resources": "nvidia.com/gpu, example.com/foo",
        "binpack.resources.nvidia.com/gpu": 7,
        "binpack.resources.example.com/foo": 1,
    }
    order = plugins(plugins={"nodeOrder": {"podTopologySpread": 5}})["nodeorder"]["arguments"]
    assert order["podtopologyspread.weight"] == 5


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("priority", "priority"),
        ("gang", "gang"),
        ("conformance", "conformance"),
        ("overcommit", "overcommit"),
        ("drf", "drf"),
        ("predicates", "predicates"),
        ("nodeOrder", "nodeorder"),
        ("binpack", "binpack"),
        ("networkTopologyAware", "network-topology-aware"),
    ],
)
def test_each_plugin_can_be_disabled_or_enabled(key: str, name: str) -> None:
    assert name not in plugins(plugins={key: False})
    assert name in plugins(plugins={key: True})


def test_a_plugin_without_a_setting_is_used_unchanged() -> None:
    plugin = {"name": "sla", "arguments": {"sla-waiting-time": "1h"}}
    assert plugins(extraPlugins=[plugin, {"name": "tdm"}])["sla"] == plugin
