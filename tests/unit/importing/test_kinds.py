"""What people met with Ray on Kubernetes: `import`, with what `check` finds, and `policies` say the same."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from stacks.__main__ import app
from stacks.commands.importing.file import import_file
from stacks.launcher_files.reader import Answers
from testbed.policies.case import put

CASES = yaml.safe_load(Path(__file__).with_name("kinds.yaml").read_text())


def group(name: str, **keys: Any) -> dict[str, Any]:
    resources = {"limits": {"cpu": "4", "memory": "16Gi"}}
    container = {"name": name, "image": "rayproject/ray:2.60.0", "resources": resources}
    return {**keys, "rayStartParams": {}, "template": {"spec": {"containers": [container]}}}


CLUSTER = {
    "rayVersion": "2.60.0",
    "headGroupSpec": group("ray-head"),
    "workerGroupSpecs": [group("ray-worker", groupName="w", replicas=1, minReplicas=0, maxReplicas=4)],
}
SPECS: dict[str, dict[str, Any]] = {
    "RayCluster": CLUSTER,
    "RayJob": {"entrypoint": "python train.py", "rayClusterSpec": CLUSTER},
    "RayService": {"serveConfigV2": "applications: [{import_path: 'a:b'}]", "rayClusterConfig": CLUSTER},
}

ALWAYS = re.compile(
    r"everybody who can reach|pods have only what|does not set the version of Ray's autoscaler|no NetworkPolicy allows|"
    r"the cluster stays after|: tenant "
)
"""Notes that each of these objects has."""

BY_FIELDS = re.compile(r"\[ray-(spec-valid|works-as-written)\]")


@pytest.mark.parametrize("case", CASES, ids=[each["case"] for each in CASES])
def test_the_outcome_is_right(case: dict[str, Any], tmp_path: Path) -> None:
    kind = case.get("kind", "RayCluster")
    metadata = {"name": "it", "namespace": "team-a"}
    body = {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": deepcopy(SPECS[kind])}
    for at, value in case["edit"].items():
        put(body, at, value)
    file = tmp_path / "input.yaml"
    file.write_text(yaml.safe_dump(body))
    result = import_file(file, Answers())
    said = [each.removeprefix(f"{file}:") for each in result.lines if not ALWAYS.search(each)]
    assert bool(result.text) == case["imported"], said
    assert any(case["says"] in each for each in said) if case["says"] else not said, said
    judged = case.get(
        "judged", case["says"].replace(": ", " ", 1) if case["says"].startswith("spec.") else case["says"]
    )
    report = CliRunner().invoke(app, ["policies", str(file)]).output
    if judged:
        assert judged in report, report
    else:
        assert not BY_FIELDS.search(report), report
