"""External clusters: their last check, jobs there, and how a dashboard is reached that KubeRay does not run."""

import json
from pathlib import Path
from typing import Any

import pytest

from components.cluster import Connection
from components.external_cluster.settings import ExternalClusterSettings
from components.ray_job.manifests import SUBMITTER_LABEL
from core.body import Body
from stacks.commands.status.dashboard import elsewhere
from stacks.commands.status.external_ray import ExternalStatus, Reachability, external_status, submitted_status
from stacks.commands.status.owners import JobStatus
from stacks.commands.status.report import as_object, sections, summary
from stacks.commands.status.snapshot import Live
from stacks.commands.status.targets import NoSuchTargetError
from stacks.load import parse
from stacks.settings import StackSettings
from testbed.commands import stacks
from tests.unit.planning.stacks import cluster, stack, tenant
from tests.unit.status.live import NOW, UNSCHEDULED, condition, found, metadata, status

ADDRESS = "https://ray.example.com:8265"
LAB = {"name": "lab", "dashboardAddress": ADDRESS, "image": "rayproject/ray:2.60.0"}
END = "2026-01-01T11:00:00Z"


def pod(phase: str, message: str = "", job: str = "lab", ready: bool = False, **more: Any) -> Body:
    ended = {"terminated": {"message": message, "finishedAt": END}} if message else {"running": {}}
    known = {"phase": phase, "startTime": "2026-01-01T10:30:00Z", "containerStatuses": [{"name": "x", "state": ended}]}
    conditions = {"conditions": [condition("Ready", "True")]} if ready else {}
    body_metadata = metadata(f"{job}-x", labels={SUBMITTER_LABEL: f"{job}-external"})
    return {"metadata": body_metadata, "spec": {"containers": []}, "status": {**known, **conditions, **more}}


def checked(*pods: Body, unreadable: dict[str, str] | None = None) -> ExternalStatus:
    return external_status(ExternalClusterSettings.model_validate(LAB), found(unreadable, pods=pods))


def submitted(*pods: Body) -> JobStatus:
    return submitted_status("count", "lab", found(pods=pods), Live(NOW, {}))


def test_a_check_has_its_state_its_time_and_its_reason() -> None:
    lab = checked(pod("Succeeded", '{"rayVersion": "2.58.0"}'))
    assert (lab.ok, lab.state, lab.checked, lab.ray_version, lab.reasons) == (True, "connected", END, "2.58.0", ())
    assert (checked(pod("Succeeded")).ok, checked(pod("Succeeded")).ray_version) == (True, None)
    lab = checked(pod("Failed", "lab refuses the token"))
    assert (lab.ok, lab.state, lab.reasons) == (False, Reachability.FAILED, ("lab refuses the token",))
    waits = checked(pod("Pending", conditions=UNSCHEDULED["conditions"]))
    assert (waits.state, "Insufficient" in waits.reasons[0]) == (Reachability.CHECKED_NOW, True)
    assert checked(pod("Running")).reasons == ("it is being checked",)
    assert checked().reasons == ("its check: it is in the stack file and not in the cluster: `up` creates it",)
    assert "forbidden" in checked(unreadable={"pods": "forbidden"}).reasons[0]


@pytest.mark.parametrize(
    ("body", "states", "ok"),
    [
        (pod("Pending", job="count", conditions=UNSCHEDULED["conditions"]), ("Initializing", None), False),
        (pod("Running", job="count"), ("Initializing", None), False),
        (pod("Running", job="count", ready=True), ("Running", "RUNNING"), True),
        (pod("Succeeded", "SUCCEEDED", job="count"), ("Complete", "SUCCEEDED"), True),
        (pod("Failed", "FAILED: exit code 3", job="count"), ("Failed", "FAILED"), False),
        (pod("Failed", "lab refuses the token", job="count"), ("Failed", None), False),
    ],
)
def test_the_states_of_a_job(body: Body, states: tuple[str, str | None], ok: bool) -> None:
    count = submitted(body)
    assert ((count.deployment, count.job), count.ok) == (states, ok)
    assert bool(count.reasons) is not ok


def test_an_ended_job_has_its_time_and_its_cluster_and_without_a_pod_it_is_missing() -> None:
    count = submitted(pod("Succeeded", "SUCCEEDED", job="count"))
    assert (count.cluster, count.duration, count.in_stack_file) == ("lab", 1800, True)
    assert (submitted().deployment, submitted().ok) == ("Missing", False)


