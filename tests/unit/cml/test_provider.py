"""The providers of the dynamic resources, called as Pulumi calls them."""

import json
import sys
from pathlib import Path
from typing import Any

import dill
import pytest
from pulumi.dynamic import Config, ConfigureRequest

from components.cml import reconcile
from components.cml.client import CmlError, QuotaError
from components.cml.manifests import Member, application, claim
from components.cml.reconcile import NotReadyError
from components.dynamic.cml import ClaimProvider, NodesProvider
from stacks.commands.cml.clusters import CmlCluster, NotStartedError
from stacks.commands.recover.cli import Cli
from stacks.commands.status.cml import CmlState
from testbed.cml.server import KEY
from tests.unit.cml.conftest import QUICK, Place


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "PAUSES", QUICK)
    # The providers set it, and the rest of Python would keep it.
    monkeypatch.setattr(sys, "tracebacklimit", 100, raising=False)


def providers() -> tuple[ClaimProvider, NodesProvider]:
    """Both, as Pulumi's plugin unpickles them."""
    pickled = dill.dumps((ClaimProvider(), NodesProvider()))
    claims, nodes = dill.loads(pickled)  # noqa: S301 (its own)
    return claims, nodes


def test_a_cluster_is_created_read_repaired_scaled_and_deleted(place: Place) -> None:
    claims, nodes = providers()
    inputs = place.inputs()
    claimed = claims.create(claim(inputs)).outs or {}
    assert place.names == []
    assert len(claimed["token"]) > 40

    news = {**inputs, "token": claimed["token"]}
    assert nodes.check({}, news).failures == []
    olds = nodes.create(news).outs or {}
    assert (olds["state"], olds["joined"]) == ("ready", 2)
    assert not nodes.diff("", olds, news).changes
    assert nodes.read("id", olds).outs == olds

    place.workspace.fail(place.app("workers-0"))
    found = nodes.read("id", olds).outs or {}
    assert found["applications"]["ray.dev.training.workers-0"] == {"status": "FAILED", "node": "DEAD"}
    assert found["differs"] == "1 workers have joined; applications: 1 to delete"
    assert nodes.diff("", found, news).changes
    olds = nodes.update("", found, news).outs or {}
    assert "differs" not in olds
    assert not nodes.diff("", olds, news).changes

    fewer = {**place.inputs(numWorkers=0), "token": claimed["token"]}
    assert nodes.diff("", olds, fewer).changes
    olds = nodes.update("", olds, fewer).outs or {}
    assert place.names == ["ray.dev.training.head"]

    nodes.delete("id", olds)
    assert place.names == []
    claims.delete("id", claimed)


class State(Cli):
    """A stack whose exported state has these outputs of a cluster's claim and nodes, the token as a secret."""

    def __init__(self, claim: dict[str, Any], nodes: dict[str, Any]) -> None:
        super().__init__("dev")
        sign = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
        tokens = {key: {**sign, "plaintext": json.dumps(claim[key])} for key in ("token", "former")}
        outputs = {"CmlClaim": {**claim, **tokens}, "CmlNodes": {**nodes, **tokens}}
        self.resources = [{"type": f"dynamic/ray-platform:{name}", "outputs": each} for name, each in outputs.items()]

    def output(self, *_: str, stdin: str = "") -> str:
        return json.dumps({"deployment": {"resources": self.resources}})


