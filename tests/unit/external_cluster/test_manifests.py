"""External clusters: their addresses and settings, and the pods that connect to them, as the API server gets them."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from components.external_cluster.manifests import ENDED, RUNNING, connection, connection_check, submission
from components.external_cluster.settings import EXTERNAL_LABEL, Address, ExternalClusterSettings, parse
from components.payloads import external_cluster
from components.ray_cluster.component import connection as of_ray_cluster
from components.ray_cluster.manifests import HEAD_PORTS
from components.ray_job.manifests import RUN_ANNOTATION
from components.ray_job.rules import ValidRayJob
from kuberay.pod_security import violations

IMAGE = "rayproject/ray:2.60.0"


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


def test_a_service_has_the_addresses_that_a_ray_cluster_of_its_name_has() -> None:
    settings = ExternalClusterSettings(
        name="shared",
        image=IMAGE,
        dashboard_address="http://shared-head-svc.team-b.svc:8265",
        client_address="ray://shared-head-svc.team-b.svc:10001",
    )
    assert connection(settings, "team-a") == of_ray_cluster("team-b", "shared-head-svc", HEAD_PORTS)


def test_outside_of_kubernetes_there_is_no_service() -> None:
    settings = ExternalClusterSettings(name="lab", image=IMAGE, dashboard_address="https://ray.example.com:8265")
    found = connection(settings, "team-a")
    assert (found["headService"], found["jobsUrl"]) == ("", "https://ray.example.com:8265")
    assert found.keys() == of_ray_cluster("team-b", "shared-head-svc", HEAD_PORTS).keys()


TOKEN = {"name": "lab", "key": "auth_token"}


def cluster(**settings: Any) -> ExternalClusterSettings:
    entry = {"name": "lab", "dashboardAddress": "https://ray.example.com:8265", "image": "rayproject/ray:2.60.0"}
    return ExternalClusterSettings.model_validate({**entry, **settings})


def job(of: ExternalClusterSettings | None = None, **settings: Any) -> dict[str, Any]:
    entry = {"name": "count", "entrypoint": "python count.py", "externalCluster": "lab", **settings}
    made = TypeAdapter(ValidRayJob).validate_python(entry, by_alias=True, by_name=False)
    return submission(made, of or cluster(), ["registry"])


def container(body: dict[str, Any]) -> dict[str, Any]:
    (found,) = body["spec"]["template"]["spec"]["containers"]
    return dict(found)


def task(body: dict[str, Any]) -> dict[str, Any]:
    """What the script is passed."""
    found: dict[str, Any] = json.loads(container(body)["command"][-1].replace("$$", "$"))
    return found


@pytest.mark.parametrize("body", [connection_check(cluster(tokenSecret=TOKEN), []), job(cluster(tokenSecret=TOKEN))])
def test_a_pod_meets_the_strictest_level_and_has_no_token_of_kubernetes(body: dict[str, Any]) -> None:
    template = body["spec"]["template"]
    assert list(violations(template, (), "restricted")) == []
    assert template["spec"]["automountServiceAccountToken"] is False
    assert template["metadata"]["labels"] == {EXTERNAL_LABEL: "lab"}


def test_the_token_is_referenced_and_not_read() -> None:
    env = {each["name"]: each for each in container(job(cluster(tokenSecret=TOKEN)))["env"]}
    assert env["RAY_AUTH_TOKEN"]["valueFrom"] == {"secretKeyRef": TOKEN}
    assert "RAY_AUTH_TOKEN" not in {each["name"] for each in container(job())["env"]}


def test_kubernetes_puts_no_variable_into_an_entrypoint() -> None:
    """It replaces $(NAME) in commands, and $$ by $ (kubernetes.io, Define a Command and Arguments)."""
    body = job(entrypoint="echo $(RAY_AUTH_TOKEN) $HOME && id")
    assert "$$(RAY_AUTH_TOKEN) $$HOME" in container(body)["command"][-1]
    assert task(body)["job"] == {"entrypoint": "echo $(RAY_AUTH_TOKEN) $HOME && id"}


def test_a_job_is_what_ray_accepts() -> None:
    body = job(
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
    body = connection_check(cluster(caSecret={"name": "authority", "key": "ca.crt"}), [])
    (mount,) = container(body)["volumeMounts"]
    assert task(body)["ca"] == f"{mount['mountPath']}/ca.crt"
    assert body["spec"]["template"]["spec"]["volumes"] == [{"name": "authority", "secret": {"secretName": "authority"}}]


def test_a_job_that_ray_has_run_is_not_run_again_and_a_submission_is_tried_again() -> None:
    spec = job(submitterConfig={"backoffLimit": 5})["spec"]
    (rule,) = spec["podFailurePolicy"]["rules"]
    assert (spec["backoffLimit"], rule["action"], rule["onExitCodes"]["values"]) == (
        5,
        "FailJob",
        [external_cluster.ENDED],
    )


def test_the_script_and_the_pod_agree() -> None:
    assert (external_cluster.ENDED, str(external_cluster.RUNNING)) == (ENDED, RUNNING)


def test_kubernetes_ends_a_job_only_after_the_script_should_have() -> None:
    body = job(activeDeadlineSeconds=100)
    assert task(body)["deadline"] == 100
    assert body["spec"]["activeDeadlineSeconds"] > 100 + task(body)["seconds"]
    assert "activeDeadlineSeconds" not in job()["spec"]


@pytest.mark.parametrize(
    ("edit", "of"),
    [({"waitFor": "succeeded"}, cluster()), ({}, cluster(dashboardAddress="https://other.example.com:8265"))],
)
def test_neither_waiting_nor_another_address_starts_a_job_again(
    edit: dict[str, Any], of: ExternalClusterSettings
) -> None:
    assert run_of(job(of, **edit)) == run_of(job())


def test_another_entry_starts_a_job_again_and_another_address_is_checked_again() -> None:
    assert run_of(job(runId="2")) != run_of(job())
    other = cluster(dashboardAddress="https://other.example.com:8265")
    assert run_of(connection_check(other, [])) != run_of(connection_check(cluster(), []))
    assert run_of(connection_check(cluster(), ["registry"])) == run_of(connection_check(cluster(), []))


def run_of(body: dict[str, Any]) -> str:
    return str(body["metadata"]["annotations"][RUN_ANNOTATION])
