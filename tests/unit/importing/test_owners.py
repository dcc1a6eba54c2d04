"""A RayJob or RayService becomes a job or service of the tenant, or the reason is reported."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from core.stack_file import stack_file
from stacks.commands.importing.file import import_file
from stacks.commands.importing.manifests import NotWrittenError, from_owner
from stacks.commands.importing.reader import Answers, RefusedError
from stacks.load import parse, settings_of
from stacks.objects.ray_clusters import rendered_job, rendered_service

CONTAINER = {"name": "ray-head", "image": "rayproject/ray:2.60.0", "resources": {"limits": {"cpu": 1, "memory": "4Gi"}}}
CLUSTER = {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [CONTAINER]}}}}
META = {"name": "once", "namespace": "research", "labels": {"team": "vision"}}


def job(**spec: Any) -> dict[str, Any]:
    spec = {"entrypoint": "python train.py", "rayClusterSpec": CLUSTER, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": META, "spec": spec}


def service(**spec: Any) -> dict[str, Any]:
    config = "applications: [{import_path: 'chat:app'}]"
    spec = {"serveConfigV2": config, "rayClusterConfig": CLUSTER, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": META, "spec": spec}


def entry(body: dict[str, Any]) -> dict[str, Any]:
    return from_owner(body, Answers()).entry


def test_its_labels_are_those_of_the_manifest() -> None:
    made = entry(job())
    assert made["cluster"]["labels"] == {"team": "vision"}
    assert made["name"] == "once"
    assert "name" not in made["cluster"]


def test_texts_become_settings() -> None:
    made = entry(job(runtimeEnvYAML="pip: [numpy]", entrypointResources='{"TPU": 1}', entrypointNumCpus=1))
    assert (made["runtimeEnv"], made["entrypointResources"]) == ({"pip": ["numpy"]}, {"TPU": 1})
    assert entry(service())["serveConfigV2"] == {"applications": [{"import_path": "chat:app"}]}


def test_defaults_of_kuberay_are_no_settings() -> None:
    made = entry(job(submissionMode="K8sJobMode", backoffLimit=0, ttlSecondsAfterFinished=0, suspend=False))
    assert made.keys() == {"name", "entrypoint", "shutdownAfterJobFinishes", "cluster"}


@pytest.mark.parametrize(("shuts_down", "made"), [(True, None), (False, False)])
def test_the_cluster_ends_with_the_job_if_it_did(shuts_down: bool, made: bool | None) -> None:
    imported = from_owner(job(shutdownAfterJobFinishes=shuts_down), Answers())
    assert imported.entry.get("shutdownAfterJobFinishes") is made
    assert any("stays after the job" in str(note) for note in imported.notes) is not shuts_down


def test_the_pod_that_submits_is_the_manifests() -> None:
    submits: dict[str, Any] = {
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "mine", "image": "ray:2.60.0"}]}
    }
    stack = parse(
        {"tenants": [{"name": "any", "podSecurity": "privileged", "jobs": [entry(job(submitterPodTemplate=submits))]}]}
    )
    (tenant,) = stack.tenants
    assert rendered_job(stack, tenant, tenant.jobs[0])["spec"]["submitterPodTemplate"] == submits


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (job(entrypoint="a && b"), "the shell that submits the job would interpret '&'"),
        (job(managedBy="kueue.x-k8s.io/multikueue"), "managedBy cannot be written in a stack file"),
        (job(clusterSelector={"ray.io/cluster": "other"}), "which KubeRay prefers"),
        (job(entrypointResources="one"), "entrypointResources is not a mapping"),
        (job(entrypointResources="{"), "entrypointResources, line 2: this is not YAML"),
        (service(serveConfigV2="applications: [{import_path: 'chat:app', import_paht: a}]"), "import_paht"),
    ],
)
def test_what_has_no_place_is_reported(body: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match=why):
        from_owner(body, Answers())
    file = tmp_path / "once.yaml"
    file.write_text(yaml.safe_dump(body))
    result = import_file(file, Answers())
    (tenant,) = yaml.safe_load(result.text)["config"]["ray-platform:tenants"]
    assert [each["name"] for each in tenant["clusters"]] == ["once"]
    assert any(why in line and "its cluster becomes one that stays" in line for line in result.lines)


def test_a_secret_is_refused_and_not_shown() -> None:
    secret = f"hf_{'aB' * 17}"
    with pytest.raises(RefusedError) as refused:
        from_owner(job(entrypoint=f"python train.py --token {secret}"), Answers())
    assert "spec.entrypoint" in str(refused.value)
    assert secret not in str(refused.value)


def test_comments_are_at_the_job_of_their_tenant(tmp_path: Path) -> None:
    other = {**job(), "metadata": {"name": "twice", "namespace": "sales"}}
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([job(), service() | {"metadata": {**META, "name": "chat"}}, other]))
    text = import_file(file, Answers()).text
    tenants = yaml.safe_load(text)["config"]["ray-platform:tenants"]
    assert [sorted(each.keys() & {"clusters", "jobs", "services"}) for each in tenants] == [
        ["jobs", "services"],
        ["jobs"],
    ]
    lines = text.splitlines()
    for at in (index for index, line in enumerate(lines) if line.strip() == "podDefaults: none"):
        assert "remove podDefaults" in lines[at - 1]
    assert sum(line.strip() == "podDefaults: none" for line in lines) == 3


def test_texts_are_read_as_kuberay_reads_them(tmp_path: Path) -> None:
    args = {"commit": "1234567e1", "window": "12:30", "day": "2026-13-45", "on": True, "mode": 511, "rate": 1000}
    config = """\
applications:
- import_path: chat:app
  args: {commit: "1234567e1", window: 12:30, day: 2026-13-45, "on": yes, mode: 0777, rate: 1e3}
  deployments: [{name: Chat, user_config: {rev: "7e10", note: "a\\u2028b"}}]
"""
    file = tmp_path / "chat.yaml"
    file.write_text(yaml.safe_dump(service(serveConfigV2=config)))
    text = import_file(file, Answers()).text
    stack = settings_of(stack_file("Pulumi.any.yaml", text))
    rendered = rendered_service(stack, stack.tenants[0], stack.tenants[0].services[0])["spec"]["serveConfigV2"]
    for read in (text, rendered):
        assert '"1234567e1"' in read or "'1234567e1'" in read
    [application] = yaml.safe_load(rendered)["applications"]
    assert application["args"] == args
    assert application["deployments"][0]["user_config"] == {"rev": "7e10", "note": "a\u2028b"}
