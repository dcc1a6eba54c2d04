"""What a tenant relies on with external clusters: settings, pods, the check of a connection, and a submitted job."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from components import waiting
from components.cluster import path_of
from components.dynamic.reached import Wait
from components.external_cluster import component
from components.external_cluster.component import (
    ExternalRayCluster,
    ExternalRayClusterArgs,
    SubmittedJob,
    SubmittedJobArgs,
)
from components.external_cluster.manifests import ENDED, RUNNING, connection, connection_check, submission
from components.external_cluster.progress import ConnectionFailedError, next_check, until_reached
from components.external_cluster.settings import EXTERNAL_LABEL, Address, ExternalClusterSettings, parse
from components.objects import Object
from components.payloads import external_cluster
from components.ray_cluster.component import connection as of_ray_cluster
from components.ray_job.manifests import RUN_ANNOTATION
from components.ray_job.rules import ValidRayJob
from components.ray_job.settings import RayJobSettings
from kuberay.pod_security import violations
from kuberay.ports import HEAD_PORTS
from testbed.fake_cluster import FakeCluster, of_all_sessions
from testbed.recorder import Recorder, record

RUN = "0123456789abcdef"


def job(*conditions: str, run: str = RUN, **status: Any) -> dict[str, Any]:
    """A live Job with these conditions."""
    true = [{"type": each, "status": "True", "reason": "BackoffLimitExceeded"} for each in conditions]
    metadata = {"uid": "11112222-3333", "annotations": {RUN_ANNOTATION: run}}
    return {"metadata": metadata, "status": {"conditions": true, **status}}


def pod(phase: str, message: str = "") -> dict[str, Any]:
    ended = [{"name": "ray", "state": {"terminated": {"message": f"{message}\n"}}}] if message else []
    metadata = {"name": "lab-x", "creationTimestamp": "2026-01-01T10:00:00Z"}
    return {"metadata": metadata, "status": {"phase": phase, "containerStatuses": ended}}


JOBS, PODS = path_of("batch/v1", "jobs", "team-a"), path_of("v1", "pods", "team-a")


class Live(FakeCluster):
    """An API server with a Job, whatever its name, and its pods."""

    def has(self, job: dict[str, Any] | None, pods: list[dict[str, Any]] | None = None) -> None:
        for name in ("count", "lab", "lab-external"):
            self.objects |= {f"{JOBS}/{name}": job} if job else {}
        self.objects[PODS] = {"items": pods or []}


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    made = Live()
    of_all_sessions(monkeypatch, made)
    made.has(None)
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0.0)
    return made


def registered(message: str | None = None) -> tuple[Recorder, dict[str, Any]]:
    """The resources, and the summary of the cluster."""
    found: dict[str, Any] = {}
    settings = RayJobSettings(name="count", entrypoint="python count.py", external_cluster="lab")

    def program() -> None:
        check = Object("connection", connection_check(external(), []))
        args = ExternalRayClusterArgs(external(), [check], "team-a", "team-a")
        made = ExternalRayCluster("team-a/lab", args)
        job = Object("submission", submission(settings, external(), []))
        SubmittedJob("team-a/count", SubmittedJobArgs(settings, [job], external(), "team-a", made.state))
        made.summary.apply(found.update)

    return record(program, {"team-a/lab-connected": {"status": message}}), found


@pytest.mark.usefixtures("live")
def test_only_another_run_replaces_a_job_and_outputs_are_what_the_check_has_reported() -> None:
    recorder, found = registered('{"rayVersion": "2.60.0", "workers": 3, "largestGpus": 8}')
    assert (found["state"], found["largestGpus"], found["status"]["worker"]["readyReplicas"]) == ("ready", 8, 3)
    assert recorder.made_before("team-a/lab-connection", "team-a/lab-connected")
    for name in ("team-a/lab-connection", "team-a/count-submission"):
        made = recorder.registered[name]
        assert made.type == "kubernetes:batch/v1:Job"
        assert made.replaced_on == (f'metadata.annotations["{RUN_ANNOTATION}"]',)
        assert set(made.ignored) == {"metadata.labels", *(f"spec.{key}" for key in made.inputs["spec"])}
    _, simulated = registered("done")
    assert (simulated["largestGpus"], simulated["workerGroups"]) == (0, [])


def test_a_failed_check_fails_its_own_resource_with_its_reason(live: Live) -> None:
    live.has(job("Failed"), [pod("Failed", "lab at https://ray.example.com:8265 refuses the token")])
    wait = component._until(live, "External Ray cluster lab", "lab", "succeeded", 1)
    with pytest.raises(
        ConnectionFailedError, match=r"External Ray cluster lab in namespace team-a: lab at .* refuses the token"
    ):
        asyncio.run(_run(wait))


async def _run(wait: Wait) -> None:
    await wait("team-a", lambda _: None)


def test_a_failed_check_is_made_again_and_no_other(live: Live) -> None:
    again = f"{RUN}-11112222"
    assert next_check(live, "team-a", "lab", RUN) == RUN
    for found, expected in (
        (job(), RUN),
        (job("Complete"), RUN),
        (job("Failed"), again),
        (job("Complete", run=again), again),
        (job("Complete", run="another"), RUN),
    ):
        live.has(found)
        assert next_check(live, "team-a", "lab", RUN) == expected


@pytest.mark.parametrize(
    ("found", "stage", "reached"),
    [
        (job(ready=1), "running", "RUNNING"),
        (job("Complete"), "running", "SUCCEEDED"),
        (job("Complete"), "succeeded", "SUCCEEDED"),
    ],
)
def test_how_far_a_job_is(live: Live, found: dict[str, Any], stage: Any, reached: str) -> None:
    live.has(found)
    assert asyncio.run(until_reached(live, "team-a", "count", stage, 1, lambda _: None)) == reached


@pytest.mark.parametrize(
    ("found", "pods", "reason"),
    [
        (job("Failed"), [pod("Failed", "FAILED: exit code 3")], "FAILED: exit code 3"),
        (job("Failed"), [], "BackoffLimitExceeded"),
        (job(ready=1), [pod("Running")], "not there after 0 s: Running"),
        (job(), [], "not there after 0 s: it has no pod yet"),
        (None, [], "Job team-a/count does not exist"),
    ],
)
def test_why_a_job_does_not_succeed(live: Live, found: dict[str, Any] | None, pods: list[Any], reason: str) -> None:
    live.has(found, pods)
    with pytest.raises(ConnectionFailedError, match=reason):
        asyncio.run(until_reached(live, "team-a", "count", "succeeded", 0, lambda _: None))


def read(text: str) -> Address:
    return parse(text, ("http", "https"), 8265)


@pytest.mark.parametrize(
    ("text", "service", "network"),
    [
        ("https://ray.example.com:8265", None, None),
        ("http://a-head-svc.team-b.svc:8265", ("a-head-svc", "team-b"), None),
        ("http://a-head-svc.team-b.svc.cluster.local:80", ("a-head-svc", "team-b"), None),
        ("http://svc.example.com:8265", None, None),
        ("http://192.0.2.7:8265", None, "192.0.2.7/32"),
        ("http://[2001:db8::7]:8265", None, "2001:db8::7/128"),
    ],
)
def test_where_an_address_is(text: str, service: tuple[str, str] | None, network: str | None) -> None:
    assert (read(text).service, read(text).network) == (service, network)


@pytest.mark.parametrize("text", ["ray://bob:hunter2@ray.example.com:1", "https://bob:hunter2@ray.example.com:x"])
def test_no_message_shows_credentials_of_an_address(text: str) -> None:
    with pytest.raises(ValueError, match="tokenSecret") as refused:
        read(text)
    assert "hunter2" not in str(refused.value)


def test_a_service_has_the_addresses_of_a_ray_cluster_of_its_name_and_outside_there_is_none() -> None:
    of_cluster = of_ray_cluster("team-b", "shared-head-svc", HEAD_PORTS)
    service = external(
        dashboardAddress="http://shared-head-svc.team-b.svc:8265",
        clientAddress="ray://shared-head-svc.team-b.svc:10001",
    )
    assert connection(service, "team-a") == of_cluster
    found = connection(external(), "team-a")
    assert (found["headService"], found["jobsUrl"]) == ("", "https://ray.example.com:8265")
    assert found.keys() == of_cluster.keys()


TOKEN = {"name": "lab", "key": "auth_token"}


def external(**settings: Any) -> ExternalClusterSettings:
    entry = {"name": "lab", "dashboardAddress": "https://ray.example.com:8265", "image": "rayproject/ray:2.60.0"}
    return ExternalClusterSettings.model_validate({**entry, **settings})


def submitted(of: ExternalClusterSettings | None = None, **settings: Any) -> dict[str, Any]:
    entry = {"name": "count", "entrypoint": "python count.py", "externalCluster": "lab", **settings}
    made = TypeAdapter(ValidRayJob).validate_python(entry, by_alias=True, by_name=False)
    return submission(made, of or external(), ["registry"])


def container(body: dict[str, Any]) -> dict[str, Any]:
    (found,) = body["spec"]["template"]["spec"]["containers"]
    return dict(found)


def task(body: dict[str, Any]) -> dict[str, Any]:
    """What the script is passed."""
    found: dict[str, Any] = json.loads(container(body)["command"][-1].replace("$$", "$"))
    return found


@pytest.mark.parametrize(
    "body", [connection_check(external(tokenSecret=TOKEN), []), submitted(external(tokenSecret=TOKEN))]
)
def test_a_pod_meets_the_strictest_level_and_has_no_token_of_kubernetes(body: dict[str, Any]) -> None:
    template = body["spec"]["template"]
    assert list(violations(template, (), "restricted")) == []
    assert template["spec"]["automountServiceAccountToken"] is False
    assert template["metadata"]["labels"] == {EXTERNAL_LABEL: "lab"}


def test_the_token_is_referenced_and_not_read() -> None:
    env = {each["name"]: each for each in container(submitted(external(tokenSecret=TOKEN)))["env"]}
    assert env["RAY_AUTH_TOKEN"]["valueFrom"] == {"secretKeyRef": TOKEN}
    assert "RAY_AUTH_TOKEN" not in {each["name"] for each in container(submitted())["env"]}


def test_kubernetes_puts_no_variable_into_an_entrypoint() -> None:
    """It replaces $(NAME) in commands, and $$ by $ (kubernetes.io, Define a Command and Arguments)."""
    body = submitted(entrypoint="echo $(RAY_AUTH_TOKEN) $HOME && id")
    assert "$$(RAY_AUTH_TOKEN) $$HOME" in container(body)["command"][-1]
    assert task(body)["job"] == {"entrypoint": "echo $(RAY_AUTH_TOKEN) $HOME && id"}


def test_a_job_is_what_ray_accepts() -> None:
    body = submitted(
        runtimeEnv={"pip": ["numpy"]},
        metadata={"a": "b"},
        entrypointNumGpus=0.5,
        entrypointResources={"full-worker": 1},
    )
    assert task(body)["job"] == {
        "entrypoint": "python count.py",
        "runtime_env": {"pip": ["numpy"]},
        "metadata": {"a": "b"},
        "entrypoint_num_gpus": 0.5,
        "entrypoint_resources": {"full-worker": 1},
    }


def test_an_authority_is_mounted_for_ray() -> None:
    body = connection_check(external(caSecret={"name": "authority", "key": "ca.crt"}), [])
    (mount,) = container(body)["volumeMounts"]
    assert task(body)["ca"] == f"{mount['mountPath']}/ca.crt"
    assert body["spec"]["template"]["spec"]["volumes"] == [{"name": "authority", "secret": {"secretName": "authority"}}]


def test_a_job_that_ray_has_run_is_not_run_again_and_a_submission_is_tried_again() -> None:
    spec = submitted(submitterConfig={"backoffLimit": 5})["spec"]
    (rule,) = spec["podFailurePolicy"]["rules"]
    assert (spec["backoffLimit"], rule["action"]) == (5, "FailJob")
    assert rule["onExitCodes"]["values"] == [external_cluster.ENDED] == [ENDED]
    assert str(external_cluster.RUNNING) == RUNNING


def test_kubernetes_ends_a_job_only_after_the_script_should_have() -> None:
    body = submitted(activeDeadlineSeconds=100)
    assert task(body)["deadline"] == 100
    assert body["spec"]["activeDeadlineSeconds"] > 100 + task(body)["seconds"]
    assert "activeDeadlineSeconds" not in submitted()["spec"]


def test_another_entry_starts_a_job_again_and_another_address_is_checked_again() -> None:
    other = external(dashboardAddress="https://other.example.com:8265")
    assert run_of(submitted(runId="2")) != run_of(submitted())
    assert run_of(submitted(waitFor="succeeded")) == run_of(submitted(other)) == run_of(submitted())
    assert run_of(connection_check(other, [])) != run_of(connection_check(external(), []))
    assert run_of(connection_check(external(), ["registry"])) == run_of(connection_check(external(), []))


def run_of(body: dict[str, Any]) -> str:
    return str(body["metadata"]["annotations"][RUN_ANNOTATION])
