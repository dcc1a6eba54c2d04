"""RayJobs of the stack on real pods, with Volcano, in a namespace at level restricted; and their run history."""

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest

from components.job_template.manifests import AUTHOR_ANNOTATION, CODE_ANNOTATION, TEMPLATE_LABEL
from components.monitoring.metrics import KubeRay
from components.ray_job.manifests import SUBMITTER
from components.ray_job.settings import JOB_LABEL
from components.run_history.manifests import POD
from testbed.pods.platform import NAMESPACE, SMALL, Platform, pods_cluster
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(1200, func_only=True)]

SUCCEEDS, FAILS, WAITS, INTERACTIVE, ENDLESS = "succeeds", "fails", "waits", "interactive", "endless"

TEMPLATE, SANDBOX, SCIENTIST = "vetted", "sandbox", "scientist"

TTL = 20
"""Seconds for which a cluster stays after its job."""

LONG = 3600
"""Seconds of a deadline for which no machine is too slow. The test makes it short when it waits for its end."""


def jobs() -> dict[str, list[dict[str, Any]]]:
    """A job in each mode that the namespace allows, one that no node has room for, one that never ends, and a job
    template with somebody who may run it."""
    standing = pods_cluster()
    head = standing["head"]
    cluster = {
        **{key: standing[key] for key in ("rayVersion", "image")},
        "autoscaling": False,
        "head": {**head, "rayStartParams": {**head["rayStartParams"], "num-cpus": "1"}},
    }
    nowhere = {**cluster, "head": {**head, "podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}}
    submitter = {"submitterPodTemplate": {"spec": {"containers": [{"name": SUBMITTER, "resources": SMALL}]}}}
    count = "import ray; ray.init(); print('counted', ray.get(ray.remote(lambda: 6 * 7).remote()))"
    each_mode: list[dict[str, Any]] = [
        {
            "name": SUCCEEDS,
            "entrypoint": f'python -c "{count}"',
            "cluster": cluster,
            **submitter,
            "ttlSecondsAfterFinished": TTL,
            "waitFor": "succeeded",
        },
        {"name": INTERACTIVE, "submissionMode": "InteractiveMode", "cluster": cluster},
        {
            "name": FAILS,
            "entrypoint": "echo no data at s3://bucket && exit 3",
            "submissionMode": "HTTPMode",
            "backoffLimit": 1,
            "cluster": cluster,
        },
        {
            "name": WAITS,
            "entrypoint": "python -V",
            "preRunningDeadlineSeconds": LONG,
            "suspend": True,
            "cluster": nowhere,
        },
        {
            "name": ENDLESS,
            "entrypoint": "sleep infinity",
            "submissionMode": "HTTPMode",
            "activeDeadlineSeconds": LONG,
            "waitFor": "running",
            "cluster": cluster,
        },
    ]
    cron = {"schedule": "@yearly", "suspend": True, "arguments": ["--all"]}
    vetted = {"name": TEMPLATE, "entrypoint": "echo vetted", "cluster": cluster, **submitter, "cron": cron}
    sandbox = {"name": SANDBOX, "entrypoint": "python train.py", "localCode": True, "cluster": cluster, **submitter}
    scientist = {
        "subject": f"serviceAccount:{NAMESPACE}/{SCIENTIST}",
        "clusters": [],
        "jobTemplates": [TEMPLATE, SANDBOX],
    }
    return {"jobs": each_mode, "jobTemplates": [vetted, sandbox], "users": [scientist]}


HISTORY = {
    "storage": [{"name": "runs", "storageClass": "standard", "accessMode": "ReadWriteOnce", "size": "1Gi"}],
    "runHistory": {"storage": "runs", "readHeads": True, "image": pods_cluster()["image"]},
}


@pytest.fixture(scope="module")
def platform(without_clusters: Platform, steps: Steps) -> Platform:
    """The stack with Volcano and these jobs; `up` ends when the first has succeeded and the endless one runs."""

    def with_jobs(settings: dict[str, Any]) -> None:
        settings["scheduler"] = {"volcano": {}}
        queue = {"capability": {"gpus": 8}}
        settings["tenants"][0].update(clusters=[], externalClusters=[], queue=queue, **jobs(), **HISTORY)

    without_clusters.stack.edit(with_jobs)
    with steps.step("`pulumi up` of Volcano and jobs"):
        without_clusters.stack.up()
    return without_clusters


def status(platform: Platform, name: str) -> dict[str, Any]:
    body = json.loads(platform.kubectl("get", "rayjob", "-n", NAMESPACE, name, "-o", "json"))
    found: dict[str, Any] = body.get("status", {})
    return found


def clusters(platform: Platform, name: str) -> str:
    return platform.kubectl("get", "rayclusters", "-n", NAMESPACE, "-l", f"{JOB_LABEL}={name}", "-o", "name").strip()


def ended_at(platform: Platform, name: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(status(platform, name)["endTime"])


def a_suspended_job_has_no_cluster_and_a_resumed_one_begins_again(platform: Platform, steps: Steps) -> None:
    def suspend(name: str, **endless: Any) -> None:
        def edit(settings: dict[str, Any]) -> None:
            jobs = {each["name"]: each for each in settings["tenants"][0]["jobs"]}
            jobs[WAITS]["suspend"] = name == WAITS
            jobs[ENDLESS] |= {"suspend": name == ENDLESS, **endless}

        platform.stack.edit(edit)
        platform.stack.up()

    assert status(platform, WAITS)["jobDeploymentStatus"] == "Suspended"
    assert not clusters(platform, WAITS)
    begun = status(platform, ENDLESS)
    assert begun["jobStatus"] == "RUNNING"
    with steps.step("a job is suspended and resumed"):
        suspend(ENDLESS, waitFor="nothing")
        until(lambda: status(platform, ENDLESS)["jobDeploymentStatus"] == "Suspended", "KubeRay has suspended it")
        assert not clusters(platform, ENDLESS)
        suspend("", waitFor="running")
    again = status(platform, ENDLESS)
    assert again["jobStatus"] == "RUNNING"
    assert again["jobId"] != begun["jobId"]
    assert again["rayClusterName"] != begun["rayClusterName"]


def a_job_that_never_starts_shows_why(platform: Platform) -> None:
    shown = json.loads(platform.stacks("status", str(platform.stack.file), "--format", "json"))
    (waits,) = (each for each in shown["tenants"][0]["jobs"] if each["job"] == WAITS)
    assert waits["jobDeploymentStatus"] == "Initializing"
    assert any("in gang unschedulable" in reason for reason in waits["reasons"]), waits["reasons"]


def a_job_succeeds_its_cluster_is_gone_after_a_while_and_its_log_stays(platform: Platform) -> None:
    until(lambda: not clusters(platform, SUCCEEDS), "its RayCluster is gone")
    assert status(platform, SUCCEEDS)["jobStatus"] == "SUCCEEDED"
    about = f"involvedObject.name={SUCCEEDS},reason=DeletedRayCluster"
    event = platform.kubectl("get", "events", "-n", NAMESPACE, "--field-selector", about, "-o", "json")
    (deleted,) = json.loads(event)["items"]
    waited = datetime.datetime.fromisoformat(deleted["firstTimestamp"]) - ended_at(platform, SUCCEEDS)
    assert waited >= datetime.timedelta(seconds=TTL)
    assert "counted 42" in platform.kubectl("logs", "-n", NAMESPACE, f"job/{SUCCEEDS}")


def a_failed_job_is_tried_again_and_its_reason_is_readable_when_its_clusters_are_gone(platform: Platform) -> None:
    until(lambda: status(platform, FAILS).get("jobDeploymentStatus") == "Failed", "it has failed")
    until(lambda: not clusters(platform, FAILS), "its RayCluster is gone")
    found = status(platform, FAILS)
    assert (found["reason"], found["failed"]) == ("AppFailed", 2)
    assert "exit code 3" in found["message"]
    assert "no data at s3://bucket" in found["message"]


def a_job_is_submitted_by_hand(platform: Platform) -> None:
    until(lambda: status(platform, INTERACTIVE).get("jobDeploymentStatus") == "Waiting", "it waits for somebody")
    (head,) = platform.pods(f"{JOB_LABEL}={INTERACTIVE},ray.io/node-type=head", NAMESPACE)
    submit = "ray job submit --address http://127.0.0.1:8265 --no-wait --submission-id by-hand -- echo by hand"
    platform.kubectl("exec", "-n", NAMESPACE, head, "-c", "ray-head", "--", *submit.split())
    known = json.dumps({"spec": {"jobId": "by-hand"}})
    platform.kubectl("patch", "rayjob", "-n", NAMESPACE, INTERACTIVE, "--type=merge", "-p", known)
    until(lambda: status(platform, INTERACTIVE).get("jobStatus") == "SUCCEEDED", "it has succeeded")
    until(lambda: not clusters(platform, INTERACTIVE), "its RayCluster is gone")


def a_template_is_run_by_the_command_and_by_the_pod_of_its_schedule(
    platform: Platform, steps: Steps, scientists: Path
) -> None:
    with steps.step("two runs of a job template"):
        platform.kubectl("create", "job", "-n", NAMESPACE, f"--from=cronjob/{TEMPLATE}", f"{TEMPLATE}-now")
        run = ("run", str(platform.stack.file), TEMPLATE, "--wait", "--", "--epochs", "3")
        shown = platform.stacks(*run, kubeconfig=scientists)
        until(lambda: len(ended_runs(platform)) == 2, "both have ended")
    found = {each["metadata"]["name"]: each for each in ended_runs(platform)}
    by_command = found.pop(shown.strip().partition("/")[2])
    (by_schedule,) = found.values()
    assert [each["status"]["jobStatus"] for each in (by_command, by_schedule)] == ["SUCCEEDED", "SUCCEEDED"]
    entrypoints = [each["spec"]["entrypoint"] for each in (by_command, by_schedule)]
    assert entrypoints == ["echo vetted --epochs 3", "echo vetted --all"]
    authors = [each["metadata"]["annotations"][AUTHOR_ANNOTATION] for each in (by_command, by_schedule)]
    accounts = (SCIENTIST, f"{TEMPLATE}.schedule")
    assert authors == [f"system:serviceaccount:{NAMESPACE}:{account}" for account in accounts]
    log = ("logs", str(platform.stack.file), f"{NAMESPACE}/{by_command['metadata']['name']}", "--follow")
    assert "vetted --epochs 3" in platform.stacks(*log, kubeconfig=scientists)
    until(lambda: not clusters(platform, TEMPLATE), "their RayClusters are gone")


MINE = """\
import sys, ray, helper
ray.init()
print("counted", ray.get(ray.remote(lambda: helper.count()).remote()), *sys.argv[1:])
"""


def a_run_brings_the_code_of_a_folder(platform: Platform, steps: Steps, scientists: Path, folder: Path) -> None:
    """With a module that a task on Ray imports."""
    (folder / "train.py").write_text(MINE)
    (folder / "helper.py").write_text("def count(): return 6 * 7")
    with steps.step("a run with local code"):
        run = ("run", str(platform.stack.file), SANDBOX, "--working-dir", str(folder), "--wait", "--", "--epochs", "3")
        name = platform.stacks(*run, kubeconfig=scientists).strip()
    body = json.loads(platform.kubectl("get", "rayjob", "-n", NAMESPACE, name.partition("/")[2], "-o", "json"))
    assert body["status"]["jobStatus"] == "SUCCEEDED", body["status"]
    code = body["metadata"]["annotations"][CODE_ANNOTATION]
    log = platform.stacks("logs", str(platform.stack.file), name, "--follow", kubeconfig=scientists)
    assert "counted 42 --epochs 3" in log
    assert f"Uploading package {code}" in log
    until(lambda: body["metadata"]["name"] in platform.recorded_runs(), "its record is complete")
    assert platform.recorded_runs()[body["metadata"]["name"]]["code"] == code
    stored = ("get", "configmaps", "-n", NAMESPACE, "-o", "name")
    assert body["metadata"]["name"] in platform.kubectl(*stored)
    platform.stacks("cancel", str(platform.stack.file), name, kubeconfig=scientists)
    until(lambda: body["metadata"]["name"] not in platform.kubectl(*stored), "its code is deleted")


def ended_runs(platform: Platform) -> list[dict[str, Any]]:
    listed = platform.kubectl("get", "rayjobs", "-n", NAMESPACE, "-l", f"{TEMPLATE_LABEL}={TEMPLATE}", "-o", "json")
    return [each for each in json.loads(listed)["items"] if "endTime" in each.get("status", {})]


DEADLINES = {WAITS: "preRunningDeadlineSeconds", ENDLESS: "activeDeadlineSeconds"}


def a_job_that_does_not_start_or_end_ends_at_its_deadline(platform: Platform) -> None:
    def set_deadlines(seconds: int) -> None:
        """Not by the stack, which would create the jobs again."""
        for name, key in DEADLINES.items():
            patch = json.dumps({"spec": {key: seconds}})
            platform.kubectl("patch", "rayjob", "-n", NAMESPACE, name, "--type=merge", "-p", patch)

    set_deadlines(1)
    reasons = {WAITS: "PreRunningDeadlineExceeded", ENDLESS: "DeadlineExceeded"}
    until(lambda: {name: _reason(platform, name) for name in DEADLINES} == reasons, "both have failed")
    set_deadlines(LONG)
    until(lambda: not any(clusters(platform, name) for name in DEADLINES), "their RayClusters are gone")


def _reason(platform: Platform, name: str) -> str:
    """Why a job has failed; empty if it has not."""
    found = status(platform, name)
    return str(found["reason"]) if found.get("jobDeploymentStatus") == "Failed" else ""


def the_operator_has_the_metrics_by_which_alerts_judge_jobs(platform: Platform) -> None:
    found = platform.metric_of_operator(KubeRay.JOB_STATUS)
    assert {name: found[name]["deployment_status"] for name in (SUCCEEDS, FAILS, WAITS)} == {
        SUCCEEDS: "Complete",
        FAILS: "Failed",
        WAITS: "Failed",
    }
    assert found[FAILS].keys() == {"namespace", "name", "uid", "deployment_status"}
    assert found[FAILS]["namespace"] == NAMESPACE


def no_ended_job_starts_again(platform: Platform) -> None:
    assert "~ jobs" not in platform.stack.changes_nothing(refreshed=True).output


def the_run_history_has_what_ray_and_kubernetes_knew(platform: Platform) -> None:
    until(lambda: platform.recorded_runs().keys() >= {SUCCEEDS, FAILS, WAITS}, "all records are complete")
    runs = platform.recorded_runs()
    facts = {name: tuple(runs[name][key] for key in ("status", "reason", "exitCode")) for name in (SUCCEEDS, FAILS)}
    assert facts == {SUCCEEDS: ("SUCCEEDED", "", 0), FAILS: ("FAILED", "AppFailed", 3)}
    assert (runs[WAITS]["deploymentStatus"], runs[WAITS]["reason"]) == ("Failed", "PreRunningDeadlineExceeded")
    assert len(runs[FAILS]["attempts"]) == 2
    whole = json.loads(platform.runs(WAITS, "--format", "json"))
    assert any("in gang unschedulable" in each["message"] for each in whole["events"].values())
    whole = json.loads(platform.runs(SUCCEEDS, "--format", "json"))
    assert {each["gpus"] for each in whole["pods"].values()} == {0}
    assert whole["gpuHours"] == 0
    assert whole["rayEvents"]


def records_outlive_jobs_and_the_pod_that_keeps_them(platform: Platform) -> None:
    platform.stack.edit(lambda settings: settings["tenants"][0].update(jobs=[]))
    platform.stack.up()
    platform.kubectl("delete", "pod", "-n", NAMESPACE, POD, "--wait=false")
    platform.kubectl("wait", "--for=delete", "-n", NAMESPACE, f"pod/{POD}", "--timeout=300s")
    platform.kubectl("rollout", "status", "-n", NAMESPACE, "statefulset/ray-run-history", "--timeout=300s")
    listed = platform.runs()
    assert re.search(rf"{NAMESPACE}/{SUCCEEDS} +own +SUCCEEDED", listed)
    assert "AppFailed" in listed
    assert "counted 42" in platform.runs(SUCCEEDS, "--logs")
    # Of a job in HTTPMode only the head had the log, and it is gone.
    assert "no data at s3://bucket" in platform.runs(FAILS, "--logs")


def test_jobs_of_a_stack_and_the_history_of_their_runs(platform: Platform, steps: Steps, tmp_path: Path) -> None:
    a_suspended_job_has_no_cluster_and_a_resumed_one_begins_again(platform, steps)
    a_job_that_never_starts_shows_why(platform)
    a_job_succeeds_its_cluster_is_gone_after_a_while_and_its_log_stays(platform)
    a_failed_job_is_tried_again_and_its_reason_is_readable_when_its_clusters_are_gone(platform)
    a_job_is_submitted_by_hand(platform)
    scientists = platform.kubeconfig_of(SCIENTIST)
    a_template_is_run_by_the_command_and_by_the_pod_of_its_schedule(platform, steps, scientists)
    a_run_brings_the_code_of_a_folder(platform, steps, scientists, tmp_path)
    a_job_that_does_not_start_or_end_ends_at_its_deadline(platform)
    the_operator_has_the_metrics_by_which_alerts_judge_jobs(platform)
    no_ended_job_starts_again(platform)
    the_run_history_has_what_ray_and_kubernetes_knew(platform)
    records_outlive_jobs_and_the_pod_that_keeps_them(platform)
