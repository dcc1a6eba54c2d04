"""What a tenant relies on when a RayJob is provisioned."""

from typing import Any

import pulumi

from components.ray_cluster.manifests import ray_cluster
from components.ray_job.component import RayJob, RayJobArgs
from components.ray_job.manifests import RUN_ANNOTATION, ray_job, ray_job_objects
from components.ray_job.settings import JOB_LABEL, RayJobSettings
from testbed.recorder import Recorder, record


def provisioned(suspend: bool = False, **cluster: Any) -> Recorder:
    template = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **cluster}
    entry = {"name": "count", "entrypoint": "python count.py", "suspend": suspend, "cluster": template}
    settings = RayJobSettings.model_validate(entry)
    own = settings.own_cluster
    assert own

    def program() -> None:
        body = ray_job(settings, ray_cluster(own, ()), own)
        operator = pulumi.ComponentResource("ray-platform:index:KubeRayOperator", "operator")
        pulumi.CustomResource("t:t:Guard", "guard", {}, pulumi.ResourceOptions(parent=operator))
        RayJob(
            "team-a/count",
            RayJobArgs(settings, list(ray_job_objects(settings, body)), "team-a"),
            pulumi.ResourceOptions(depends_on=[operator]),
        )

    return record(program)


def test_it_is_one_ray_job_under_the_component_after_the_operator() -> None:
    recorder = provisioned()
    made = recorder.registered["team-a/count-ray-job"]
    assert (made.type, made.parent) == ("kubernetes:ray.io/v1:RayJob", "team-a/count")
    assert made.inputs["metadata"]["namespace"] == "team-a"
    assert recorder.made_before("guard", "team-a/count-ray-job")


def test_only_another_run_replaces_it_and_only_suspend_reaches_it() -> None:
    made = provisioned(suspend=True).registered["team-a/count-ray-job"]
    assert made.replaced_on == (f'metadata.annotations["{RUN_ANNOTATION}"]',)
    assert set(made.ignored) == {"metadata.labels", *(f"spec.{key}" for key in made.inputs["spec"])} - {"spec.suspend"}


def test_the_head_of_its_cluster_is_not_evicted_unless_configured() -> None:
    budget = provisioned().registered["team-a/count-head-disruption-budget"]
    assert budget.inputs["spec"]["selector"]["matchLabels"] == {JOB_LABEL: "count", "ray.io/node-type": "head"}
    evictable = provisioned(head={"evictable": True})
    assert "team-a/count-head-disruption-budget" not in evictable.registered
