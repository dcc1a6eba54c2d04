"""Rehearsals of stacks: the production stack at its real size, which matches its plan, and one that does not fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import paths
from local.plugins import Selection
from local.pulumi import PROJECT
from local.rehearse.comparison import Beside
from local.rehearse.report import Rehearsed, as_object
from local.rehearse.session import Session
from stacks.commands.review.reports import rehearsals
from testbed.platform_stack import DEV

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(1800)]

Rehearse = Callable[[Path], Rehearsed]


@pytest.fixture
def rehearse(tmp_path: Path, plugins: Selection) -> Rehearse:
    """Rehearses a stack file, and removes its cluster."""
    return lambda file: Session("rehearsed", file, plugins, tmp_path / "run").run()


def stack_of(file: Path, *tenants: dict[str, Any]) -> Path:
    """The dev stack's four nodes, with one for heads, and other tenants.

    Kubernetes' scheduler, which spreads pods, would place heads among the workers differently from a plan.
    """
    settings = yaml.safe_load(DEV.read_text())
    nodes = settings["config"][f"{PROJECT}:nodes"]
    nodes[0]["taints"] = [{"key": "nvidia.com/gpu"}]
    nodes.append({"pool": "system", "count": 1, "cpu": 16, "memory": "128Gi", "labels": {"example.com/pool": "system"}})
    training = settings["config"][f"{PROJECT}:tenants"][0]["clusters"][0] | {"head": {"pool": "system"}}
    settings["config"][f"{PROJECT}:tenants"] = [
        {**tenant, "clusters": [{**training, **cluster} for cluster in tenant["clusters"]]} for tenant in tenants
    ]
    file.write_text(yaml.safe_dump(settings))
    return file


def workers(**more: Any) -> dict[str, Any]:
    return {"pool": "a100", "profile": "tiling", **more}


WHOLE = {
    **{"groupName": "whole", "gpus": 8, "cpu": 60, "memory": "900Gi", "minReplicas": 6, "maxReplicas": 6},
    "podTemplate": {
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        }
    },
}
LARGE = {"workers": workers(variants=[{"gpus": 1, "maxReplicas": 0}]), "workerGroups": [WHOLE], "readyTimeout": "30s"}
"""Six of four nodes: too many. `check` would refuse it for workers of a pool."""


def test_the_predicted_pods_of_a_stack_that_does_not_fit_wait(rehearse: Rehearse, tmp_path: Path) -> None:
    """The report has the scheduler's reasons for waiting pods."""
    file = stack_of(tmp_path / "Pulumi.large.yaml", {"name": "large", "clusters": [LARGE]})
    there = rehearse(file)
    [waiting] = there.start.waiting
    assert (waiting.owner, waiting.group, waiting.pods) == ("large/training", "whole", Beside(2, 2))
    assert "Insufficient nvidia.com/gpu" in " ".join(waiting.reasons)
    assert there.differences == ()
    assert there.not_ready == ("large/training",)
    assert "is not ready after 30 s" in " ".join(there.errors)
    assert not there.well
    report = tmp_path / "rehearsal.json"
    report.write_text(json.dumps(as_object(there)))
    [in_review] = rehearsals([report]).values()
    assert "not ready: large/training" in in_review.problems
    assert not in_review.well


def test_the_production_stack_matches_its_plan(rehearse: Rehearse) -> None:
    """64 nodes of eight GPUs and twenty tenants; it takes some minutes."""
    there = rehearse(paths.ROOT / "Pulumi.prod.yaml")
    assert there.differences == ()
    assert there.well
    assert there.demand
    assert len(there.demand.tenants) == 20
