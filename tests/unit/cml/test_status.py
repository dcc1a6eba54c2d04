"""`python -m stacks status` of clusters on Cloudera ML: what their API and their heads show."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.commands.status.cml import CmlState, CmlStatus, cml_statuses
from testbed.cml.server import HOST, KEY
from testbed.commands import stacks
from tests.unit.cml.conftest import TOKEN, Place


def status(place: Place, **changes: object) -> CmlStatus:
    [found] = cml_statuses(place.settings(**changes), "dev")
    return found


def test_a_ready_cluster_has_its_workers_and_gpus(place: Place) -> None:
    place.make(place.inputs())
    found = status(place)
    assert (found.ok, found.state, found.head) == (True, CmlState.READY, "RUNNING")
    assert (found.joined, found.desired, found.gpus, found.reasons) == (2, 2, 2, ())


def test_an_application_of_serve_that_does_not_run_is_named(place: Place) -> None:
    serves: dict[str, Any] = {"serveConfigV2": {"applications": [{"name": "chat", "import_path": "chat:app"}]}}
    place.make(place.inputs(**serves))
    assert status(place, **serves).ok
    place.ray.statuses["chat"] = "UNHEALTHY"
    found = status(place, **serves)
    assert (found.state, found.joined) == (CmlState.NOT_READY, 2)
    assert found.reasons == ("application chat of Serve is UNHEALTHY: chat cannot start",)
    assert status(place).ok


def test_a_cluster_that_was_never_made_is_missing(place: Place) -> None:
    found = status(place)
    assert (found.ok, found.state, found.head, found.gpus) == (False, CmlState.MISSING, None, 0)
    assert found.reasons == ("it is in the stack file and not in Cloudera ML: `up` creates it",)


def test_a_suspended_cluster_is_as_desired_once_nothing_runs(place: Place) -> None:
    place.make(place.inputs())
    assert status(place, suspend=True).state is CmlState.NOT_READY
    place.make(place.inputs(suspend=True))
    assert (status(place, suspend=True).ok, status(place, suspend=True).desired) == (True, 0)


def test_what_failed_or_does_not_exist_is_named(place: Place) -> None:
    place.make(place.inputs())
    place.workspace.fail(place.app("workers-1"))
    found = status(place, numWorkers=3)
    assert (found.state, found.joined, found.desired) == (CmlState.NOT_READY, 1, 3)
    assert found.reasons == (
        "ray.dev.training.workers-1 is FAILED, and `up` deletes it",
        "ray.dev.training.workers-2 does not exist: `up` creates it",
    )


def test_without_the_key_a_cluster_is_unknown(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CML_API_KEY")
    found = status(place)
    assert (found.ok, found.state, found.gpus) == (False, CmlState.UNKNOWN, None)
    assert "set CML_API_KEY" in found.reasons[0]


def test_the_command_needs_no_cluster_of_kubernetes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    place.make(place.inputs())
    cluster = {
        "name": "training",
        "project": "one",
        "rayVersion": "2.60.0",
        "numWorkers": 2,
        "resources": {"cpu": 4, "memory": 16, "gpus": 1},
    }
    cml = {"host": f"https://{HOST}", "caFile": str(place.server.ca_file), "clusters": [cluster]}
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": {"ray-platform:cml": cml}}))
    shown = stacks("status", str(file))
    assert shown.exit_code == 0, shown.output
    first, _, title, columns, row = shown.output.splitlines()
    assert first == "dev: 1 of 1 Ray clusters on Cloudera ML ready"
    assert (title, columns.split()[:3]) == ("Cloudera ML", ["Ray", "cluster", "State"])
    assert row.split()[:5] == ["training", "ready", "RUNNING", "2/2", "2"]
    assert TOKEN not in shown.output
    assert KEY not in shown.output
    [found] = json.loads(stacks("status", str(file), "--format", "json").output)["cml"]
    assert (found["state"], found["workers"]) == ("ready", {"joined": 2, "desired": 2})
