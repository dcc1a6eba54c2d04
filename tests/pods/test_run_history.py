"""A run history on a claim that exists already: a later stack reads the runs of one that was destroyed. The namespace
is at level baseline, where KubeRay's SidecarMode works."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.run_history.manifests import POD
from testbed.pods.platform import Edit, Platform, pods_cluster
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(600, func_only=True)]

NAMESPACE, JOB = "archive", "prepare"

STANDING, SENT, LEFT = "standing", "sent", "left"
"""A RayCluster, a job that is sent to it and ends, and one that runs until the RayCluster is gone."""

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "runs", "namespace": NAMESPACE},
    "spec": {
        "storageClassName": "standard",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def of_the_namespace(settings: dict[str, Any]) -> None:
    """No RayCluster: a tenant in the namespace, and its run history on the claim."""
    settings["operator"] = {"install": "existing"}
    settings["tenants"] = [
        {
            "name": NAMESPACE,
            "createNamespace": False,
            "allowDelete": True,
            "storage": [{"name": "runs", "claim": "runs"}],
            "runHistory": {"storage": "runs", "image": pods_cluster()["image"]},
        }
    ]


def with_a_job(settings: dict[str, Any]) -> None:
    """The same with a job that a container in the head's pod submits, and a RayCluster for others."""
    of_the_namespace(settings)
    model = pods_cluster()
    cluster = {key: model[key] for key in ("rayVersion", "image", "head")} | {"autoscaling": False}
    job = {"name": JOB, "entrypoint": "echo prepared", "submissionMode": "SidecarMode", "waitFor": "succeeded"}
    tenant = settings["tenants"][0]
    tenant["jobs"] = [{**job, "cluster": cluster}]
    tenant["clusters"] = [{"name": STANDING, **cluster}]
    tenant["runHistory"]["readHeads"] = True


def submit(platform: Platform, job: str, entrypoint: str) -> None:
    """As a user of the RayCluster does."""
    (head,) = platform.pods(f"ray.io/node-type=head,ray.io/cluster={STANDING}", NAMESPACE)
    command = f"ray job submit --address http://127.0.0.1:8265 --no-wait --submission-id {job} -- {entrypoint}"
    platform.kubectl("exec", "-n", NAMESPACE, head, "-c", "ray-head", "--", *command.split())


def test_a_stack_reads_the_runs_of_one_that_was_destroyed(
    without_clusters: Platform, tmp_path: Path, steps: Steps
) -> None:
    without_clusters.create_namespace(NAMESPACE, "baseline")
    without_clusters.kubectl("create", "-f", "-", given=yaml.safe_dump(CLAIM))

    def up(name: str, edit: Edit) -> Platform:
        made = Platform.of(without_clusters.rehearsal, name, tmp_path, edit)
        made.stack.up()
        return made

    with steps.step("a stack with jobs, their records, and its `destroy`"):
        first = up("first", with_a_job)
        submit(first, SENT, "echo submitted by hand")
        submit(first, LEFT, "sleep infinity")
        until(lambda: {JOB, SENT} <= first.recorded_runs().keys(), "records of what has ended are complete")
        first.stack.edit(lambda settings: settings["tenants"][0].update(clusters=[]))
        first.stack.up()
        until(
            lambda: LEFT in first.recorded_runs(), "the record of what has run until its cluster was gone is complete"
        )
        first.stack.destroy()
    assert POD not in without_clusters.pods("", NAMESPACE)
    with steps.step("another stack that reads the record"):
        second = up("second", of_the_namespace)
        found = second.recorded_runs()
        assert found.keys() == {JOB, SENT, LEFT}
        assert "prepared" in second.runs(JOB, "--logs")
        assert "submitted by hand" in second.runs(SENT, "--logs")
        assert (found[SENT]["status"], found[SENT]["exitCode"], found[SENT]["lastSeen"]) == ("SUCCEEDED", 0, None)
        assert (found[LEFT]["status"], found[LEFT]["onCluster"]) == ("RUNNING", STANDING)
        assert found[LEFT]["lastSeen"]
        second.stack.destroy()