def test_a_stopped_cluster_is_named_and_started_by_the_command_or_by_the_next_up(
    place: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    claims, nodes = providers()
    claimed = claims.create(claim(place.inputs())).outs or {}
    news = {**place.inputs(), "token": claimed["token"]}
    olds = nodes.create(news).outs or {}
    cluster = CmlCluster(place.file(tmp_path), "training", State(claimed, olds))
    assert cluster.get_status().state is CmlState.READY

    place.ray.work(place.app("workers-0").environment["RAY_CLOUD_INSTANCE_ID"])
    with pytest.raises(NotReadyError, match="still run tasks, which neither `up` nor `cml stop` ends: run it again"):
        cluster.stop_cluster()
    place.ray.finish()
    cluster.stop_cluster()
    assert (place.names, place.ray.lost) == ([], [])
    [reason] = cluster.get_status().reasons
    assert reason.endswith("`up` creates them; after `cml stop` so does `ray-platform cml start`")

    capfd.readouterr()
    assert nodes.diff("", olds, news).changes
    ended = "training: none of its applications exists, as after `ray-platform cml stop`: `up` creates them\n"
    assert capfd.readouterr().err == ended
    refreshed = nodes.read("id", olds)
    assert (refreshed.id, (refreshed.outs or {})["state"]) == ("id", None)
    assert CmlCluster(place.file(tmp_path), "training", State(claimed, refreshed.outs or {})).start_cluster().ok
    assert not nodes.diff("", olds, news).changes
    cluster.stop_cluster()
    assert nodes.update("", refreshed.outs or {}, news).outs == olds


def test_a_token_is_replaced_with_the_applications_that_have_it_once_they_are_idle(place: Place) -> None:
    claims, nodes = providers()
    before, after = place.inputs(), place.inputs(tokenGeneration=2)
    old = claims.create(claim(before)).outs or {}
    olds = nodes.create({**before, "token": old["token"], "former": []}).outs or {}
    assert not claims.diff("", old, claim(before)).changes
    assert claims.diff("", old, claim(after)).changes
    new = claims.update("", old, claim(after)).outs or {}
    assert new["former"] == [old["token"]] != [new["token"]]
    news = {**after, "token": new["token"], "former": new["former"]}
    assert nodes.diff("", olds, news).changes

    place.ray.work(place.app("workers-0").environment["RAY_CLOUD_INSTANCE_ID"])
    with pytest.raises(NotReadyError, match="still run tasks"):
        nodes.update("", olds, news)
    assert place.app("head").environment["RAY_AUTH_TOKEN"] == old["token"]
    place.ray.finish()
    made = nodes.update("", olds, news).outs or {}
    assert (made["joined"], place.ray.lost) == (2, [])
    assert {app.environment["RAY_AUTH_TOKEN"] for app in place.workspace.apps.values()} == {new["token"]}
    assert not nodes.diff("", made, news).changes


def test_after_a_rotation_that_failed_a_refresh_and_a_destroy_work(place: Place) -> None:
    claims, nodes = providers()
    after = place.inputs(tokenGeneration=2)
    old = claims.create(claim(place.inputs())).outs or {}
    olds = nodes.create({**place.inputs(), "token": old["token"], "former": []}).outs or {}
    new = claims.update("", old, claim(after)).outs or {}
    place.workspace.limits.gpus = 0
    with pytest.raises(QuotaError):
        nodes.update("", olds, {**after, "token": new["token"], "former": new["former"]})
    assert place.app("head").environment["RAY_AUTH_TOKEN"] == new["token"]

    # The state of the nodes has the old token.
    assert (nodes.read("id", olds).outs or {})["state"] is None
    nodes.delete("id", olds)
    assert place.names == ["ray.dev.training.head"]
    claims.delete("id", new)
    assert place.names == []


def test_a_cluster_starts_as_the_last_up_made_it_or_not_at_all(place: Place, tmp_path: Path) -> None:
    def start(state: State, **changes: Any) -> None:
        CmlCluster(place.file(tmp_path, **changes), "training", state).start_cluster()

    claimed = ClaimProvider().create(claim(place.inputs())).outs or {}
    state = State(claimed, place.inputs())
    with pytest.raises(
        NotStartedError, match=r"differs from the last `up` \(groups\): run `pulumi up`, which also starts"
    ):
        start(state, numWorkers=3)
    with pytest.raises(NotStartedError, match="has suspend: true: set it to false, and run `pulumi up`"):
        start(state, suspend=True)
    state.resources.pop()
    with pytest.raises(NotStartedError, match="is not in the state of the stack: run `pulumi up`, which creates it"):
        start(state)
    assert place.names == []


def test_the_deletion_of_a_claim_finds_what_is_half_made(place: Place) -> None:
    claims, nodes = providers()
    inputs = place.inputs()
    claimed = claims.create(claim(inputs)).outs or {}
    place.workspace.limits.gpus = 1
    with pytest.raises(CmlError, match="GPU quota exceeded"):
        nodes.create({**inputs, "token": claimed["token"]})
    assert len(place.names) == 2
    claims.delete("id", claimed)
    assert place.names == []


def test_a_claim_remembers_the_projects_that_its_cluster_has_had(place: Place) -> None:
    claims, nodes = providers()
    before, after = place.inputs(), place.inputs(project="two")
    claimed = claims.create(claim(before)).outs or {}
    olds = nodes.create({**before, "token": claimed["token"]}).outs or {}
    assert claims.diff("", claimed, claim(after)).changes
    moved = claims.update("", claimed, claim(after)).outs or {}
    assert (moved["projects"], moved["token"], moved["former"]) == (["two", "one"], claimed["token"], [])
    assert not claims.diff("", moved, claim(after)).changes
    nodes.update("", olds, {**after, "token": claimed["token"]})
    assert {app.project for app in place.workspace.apps.values()} == {"two"}
    assert place.workspace.files["one"] == {}
    renamed = claim(place.inputs(name="other"))
    assert claims.diff("", moved, renamed).replaces == ["prefix"]


def test_what_cloudera_ml_would_refuse_is_refused_before(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _, nodes = providers()
    resources = {"cpu": 4, "memory": 16, "gpus": 5}
    inputs = place.inputs(project="three", runtimeIdentifier="docker.example/other", resources=resources)
    reasons = [failure.reason for failure in nodes.check({}, {**inputs, "token": "t"}).failures]
    assert [reason.partition(":")[0] for reason in reasons] == [
        "project 'three'",
        "runtime 'docker.example/other' is not registered in Cloudera ML",
        "5 GPUs are more than an application may have here, which is 4",
    ]
    monkeypatch.delenv("CML_API_KEY")
    [failure] = nodes.check({}, inputs).failures
    assert failure.reason.startswith("no API key of Cloudera ML: set CML_API_KEY")


def test_the_key_of_the_configuration_is_used_and_not_pickled(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CML_API_KEY")
    nodes = NodesProvider()
    nodes.configure(ConfigureRequest(Config({"ray-platform:cmlApiKey": KEY}, "ray-platform")))
    assert nodes.check({}, {**place.inputs(), "token": "t"}).failures == []
    assert KEY.encode() not in dill.dumps(nodes)


def test_a_preview_without_the_workspace_shows_the_edits_alone(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    _, nodes = providers()
    olds = nodes.create({**place.inputs(), "token": "t" * 20}).outs or {}
    news = {**place.inputs(), "token": "t" * 20}
    place.server.key = "another-key"
    assert not nodes.diff("", olds, news).changes
    assert "were not compared" in capfd.readouterr().err
    assert nodes.diff("", olds, {**news, "readySeconds": 5}).changes


def test_a_former_project_that_was_deleted_has_no_applications(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    claims, nodes = providers()
    before, after = place.inputs(), place.inputs(project="two")
    claimed = claims.create(claim(before)).outs or {}
    olds = nodes.create({**before, "token": claimed["token"]}).outs or {}
    moved = claims.update("", claimed, claim(after)).outs or {}
    place.workspace.remove_project("one")
    news = {**after, "token": claimed["token"]}
    made = nodes.update("", olds, news).outs or {}
    assert made["state"] == "ready"
    assert {app.project for app in place.workspace.apps.values()} == {"two"}
    assert "warning: project 'one' of training was not found (404)" in capfd.readouterr().err
    nodes.delete("id", made)
    claims.delete("id", moved)
    assert place.names == []


def test_a_cluster_whose_project_was_deleted_can_be_destroyed_after_a_refresh(place: Place) -> None:
    claims, nodes = providers()
    inputs = place.inputs()
    claimed = claims.create(claim(inputs)).outs or {}
    news = {**inputs, "token": claimed["token"]}
    olds = nodes.create(news).outs or {}
    place.workspace.remove_project("one")
    with pytest.raises(CmlError, match="projects/one"):
        nodes.update("", olds, news)
    with pytest.raises(CmlError, match="no project of training was found"):
        nodes.delete("id", olds)
    assert nodes.read("id", olds).id == ""
    assert nodes.read("id", {**olds, "suspend": True}).id == ""
    claims.delete("id", claimed)


def test_only_the_certificates_of_a_file_are_used_and_not_more_than_a_variable_holds(
    place: Place, tmp_path: Path
) -> None:
    _, nodes = providers()
    one = place.server.ca_file.read_text()
    file = tmp_path / "ca.pem"
    file.write_bytes("# Société Générale\n".encode("latin-1") + b"x" * 200_000 + f"\n{one}\n# Größe\n{one}".encode())
    inputs = {**place.inputs(), "caFile": str(file), "token": "t"}
    assert nodes.check({}, inputs).failures == []
    body = application(inputs, Member("workers"), "t", "u")
    assert json.loads(body["environment"]["RAY_PLATFORM"])["ca"] == f"{one.strip()}\n" * 2
    file.write_text(one * (130_000 // len(one)))
    [failure] = nodes.check({}, inputs).failures
    assert (failure.property, "KiB of certificates" in failure.reason) == ("caFile", True)
    assert nodes.check({}, {**place.inputs(numWorkers=0), "caFile": str(file), "token": "t"}).failures == []
    file.write_text("")
    [failure] = nodes.check({}, inputs).failures
    assert failure.reason == f"caFile {str(file)!r} is not a file with certificates (PEM): it has no certificate"
