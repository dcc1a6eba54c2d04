"""What a RayJob looks like to KubeRay, when its job starts again, and its states."""

import re
import shlex
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from components.ray_cluster.manifests import ray_cluster
from components.ray_job.manifests import RUN_ANNOTATION, ray_job, ray_job_objects, run
from components.ray_job.progress import failure_of, state_of
from components.ray_job.rules import ValidRayJob
from components.ray_job.settings import JOB_LABEL, RayJobSettings
from core.yaml_reader.scalars import resolve
from kuberay import OperatorContext, validate
from kuberay.pod_security import violations
from kuberay.shell import interpreted

CLUSTER = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "labels": {"cost-center": "research"}}


def job(**settings: Any) -> RayJobSettings:
    entry = {"name": "count", "entrypoint": "python count.py", "cluster": CLUSTER, **settings}
    entry = {key: value for key, value in entry.items() if value is not None}
    return TypeAdapter(ValidRayJob).validate_python(entry, by_alias=True, by_name=False)


def rendered(**settings: Any) -> dict[str, Any]:
    made = job(**settings)
    own = made.own_cluster
    return ray_job(made, ray_cluster(own, ()) if own else None, own)


def test_its_runtime_environment_is_the_same_to_kuberay() -> None:
    """KubeRay reads it by sigs.k8s.io/yaml (v1.6.2, common/job.go), to which y is true and 7e10 a number."""
    variables = {"a": "y", "b": "7e10", "c": "5", "d": "", "e": "yes", "f": "x y"}
    written = {"rate": resolve("1e3"), "mode": resolve("0022"), "share": resolve("0.50")}
    text = rendered(runtimeEnv={"env_vars": variables, "config": written})["spec"]["runtimeEnvYAML"]
    assert text.endswith("env_vars:\n  a: 'y'\n  b: '7e10'\n  c: '5'\n  d: ''\n  e: 'yes'\n  f: x y\n")
    numbers = {"rate": 1000.0, "mode": 18, "share": 0.5}
    assert yaml.safe_load(text) == {"env_vars": variables, "config": numbers}


