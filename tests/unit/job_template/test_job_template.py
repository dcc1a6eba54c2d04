"""What holds a job template in the cluster, and what its runs are."""

import re
import shlex
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from components.job_template.manifests import (
    BadArgumentsError,
    beside_runs,
    brings_code,
    code_of,
    job_template,
    run_of,
)
from components.job_template.settings import WORD, JobTemplateSettings, ValidJobTemplate
from components.ray_cluster.manifests import ray_cluster
from components.ray_job.manifests import ray_job
from components.ray_job.settings import JOB_LABEL
from kuberay import OperatorContext, validate

CLUSTER = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "labels": {"cost-center": "research"}}


def template(**settings: Any) -> JobTemplateSettings:
    entry = {"name": "count", "entrypoint": "python count.py", "cluster": CLUSTER, **settings}
    return TypeAdapter(ValidJobTemplate).validate_python(entry, by_alias=True, by_name=False)


SIZED: dict[str, Any] = {
    "cluster": {**CLUSTER, "workerGroups": [{"groupName": "cpu", "cpu": 1, "memory": "4Gi", "replicas": 1}]},
    "sizes": {
        "small": {"workerGroups": [{"groupName": "cpu", "cpu": 2}]},
        "large": {"workerGroups": [{"groupName": "cpu", "replicas": 4}]},
    },
}


def held(size: str | None = None, **settings: Any) -> dict[str, Any]:
    """The template in the cluster, or a size of it."""
    made = template(**settings)
    job = made.sized_jobs[size] if size else made.job
    own = job.own_cluster
    assert own
    body = job_template(made, ray_job(job, ray_cluster(own, ()), own), size)
    return {**body, "metadata": {**body["metadata"], "namespace": "team-a"}}


def test_it_is_the_whole_spec_of_a_rayjob_in_a_raycronjob_that_starts_nothing() -> None:
    body = held(activeDeadlineSeconds=60)
    assert (body["kind"], body["spec"]["suspend"]) == ("RayCronJob", True)
    job = body["spec"]["jobTemplate"]
    assert (job["entrypoint"], job["activeDeadlineSeconds"]) == ("python count.py", 60)
    assert job["rayClusterSpec"]["headGroupSpec"]["template"]["metadata"]["labels"][JOB_LABEL] == "count"
    operator = OperatorContext("1.6.2", feature_gates={"RayCronJob": True})
    assert validate(body, operator) == []


def test_a_run_is_the_template_with_arguments_in_the_name_of_its_author() -> None:
    body = held()
    run = run_of(body, ["--epochs", "3"], "alice")
    assert re.fullmatch("count-[a-z0-9]{5}", run["metadata"]["name"])
    assert run["metadata"]["name"] != run_of(body, (), "alice")["metadata"]["name"]
    assert run["metadata"]["namespace"] == "team-a"
    assert run["metadata"]["labels"] == body["metadata"]["labels"]
    assert run["metadata"]["labels"]["ray-platform/job-template"] == "count"
    assert run["metadata"]["annotations"] == {**body["metadata"]["annotations"], "ray-platform/created-by": "alice"}
    assert run["spec"] == {**body["spec"]["jobTemplate"], "entrypoint": "python count.py --epochs 3"}
    assert validate(run, OperatorContext("1.6.2")) == []


@pytest.mark.parametrize(
    "argument",
    ["a;b", "$(id)", "`id`", "$HOME", "a b", "'a'", '"', "a|b", "a&b", ">f", "\\", "a\nb", "*", "~", "", "é"],
)
def test_a_run_has_no_argument_that_a_shell_may_interpret(argument: str) -> None:
    with pytest.raises(BadArgumentsError) as error:
        run_of(held(), [argument], "alice")
    assert str(error.value).startswith(f"{argument!r} is not an argument: a shell may interpret it.")


@given(st.lists(st.from_regex(WORD, fullmatch=True).filter(lambda word: word.isascii()), max_size=4))
def test_shells_leave_arguments_as_they_are(words: list[str]) -> None:
    """Also the second one, after `ray job submit` has put the words together again."""
    text = " ".join(words)
    assert shlex.split(text) == words
    assert subprocess.list2cmdline(words) == text


def test_the_options_of_a_template_are_with_its_runs() -> None:
    run = run_of(held(options=["--epochs", "-n"]), ["--epochs=3"], "alice")
    assert run["metadata"]["annotations"]["ray-platform/options"] == "--epochs -n"
    assert "ray-platform/options" not in held()["metadata"]["annotations"]
    assert held(options=[])["metadata"]["annotations"]["ray-platform/options"] == ""


def test_a_size_is_the_template_with_other_workers_and_a_label() -> None:
    large, own = held("large", **SIZED), held(**SIZED)
    for body in (large, own):
        assert body["metadata"]["annotations"].pop("ray-platform/sizes") == "small, large"
        [body["workers"]] = body["spec"]["jobTemplate"]["rayClusterSpec"].pop("workerGroupSpecs")
    assert large["metadata"].pop("name") == "count-large"
    assert large["metadata"]["labels"].pop("ray-platform/job-size") == "large"
    assert (large["workers"].pop("replicas"), own["workers"].pop("replicas"), own["metadata"].pop("name")) == (
        4,
        1,
        "count",
    )
    assert large == own


URI = "gcs://_ray_pkg_f0cdcce0d917935bff95f33613e9f533c9e8fd39.zip"


def test_a_run_brings_its_code_in_a_configmap_of_its_name_and_its_author() -> None:
    body = held(localCode=True, runtimeEnv={"pip": ["datasets"]})
    job = body["spec"]["jobTemplate"]
    assert job["runtimeEnvYAML"] == "pip:\n- datasets\nworking_dir: /ray-platform/code/code.zip\n"
    pod = job["submitterPodTemplate"]["spec"]
    assert pod["volumes"] == [{"name": "ray-platform-code", "configMap": {"name": "ray-platform-code"}}]
    mount = {"name": "ray-platform-code", "mountPath": "/ray-platform/code", "readOnly": True}
    assert pod["containers"][0]["volumeMounts"] == [mount]
    run = run_of(body, ["--epochs", "3"], "alice", URI)
    name = f"{run['metadata']['name']}.616c696365"
    [volume] = run["spec"]["submitterPodTemplate"]["spec"]["volumes"]
    assert volume == {"name": "ray-platform-code", "configMap": {"name": name}}
    assert run["metadata"]["annotations"]["ray-platform/code"] == URI
    assert validate(run, OperatorContext("1.6.2")) == []
    run["metadata"]["uid"] = "1"
    code = code_of(run, b"PK")
    assert (code["metadata"]["name"], code["immutable"], code["binaryData"]) == (name, True, {"code.zip": "UEs="})
    assert [each["uid"] for each in code["metadata"]["ownerReferences"]] == ["1"]


def test_a_template_without_local_code_mounts_none() -> None:
    assert not brings_code(held())
    assert "ray-platform" not in str(held()["spec"]["jobTemplate"]["submitterPodTemplate"])


def test_a_user_name_that_no_configmap_can_have_is_an_error() -> None:
    with pytest.raises(
        BadArgumentsError, match=r"user name .aaa.*is too long for runs with local code.*at most 120 by"
    ):
        run_of(held(localCode=True), [], "a" * 130, URI)


def test_no_drain_evicts_the_head_of_any_run() -> None:
    own = template().job.own_cluster
    assert own
    [budget] = beside_runs(own)
    spec = budget.body["spec"]
    assert spec["minAvailable"] > 150_000
    assert spec["selector"]["matchLabels"] == {JOB_LABEL: "count", "ray.io/node-type": "head"}
