"""The pod that keeps a tenant's run history, and secrets that it removes from records."""

import json
from typing import Any

import pytest

from components.payloads.run_history.configured import Configured
from components.payloads.run_history.redaction import Redaction
from components.run_history.manifests import LABELS
from kuberay.pod_security import violations
from stacks.commands.impact.kinds import kind_of
from stacks.load import parse
from stacks.objects.network import policies_of_clusters
from stacks.objects.ray_clusters import rendered_job, template_objects
from stacks.objects.tenant_programs import run_history
from stacks.planning.demands import program_pods
from stacks.program.build import build
from stacks.settings import StackSettings, TenantSettings
from testbed.recorder import record
from tests.unit.run_history.api import REDACTION

IMAGE = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
JOB = {"entrypoint": "python train.py", "cluster": {**IMAGE, "autoscaling": False}}


def stack(history: dict[str, Any] | None = None, **tenant: Any) -> StackSettings:
    runs = {"name": "runs", "storageClass": "disks", "size": "5Gi", "accessMode": "ReadWriteOnce"}
    settings = {
        "name": "team-a",
        "storage": [runs],
        "jobs": [{"name": "train", **JOB}],
        "jobTemplates": [{"name": "finetune", **JOB}],
        **({} if history is None else {"runHistory": {"storage": "runs", **history}}),
        **tenant,
    }
    return parse({"tenants": [settings], "access": {"clusterAdmins": ["group:platform"]}})


def objects(settings: StackSettings) -> dict[str, Any]:
    return run_history(settings, settings.tenants[0])