def test_its_cluster_is_gone_after_the_job_unless_configured() -> None:
    assert rendered()["spec"]["shutdownAfterJobFinishes"] is True
    assert "shutdownAfterJobFinishes" not in rendered(shutdownAfterJobFinishes=False)["spec"]
    rules = [{"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 60}}]
    spec = rendered(deletionStrategy={"deletionRules": rules})["spec"]
    assert "shutdownAfterJobFinishes" not in spec
    assert spec["deletionStrategy"] == {"deletionRules": rules}


def test_kuberay_accepts_it() -> None:
    assert validate(rendered(runtimeEnv={"pip": ["numpy"]}, metadata={"a": "b"}), OperatorContext("1.6.2")) == []


def test_the_pod_that_submits_meets_the_strictest_level_and_has_rays_image() -> None:
    template = rendered()["spec"]["submitterPodTemplate"]
    assert list(violations(template, (), "restricted")) == []
    (container,) = template["spec"]["containers"]
    assert (container["name"], container["image"]) == ("ray-job-submitter", CLUSTER["image"])
    assert "command" not in container  # KubeRay adds its own
    assert "submitterPodTemplate" not in rendered(submissionMode="HTTPMode")["spec"]


def test_the_pod_that_submits_has_nothing_else_of_rays_pods() -> None:
    mounted = {
        **CLUSTER,
        "env": {"LEVEL": "2"},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    template = rendered(cluster=mounted)["spec"]["submitterPodTemplate"]
    assert "metadata" not in template
    assert "volumes" not in template["spec"]
    assert {"env", "volumeMounts"}.isdisjoint(template["spec"]["containers"][0])


def test_the_cluster_and_its_pods_have_the_jobs_label() -> None:
    body = rendered()
    assert body["metadata"]["labels"] == {"cost-center": "research", JOB_LABEL: "count"}
    head = body["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    assert head["metadata"]["labels"][JOB_LABEL] == "count"


@pytest.mark.parametrize("evictable", [False, True])
def test_the_head_of_its_cluster_is_not_evicted_unless_configured(evictable: bool) -> None:
    beside = [each.body for each in ray_job_objects(job(cluster={**CLUSTER, "head": {"evictable": evictable}}), {})]
    labels = [each["spec"]["selector"]["matchLabels"] for each in beside if each.get("kind") == "PodDisruptionBudget"]
    assert labels == ([] if evictable else [{JOB_LABEL: "count", "ray.io/node-type": "head"}])


@pytest.mark.parametrize(
    ("edit", "again"),
    [
        ({"entrypoint": "python count.py --again"}, True),
        ({"runId": "2"}, True),
        ({"cluster": {**CLUSTER, "env": {"LEVEL": "2"}}}, True),
        ({"activeDeadlineSeconds": 60}, True),
        ({"suspend": True}, False),
        ({"waitFor": "succeeded", "waitTimeout": "1h"}, False),
        ({"cluster": {**CLUSTER, "labels": CLUSTER["labels"]}}, False),
        ({"cluster": {**CLUSTER, "head": {"evictable": True}}}, False),
    ],
)
def test_another_setting_or_run_id_starts_it_again_and_suspending_or_waiting_does_not(
    edit: dict[str, Any], again: bool
) -> None:
    assert (rendered(**edit)["metadata"]["annotations"][RUN_ANNOTATION] != run(job())) == again


def test_what_the_tenant_adds_does_not_start_it_again() -> None:
    made = job()
    own = made.own_cluster
    assert own
    changed = own.model_copy(update={"image_pull_secrets": ("registry",)})
    body = ray_job(made, ray_cluster(changed, (), "runner"), changed)
    assert body["metadata"]["annotations"][RUN_ANNOTATION] == run(made)
    assert body["spec"] != rendered()["spec"]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python train.py --lr 1e-4 'a && b' \"two words\" x\\;y", None),
        ("bash -c 'a | b > $OUT # c'", None),
        ("a && b", "&"),
        ("a\nb", "\n"),
        ('echo "$HOME"', "$"),
        ('echo "`id`"', "`"),
        ("echo it's", "'"),
        ("python train.py # later", "#"),
        ("python train.py a#b", None),
        ('echo "\\$HOME"', None),
        ("python train.py --rates {0.1,0.2}", "{"),
        ("python count.py *.csv [a-z]? ~/models", None),
    ],
)
def test_a_shell_would_interpret_it(command: str, found: str | None) -> None:
    assert interpreted(command) == found


@example('"\\$"')
@example("a\\\nb")
@given(st.text(alphabet="ab '\"\\;&|<>()$`#\n", max_size=12))
def test_bash_runs_one_command_with_the_words_of_every_accepted_entrypoint(text: str) -> None:
    entrypoint = f"python {text}".strip()
    if interpreted(entrypoint) is None:
        assert words_of_bash(entrypoint) == words_of_posix(entrypoint)


@pytest.mark.parametrize(
    "words",
    [
        *("{a,b}", "x{,}", "{1..3}", "{-1..+9..2}", "{a..c}", "{a,{b}}", "{{a,b}", "{'a b',c}", '{"a":{"b":1},"c":2}'),
        *("{}", "{a}", "{a:1}", "{a, b}", "{a,b", "{a},{b}", "{1..c}", "{1..}", '{"a"..c}', "'{a,b}'", "\\{a,b}"),
    ],
)
def test_braces_are_interpreted_where_bash_expands_them(words: str) -> None:
    command = f"python {words}"
    assert (interpreted(command) == "{") == (words_of_bash(command) != words_of_posix(command))


_PART = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|.""", re.DOTALL)


def words_of_posix(command: str) -> list[str]:
    """The words by POSIX. shlex does not know two rules: within double quotes a backslash also escapes `$` and a
    backquote, and a newline after a backslash continues the line (Shell Command Language, 2.2.1 and 2.2.3)."""
    escaped = {"\n": "", "$": "$", "`": "`"}

    def known_to_shlex(part: re.Match[str]) -> str:
        if part[0].startswith('"'):
            return re.sub(r"\\(.)", lambda found: escaped.get(found[1], found[0]), part[0], flags=re.DOTALL)
        return "" if part[0] == "\\\n" else part[0]

    return shlex.split(_PART.sub(known_to_shlex, command))


def words_of_bash(command: str) -> list[str]:
    """The words as bash passes them on, and nothing that it ran after them."""
    script = f"""show() {{ printf '%s\\0' "$@"; exit 0; }}; show {command} ; printf 'second command\\0'"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


def reported(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "count", "namespace": "team-a"}, "status": status}


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (reported(), "the operator has not seen it yet"),
        (reported(jobDeploymentStatus="Initializing"), "Initializing"),
        (reported(jobDeploymentStatus="Running", jobStatus="PENDING"), "Running, in Ray PENDING"),
    ],
)
def test_its_state(body: dict[str, Any], state: str) -> None:
    assert state_of(body) == state


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (reported(jobDeploymentStatus="Running", jobStatus="FAILED"), None),
        (reported(jobDeploymentStatus="Retrying", jobStatus="FAILED"), None),
        (reported(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"), None),
        (reported(jobDeploymentStatus="Complete", jobStatus="STOPPED"), "has failed: STOPPED"),
        (
            reported(jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message="exit code 3"),
            "has failed: AppFailed: exit code 3",
        ),
        (reported(jobDeploymentStatus="Failed", reason="DeadlineExceeded"), "has failed: DeadlineExceeded"),
        (
            reported(jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no cluster"),
            "has failed: ValidationFailed: no cluster",
        ),
    ],
)
def test_why_it_can_no_longer_succeed(body: dict[str, Any], failure: str | None) -> None:
    assert failure_of(body) == failure