def test_both_are_in_the_report_and_no_ray_job_is_expected() -> None:
    job = {"name": "count", "entrypoint": "python count.py", "externalCluster": "lab"}
    team = {**tenant("team-a"), "clusters": [], "externalClusters": [LAB], "jobs": [job]}
    shown = status(
        found(pods=[pod("Failed", "lab refuses the token"), pod("Running", job="count", ready=True)]), tenants=[team]
    )
    (section,) = sections(shown)
    assert section.reasons == ("External cluster lab: lab refuses the token",)
    (known,) = as_object("dev", shown)["tenants"]
    assert [(each["cluster"], each["state"]) for each in known["externalClusters"]] == [("lab", "failed")]
    assert [(each["job"], each["jobDeploymentStatus"]) for each in known["jobs"]] == [("count", "Running")]
    assert known["ok"] is False


TOKEN = {"tokenSecret": {"name": "lab", "key": "auth.token"}}

CML = """\
config:
  ray-platform:cml:
    host: https://ml.example.com
    clusters:
      - {name: training, project: one, rayVersion: 2.60.0, numWorkers: 1, resources: {cpu: 1, memory: 2}}
"""


def shown(settings: StackSettings, word: str) -> list[str]:
    return list(elsewhere(settings, "prod", word, Connection("my-context")))


def with_external(*names: str, **more: Any) -> StackSettings:
    return stack(*(tenant(name, externalClusters=[{**LAB, **more}]) for name in names))


def test_an_external_cluster_has_the_address_of_the_stack_file_and_its_token_is_in_a_secret() -> None:
    assert shown(with_external("a"), "lab") == [f"{ADDRESS}    # as pods in a reach it"]
    get = "kubectl --context my-context get secret -n a lab -o "
    assert shown(with_external("a", **TOKEN), "a/lab")[-1] == (
        f"{get}'go-template={{{{index .data \"auth.token\" | base64decode}}}}'"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"externalClusters": [LAB]},
        {"clusters": [cluster("lab")]},
        {"clusterNames": ["lab"]},
        {"jobNames": ["lab"]},
        {"serviceNames": ["lab"]},
    ],
)
def test_a_name_of_two_tenants_needs_its_namespace(other: dict[str, Any]) -> None:
    both = stack(tenant("a", externalClusters=[LAB]), {"name": "b", **other})
    with pytest.raises(NoSuchTargetError, match="'lab' exists in several namespaces: write a/lab or b/lab"):
        shown(both, "lab")
    assert len(shown(both, "a/lab")) == 1


def test_a_name_of_no_external_cluster_is_looked_for_among_live_objects() -> None:
    both = stack(tenant("a", externalClusters=[LAB]), tenant("b", externalClusters=[LAB]))
    assert shown(both, "c/lab") == shown(both, "training") == []


def test_a_cluster_on_cloudera_ml_is_asked_for_nothing_and_others_of_its_name_are_mentioned(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(f"{CML}  ray-platform:tenants: [{{name: a, clusterNames: [training]}}]\n")
    url, _, command, others = stacks("dashboard", str(file), "training").stdout.splitlines()
    assert url.startswith("https://ray-")
    assert url.endswith(".ml.example.com")
    assert command == "pulumi stack output cmlTokens --stack prod --show-secrets --json | jq -r '.[\"training\"]'"
    assert others == "# Another one of this name: a/training"


REMOTE: dict[str, Any] = {
    "externalClusters": [{"name": "lab", "dashboardAddress": ADDRESS, "tokenVariable": "LAB_TOKEN"}],
    "jobs": [{"name": "count", "externalCluster": "lab", "entrypoint": "python count.py"}],
}


def test_a_job_outside_kubernetes_is_listed_with_the_command_that_shows_its_state() -> None:
    known = status(found(), tenants=[], **REMOTE)
    (section,) = sections(known)
    assert section.tables[0].rows == (("count", "lab"),)
    assert section.reasons == ("`ray-platform runs STACK --cluster lab` asks the head of lab for its jobs",)
    assert summary("dev", known) == "dev: jobs outside Kubernetes: 1"
    assert as_object("dev", known)["remoteJobs"] == [{"job": "count", "cluster": "lab"}]


@pytest.mark.parametrize("word", ["lab", "count"])
def test_an_external_cluster_of_the_stack_has_a_dashboard_also_by_the_name_of_a_job(word: str) -> None:
    assert shown(parse(REMOTE), word) == [
        f"{ADDRESS}    # as the machine of `up` reaches it",
        "# The dashboard asks for the token, which `up` reads from LAB_TOKEN.",
    ]


def test_the_command_ends_with_2_for_a_name_that_needs_its_namespace(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    tenants = [{"name": name, "externalClusters": [LAB]} for name in ("a", "b")]
    file.write_text(json.dumps({"config": {"ray-platform:tenants": tenants}}))
    done = stacks("dashboard", str(file), "lab")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "'lab' exists in several namespaces: write a/lab or b/lab\n"