def pod(found: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = found["stateful-set"]["spec"]["template"]["spec"]
    return spec


def test_its_pod_counts_in_plans_and_impact_reports_records_and_not_redis() -> None:
    assert [(each.owner, each.least) for each in program_pods(stack({}))] == [("team-a/ray-run-history", 1)]
    for part in ("stateful-set", "program"):
        assert "records" in kind_of(objects(stack({}))[part]).gone
    assert objects(stack()) == {}


def test_its_program_is_a_package_that_gets_its_settings_as_an_argument() -> None:
    found = objects(stack({"retentionDays": 7, "logSize": "2Mi"}))
    (container,) = pod(found)["containers"]
    assert container["command"][:3] == ["python", "-m", "program"]
    argument = json.loads(container["command"][3])
    assert {key: argument[key] for key in ("namespace", "folder", "retention_days", "log_bytes", "read_heads")} == {
        "namespace": "team-a",
        "folder": "/history",
        "retention_days": 7,
        "log_bytes": 2 * 2**20,
        "read_heads": False,
    }
    assert {"__init__.py", "__main__.py", "collector.py"} <= found["program"]["data"].keys()
    assert "$(" not in container["command"][3]


def test_its_pod_meets_restricted_and_has_a_tenants_image_pull_secrets_and_claim() -> None:
    cluster = {"name": "training", **IMAGE, "image": "registry/ray:2.60.0", "env": {"A": "b"}, "tls": {}}
    found = objects(stack({}, clusters=[cluster], images={"pullSecrets": ["registry"]}))
    assert list(violations(found["stateful-set"]["spec"]["template"], (), "restricted")) == []
    assert pod(found)["imagePullSecrets"] == [{"name": "registry"}]
    (container,) = pod(found)["containers"]
    assert container["image"] == "registry/ray:2.60.0"
    assert "env" not in container
    assert {"name": "records", "persistentVolumeClaim": {"claimName": "runs"}} in pod(found)["volumes"]


def test_it_may_read_what_it_records_and_secrets_only_with_read_heads() -> None:
    for heads in (False, True):
        rules = objects(stack({"readHeads": heads}))["role"]["rules"]
        rights = {(resource, verb) for each in rules for resource in each["resources"] for verb in each["verbs"]}
        assert {("rayjobs", "list"), ("pods", "list"), ("events", "list"), ("pods/log", "get")} <= rights
        assert {verb for _, verb in rights} == {"get", "list"}
        assert (("secrets", "get") in rights) == heads


def test_all_people_of_the_tenant_may_forward_to_its_pod_and_to_no_other() -> None:
    users = ["group:users", {"subject": "user:eve", "clusters": []}]
    found = objects(stack({}, admins=["group:leads"], users=users))
    assert [each["name"] for each in found["readers-role-binding"]["subjects"]] == ["platform", "leads", "users", "eve"]
    (rule,) = found["readers-role"]["rules"]
    assert (rule["resources"], rule["resourceNames"]) == (["pods/portforward"], ["ray-run-history-0"])


@pytest.mark.parametrize("heads", [False, True])
def test_it_reaches_heads_only_with_read_heads_and_nothing_reaches_it(heads: bool) -> None:
    settings = stack({"readHeads": heads})
    policies = {
        each["metadata"]["name"]: each["spec"] for _, each in policies_of_clusters(settings, settings.tenants[0])
    }
    itself = {"podSelector": {"matchLabels": LABELS}}
    peers = {
        name: [peer for rule in each.get("ingress", ()) for peer in rule["from"]] for name, each in policies.items()
    }
    assert [name for name, each in peers.items() if itself in each] == ["head.train", "head.finetune"] * heads
    out = policies["run-history"]
    assert (out["podSelector"], out["policyTypes"]) == ({"matchLabels": LABELS}, ["Egress"])
    assert [port["port"] for rule in out["egress"] for port in rule["ports"]] == [8265] * heads + [443, 6443]


def test_jobs_of_a_namespace_that_begins_as_this_one_are_not_recorded() -> None:
    lab = {"name": "lab", "dashboardAddress": "https://192.0.2.7:8265", "image": "rayproject/ray:2.60.0"}
    alone = stack({"readHeads": True}, externalClusters=[{**lab, "tokenSecret": {"name": "lab", "key": "token"}}])
    tenants = [alone.tenants[0], *(TenantSettings(name=name) for name in ("team-a-b", "team-ab", "team-b"))]
    (container,) = pod(objects(alone.model_copy(update={"tenants": tuple(tenants)})))["containers"]
    [asked] = Configured(**json.loads(container["command"][3])).external
    assert asked["others"] == ["team-a-b-"]


@pytest.mark.parametrize("heads", [False, True])
def test_external_clusters_are_asked_with_read_heads_alone(heads: bool) -> None:
    lab = {"name": "lab", "dashboardAddress": "https://192.0.2.7:8265", "image": "rayproject/ray:2.60.0"}
    secrets = {"tokenSecret": {"name": "lab", "key": "token"}, "caSecret": {"name": "lab", "key": "ca.crt"}}
    settings = stack({"readHeads": heads}, externalClusters=[{**lab, **secrets}])
    (container,) = pod(objects(settings))["containers"]
    asked = {
        "name": "lab",
        "address": "https://192.0.2.7:8265",
        "token": {"name": "lab", "key": "token"},
        "authority": {"name": "lab", "key": "ca.crt"},
        "others": [],
    }
    assert Configured(**json.loads(container["command"][3])).external == [asked] * heads
    policies = {
        each["metadata"]["name"]: each["spec"] for _, each in policies_of_clusters(settings, settings.tenants[0])
    }
    assert ("run-history.lab" in policies) == heads
    if heads:
        out = policies["run-history.lab"]
        assert out["podSelector"] == {"matchLabels": LABELS}
        assert out["egress"] == policies["external.lab"]["egress"]


def test_the_cluster_of_an_ended_job_stays_until_its_head_is_read_and_no_job_starts_again() -> None:
    without, with_it = stack({}), stack({"readHeads": True})
    before, after = (rendered_job(each, each.tenants[0], each.tenants[0].jobs[0]) for each in (without, with_it))
    assert "ttlSecondsAfterFinished" not in before["spec"]
    assert after["spec"]["ttlSecondsAfterFinished"] == 20
    assert before["metadata"] == after["metadata"]
    template = template_objects(with_it, with_it.tenants[0], with_it.tenants[0].job_templates[0])["finetune"]
    assert template["spec"]["jobTemplate"]["ttlSecondsAfterFinished"] == 20
    in_head = {"name": "train", **JOB, "submissionMode": "SidecarMode"}
    sidecar = stack({}, jobs=[in_head], podSecurity="baseline")
    assert (
        rendered_job(sidecar, sidecar.tenants[0], sidecar.tenants[0].jobs[0])["spec"]["ttlSecondsAfterFinished"] == 20
    )
    longer = stack({"readHeads": True}, jobs=[{"name": "train", **JOB, "ttlSecondsAfterFinished": 60}])
    body = rendered_job(longer, longer.tenants[0], longer.tenants[0].jobs[0])
    assert body["spec"]["ttlSecondsAfterFinished"] == 60


@pytest.mark.usefixtures("kubectl_that_renders")
def test_it_exists_after_its_storage_and_goes_before_it_and_holds_up_no_cluster() -> None:
    settings = stack({}, clusters=[{"name": "training", **IMAGE, "autoscaling": False}])
    recorder = record(lambda: build(settings))
    history = "team-a/run-history-stateful-set"
    assert recorder.made_before("team-a/storage-runs-claim", history)
    assert recorder.made_before("team-a/run-history-program", history)
    assert recorder.made_before("team-a/run-history-role-binding", history)
    assert recorder.made_before(history, "team-a/guard")
    assert not recorder.made_before(history, "team-a/training-ray-cluster")


REDACT = Redaction(**REDACTION)


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("python train.py --epochs 3", "python train.py --epochs 3"),
        ("HF_TOKEN=hunter2 python train.py", "HF_TOKEN=*** python train.py"),
        ("bash -c 'API_KEY=hunter2  python x.py'", "bash -c 'API_KEY=***  python x.py'"),
        ("x --api-key=hunter2 --api-key hunter2 --verbose", "x --api-key=*** --api-key *** --verbose"),
        ("x --password --verbose", "x --password --verbose"),
        ("x --password='hunter2 and  more' --verbose", "x --password='***' --verbose"),
        ('x --password "hunter2 and more" y', 'x --password "***" y'),
        ("bash -c \"HF_TOKEN='hunter2 more' x\"", "bash -c \"HF_TOKEN='***' x\""),
        ('x --config \'{"api_key": "hunter2", "lr": "1"}\'', 'x --config \'{"api_key": "***", "lr": "1"}\''),
        ("x --token-file /run/token", "x --token-file /run/token"),
        ("x s3://bob:hunter2@host/path", "x s3://***@host/path"),
        ('curl -H "Authorization: Bearer hunter2" url', 'curl -H "Authorization: Bearer ***" url'),
        ("bash -c \"curl -H 'X-Api-Key:hunter2 ' url\"", "bash -c \"curl -H 'X-Api-Key:*** ' url\""),
        ("curl -H 'X-Auth-Token: Token hunter2' url", "curl -H 'X-Auth-Token: ***' url"),
        ("curl -H X-Auth-Token:hunter2 http://host:80", "curl -H X-Auth-Token:*** http://host:80"),
        ('curl -H "Accept: text/html" url', 'curl -H "Accept: text/html" url'),
    ],
)
def test_a_command_keeps_everything_but_secrets(command: str, kept: str) -> None:
    assert REDACT.command(command) == kept


def test_a_runtime_environment_keeps_names_and_not_the_values_of_secrets() -> None:
    text = """
    env_vars: {WANDB_API_KEY: hunter2, LEVEL: '3', URL: 'https://bob:hunter2@host/x'}
    pip: [numpy, 'https://bob:hunter2@host/wheel.whl']
    """
    found = REDACT.settings(text)
    assert found["env_vars"].keys() == {"WANDB_API_KEY", "LEVEL", "URL"}
    assert found["env_vars"]["LEVEL"] == "3"
    assert found["pip"][0] == "numpy"
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    "text",
    ["", "a: [", "\x00", "&a [*a]", "a: &a [1]\nb: [*a, *a]", "[" * 1000, "!!int ''", "!!bool x", "2026-99-99"],
)
def test_one_that_cannot_be_read_is_not_kept(text: str) -> None:
    assert REDACT.settings(text) is None


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["-", "--_", "key=", "-----BEGIN PRIVATE KEY-----"])
def test_no_pattern_takes_long_for_what_people_write(part: str) -> None:
    """Python tries a pattern at each place, unlike the collector's RE2."""
    assert REDACT.text(part * 20_000)
