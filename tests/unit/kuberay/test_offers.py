"""What nodes offer: Ray's own reader of a RayCluster and ours judge generated groups equally."""

import copy
import logging
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

from kuberay.offers import fits, missing, offered, offers_of, problems_for_autoscaler
from tests.conftest import Compared

QUANTITIES = st.sampled_from(["0", "1", "500m", "2", "7.5", "16", "1Gi", "64Gi"])
LIMITS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb", "example.com/fpga"]),
    QUANTITIES,
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "num-cpus": st.sampled_from(["0", "1", "8", "1.5", "$CPUS", ""]),
        "num-gpus": st.sampled_from(["0", "1", "8", "one"]),
        "memory": st.sampled_from(["0", "1000000000", "1Gi"]),
        "resources": st.sampled_from(
            [
                "'{}'",
                "'{\"disk\": 2}'",
                '"{\\"disk\\": 2, \\"slots\\": 1}"',
                "'{\"disk\": 0.5}'",
                '{"disk": 1}',
                "'[1]'",
                "",
            ]
        ),
    },
)
OWN = st.dictionaries(st.sampled_from(["CPU", "GPU", "memory", "disk", "slots"]), QUANTITIES)


def group(limits: dict[str, str], requests: dict[str, str], params: dict[str, str], own: dict[str, str]) -> Any:
    container = {"name": "ray", "resources": {"limits": limits, "requests": requests}}
    made = {"groupName": "g", "rayStartParams": params, "template": {"spec": {"containers": [container]}}}
    return {**made, "resources": own} if own else made


GIVEN: st.SearchStrategy[Any] = st.one_of(st.tuples(PARAMS, st.just({})), st.tuples(st.just({}), OWN))
"""KubeRay refuses a group with both (validation.go: validateRayGroupResources)."""

CLUSTERS = st.lists(st.tuples(LIMITS, LIMITS, GIVEN), min_size=1, max_size=3)
"""The head and worker groups of a RayCluster."""


# 5,000 clusters in `make test-differential`.
@settings(max_examples=settings().max_examples * 5 // 3)
@given(groups=CLUSTERS)
def clusters_agree(tally: Counter[str], groups: list[Any]) -> None:
    head, *workers = [group(limits, requests, *given) for limits, requests, given in groups]
    for number, each in enumerate(workers):
        each |= {"groupName": f"g{number}", "replicas": 0, "minReplicas": 0, "maxReplicas": 2}
    spec = {"enableInTreeAutoscaling": True, "headGroupSpec": head, "workerGroupSpecs": workers}
    try:
        cluster = {"metadata": {"name": "c", "namespace": "n"}, "spec": copy.deepcopy(spec)}
        read: Any = _derive_autoscaling_config_from_ray_cr(cluster)["available_node_types"]
    except (ValueError, AssertionError):
        read = None
    problems = list(problems_for_autoscaler(spec))
    assert bool(problems) == (read is None)
    tally["refused" if problems else "accepted"] += 1
    for at, made in enumerate([head, *workers] if read is not None else ()):
        resources = read["headgroup" if at == 0 else made["groupName"]]["resources"]
        for name in ("CPU", "GPU", "memory", "disk", "slots"):
            if not known_to_one_alone(name, *groups[at][:2]):
                assert (offered(made).get(name) or 0) == (resources.get(name) or 0), name


@pytest.mark.differential
def test_rays_reader_agrees(compared: Compared) -> None:
    tally: Counter[str] = Counter()
    logging.disable(logging.ERROR)
    clusters_agree(tally)
    logging.disable(logging.NOTSET)
    compared("Ray's autoscaler", "what the nodes of a cluster offer", tally)


def test_rays_reader_ends_without_a_list_of_groups() -> None:
    head = group({"cpu": "1"}, {}, {}, {})
    spec = {"enableInTreeAutoscaling": True, "headGroupSpec": head}
    with pytest.raises(KeyError):
        _derive_autoscaling_config_from_ray_cr({"metadata": {"namespace": "n"}, "spec": spec})
    [problem] = problems_for_autoscaler(spec)
    assert problem.path == ("spec", "workerGroupSpecs")


def known_to_one_alone(name: str, limits: dict[str, str], requests: dict[str, str]) -> bool:
    """Whether the operator passes on what the reader does not see, or the reverse: a limit of zero, memory that is only
    requested, slices of a GPU, GPUs of two makers."""
    if name == "GPU":
        return bool(requests) or "nvidia.com/mig-1g.5gb" in limits or {"amd.com/gpu", "nvidia.com/gpu"} <= limits.keys()
    return "0" in (limits.get(name.lower()), requests.get(name.lower())) or (
        name == "memory" and "memory" in requests and "memory" not in limits
    )


def test_a_demand_is_compared_with_the_largest_node() -> None:
    head = offered(group({"cpu": "4", "memory": "8Gi"}, {}, {"num-cpus": "0"}, {}))
    worker = offered(group({"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}, {}, {}, {}))
    assert missing({"CPU": 16, "GPU": 2}, [head, worker]) is None
    assert missing({"CPU": 17}, [head, worker]) == ("CPU", Decimal(16))
    assert missing({"disk": 1}, [head, worker]) == ("disk", Decimal(0))
    assert missing({"node:__internal_head__": 0.001}, [head, worker]) is None  # Ray adds it to the head
    assert not fits({"CPU": 1}, head)


def test_what_only_the_pod_knows_is_enough() -> None:
    assert missing({"CPU": 500}, [offered(group({}, {}, {}, {}))]) is None
    own = {"metadata": {"annotations": {"ray.io/overwrite-container-cmd": "true"}}, "spec": {}}
    assert missing({"CPU": 500, "disk": 1}, offers_of(own)) is None


def test_ray_finds_accelerators_that_the_operator_does_not_count() -> None:
    for name, of_ray in (
        ("aws.amazon.com/neuron", "neuron_cores"),
        ("aliyun.com/gpu-mem", "GPU"),
        ("habana.ai/gaudi", "HPU"),
    ):
        offer = offered(group({"cpu": "4", name: "1"}, {}, {}, {}))
        assert missing({of_ray: 8}, [offer]) is None
        assert missing({of_ray: 8}, [offered(group({"cpu": "4"}, {}, {}, {}))])
    claimed = group({"cpu": "4"}, {}, {}, {})
    claimed["template"]["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    assert missing({"GPU": 1}, [offered(claimed)]) is None


def test_the_operator_counts_slices_of_gpus_and_accelerators() -> None:
    assert offered(group({"nvidia.com/mig-2g.10gb": "3"}, {}, {}, {}))["GPU"] == 3
    assert offered(group({"aws.amazon.com/neuroncore": "4"}, {}, {}, {}))["neuron_cores"] == 4
