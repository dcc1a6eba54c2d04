"""RayJobs and external clusters in a stack: what they use, where they connect to, and what an edit does to them."""

from decimal import Decimal
from typing import Any

import pytest

from components.external_cluster.settings import EXTERNAL_LABEL
from components.ray_job.settings import JOB_LABEL
from core.problems import StackFileError
from stacks.commands.impact.other_objects import of_objects
from stacks.load import parse
from stacks.objects.external_ray import to_external
from stacks.objects.network import policies_of_clusters
from stacks.objects.stack import render
from stacks.planning.plan import plan_of
from stacks.settings import StackSettings

IMAGE = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
EIGHT_GPUS = {
    **IMAGE,
    "autoscaling": False,
    "workerGroups": [
        {"groupName": "gpu", "pool": "a100", "gpus": 8, "cpu": 32, "memory": "128Gi", "replicas": 1, "maxReplicas": 1}
    ],
}
NODES = [{"pool": "a100", "count": 2, "cpu": 64, "memory": "512Gi", "gpus": 8}]


def job(name: str = "train", **settings: Any) -> dict[str, Any]:
    return {"name": name, "entrypoint": "python train.py", "cluster": EIGHT_GPUS, **settings}


def values(*jobs: dict[str, Any], others: dict[str, Any] | None = None, **tenant: Any) -> dict[str, Any]:
    return {"nodes": NODES, "tenants": [{"name": "team-a", "jobs": list(jobs), **tenant}], **(others or {})}


def stack(*jobs: dict[str, Any], **more: Any) -> StackSettings:
    return parse(values(*jobs, **more))


def effects(before: StackSettings, after: StackSettings, kind: str = "RayJob") -> list[str]:
    found = [each for each in of_objects(render(before), render(after)) if each.kind == kind]
    return [effect.text for each in found for effect in each.effects]


def test_a_job_counts_in_the_plan_with_its_submitter() -> None:
    plan = plan_of(stack(job()))
    (train,) = plan.tenants[0].clusters
    assert (train.name, int(train.starts["nvidia.com/gpu"])) == ("team-a/train", 8)
    assert [group.workers.group for group in train.groups] == ["head", "gpu", "submitter"]
    (train,) = plan_of(stack(job(submissionMode="HTTPMode"))).tenants[0].clusters
    assert [group.workers.group for group in train.groups] == ["head", "gpu"]
    (beside,) = plan_of(stack(job(submissionMode="SidecarMode"), podSecurity="baseline")).tenants[0].clusters
    assert beside.starts["cpu"] - train.starts["cpu"] == Decimal("0.5")
    assert plan_of(stack(jobTemplates=[job()])).tenants[0].clusters == ()


def test_the_code_of_runs_is_bounded_in_number() -> None:
    def entries(**template: Any) -> dict[str, str]:
        settings = stack(jobTemplates=[job(**template)], users=["group:team-a"])
        found = [each.body for each in render(settings).values()]
        [counts] = [each for each in found if each["metadata"]["name"] == "ray-platform-objects"]
        hard: dict[str, str] = counts["spec"]["hard"]
        return hard

    assert "count/configmaps" not in entries()
    assert entries(localCode=True)["count/configmaps"] == "500"


def test_jobs_may_use_a_quota_one_after_the_other() -> None:
    assert stack(job("first"), job("second"), quota={"gpus": 8})


@pytest.mark.parametrize("key", ["jobs", "jobTemplates"])
def test_the_pods_of_a_job_or_of_runs_have_policies_of_their_own(key: str) -> None:
    def policies(**keys: Any) -> dict[str, Any]:
        settings = stack(network={"otherClusters": True}, **keys)
        return {body["metadata"]["name"]: body for _, body in policies_of_clusters(settings, settings.tenants[0])}

    found = policies(**{key: [job()]})
    assert found["cluster.train"]["spec"]["podSelector"] == {"matchLabels": {JOB_LABEL: "train"}}
    others = found["clusters-other"]["spec"]["podSelector"]["matchExpressions"]
    assert {"key": JOB_LABEL, "operator": "DoesNotExist"} in others
    assert JOB_LABEL not in str(policies())


@pytest.mark.parametrize(
    ("edit", "effect"),
    [
        ({"runId": "2"}, "its settings or its runId change: the job stops if it runs, and starts again"),
        ({"suspend": True}, "is suspended: its job stops if it runs, and its cluster is deleted"),
    ],
)
def test_the_impact_of_an_edit(edit: dict[str, Any], effect: str) -> None:
    (found,) = effects(stack(job()), stack(job(**edit)))
    assert found.startswith(effect)


def test_the_impact_of_adding_and_removing_a_job_and_of_what_its_tenant_adds() -> None:
    assert effects(stack(), stack(job()))[0].startswith("its job starts")
    assert effects(stack(job()), stack())[0].startswith("its job stops if it runs")
    before, after = stack(job()), stack(job(), images={"pullSecrets": ["registry"]})
    assert render(before)["RayJob", "team-a/train"].body["spec"] != render(after)["RayJob", "team-a/train"].body["spec"]
    assert effects(before, after) == []


@pytest.mark.parametrize("scheduler", [{"volcano": {}}, {"kueue": {}}])
def test_a_job_waits_in_its_tenants_queue(scheduler: dict[str, Any]) -> None:
    others = {"scheduler": scheduler}
    settings = stack(job(), others=others, queue={"capability": {"gpus": 16, "cpu": 128, "memory": "512Gi"}})
    labels = render(settings)["RayJob", "team-a/train"].body["metadata"]["labels"]
    assert "team-a" in labels.values()


def test_a_workload_of_kueue_has_at_most_18_pod_sets_with_the_head_and_the_submitter() -> None:
    sizes = {"cpu": 1, "memory": "1Gi", "replicas": 1, "maxReplicas": 1}
    groups = [{"groupName": f"group-{index}", **sizes} for index in range(17)]
    cluster = {**IMAGE, "autoscaling": False, "workerGroups": groups}
    kueue: dict[str, Any] = {"others": {"scheduler": {"kueue": {}}}, "queue": {}}
    assert stack(job(cluster=cluster, submissionMode="HTTPMode"), clusters=[{**cluster, "name": "training"}], **kueue)
    with pytest.raises(StackFileError, match=r"jobs\[0\]\.cluster\.workers: .*at most 16 worker groups here.*are 17"):
        stack(job(cluster=cluster), **kueue)


def test_its_runs_wait_in_the_queue_of_the_template() -> None:
    queued = {"scheduler": {"volcano": {}}, "queues": [{"name": "shared", "allowedNamespaces": ["team-a"]}]}
    settings = stack(jobTemplates=[job(cluster={**EIGHT_GPUS, "queue": "shared"})], others=queued)
    held = render(settings)["RayCronJob", "team-a/train"].body
    assert held["metadata"]["labels"]["volcano.sh/queue-name"] == "shared"


def test_a_new_template_is_shown_by_itself_and_not_with_all_its_objects() -> None:
    before, after = stack(), stack(jobTemplates=[job(cron={"schedule": "@daily"})])
    found = {f"{each.kind} {each.name}": each.effects for each in of_objects(render(before), render(after))}
    assert [each.text for each in found["RayCronJob team-a/train"]] == ["users of the tenant can run the job template"]
    assert [name for name in found if "train" in name.partition("/")[2]] == ["RayCronJob team-a/train"]


def test_an_edit_of_a_schedule_stops_no_run() -> None:
    before, after = (stack(jobTemplates=[job(cron={"schedule": when})]) for when in ("0 3 * * *", "0 4 * * *"))
    (text,) = effects(before, after, "CronJob")
    assert text.endswith(": applies from its next time on; what runs continues")


def test_an_edit_of_a_template_stops_no_run() -> None:
    before, after = stack(jobTemplates=[job()]), stack(jobTemplates=[job(activeDeadlineSeconds=60)])
    (text,) = effects(before, after, "RayCronJob")
    assert text.endswith(": applies to runs that are created from now on; existing ones stay as they are")


CPU_NODES = [{"pool": "cpu", "count": 1, "cpu": 8, "memory": "32Gi", "gpus": 0}]


def external(**settings: Any) -> dict[str, Any]:
    image = "rayproject/ray:2.60.0"
    return {"name": "lab", "dashboardAddress": "https://ray.example.com:8265", "image": image, **settings}


def with_external(*clusters: dict[str, Any], jobs: int = 0, **job: Any) -> StackSettings:
    listed = [
        {"name": f"count-{at}", "entrypoint": "python count.py", "externalCluster": "lab", **job} for at in range(jobs)
    ]
    tenant = {"name": "team-a", "externalClusters": list(clusters), "jobs": listed}
    return parse({"nodes": CPU_NODES, "tenants": [tenant]})


def way(**settings: Any) -> Any:
    """Where the policy of an external cluster lets its pods connect to."""
    (found,) = with_external(external(**settings)).tenants[0].external_clusters
    policy = to_external(found)["spec"]
    assert policy["podSelector"] == {"matchLabels": {EXTERNAL_LABEL: "lab"}}
    assert policy["policyTypes"] == ["Egress"]
    (rule,) = policy["egress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": found.dashboard.port}]
    return rule.get("to")


def test_pods_connect_to_the_namespace_of_a_service_to_an_address_or_to_the_networks_of_a_name() -> None:
    (peer,) = way(dashboardAddress="http://lab-head-svc.team-b.svc:8265")
    assert peer == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team-b"}}}
    assert way(dashboardAddress="http://192.0.2.7:8265") == [{"ipBlock": {"cidr": "192.0.2.7/32"}}]
    assert way(cidrs=["192.0.2.0/24"]) == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    assert way() is None


def test_the_pods_that_submit_jobs_count_on_the_nodes() -> None:
    plan = plan_of(with_external(external(), jobs=17))
    ((pod, number),) = plan.left_out  # eight CPUs have room for 16 with 500m each
    assert (pod.group, number) == ("submitter", 1)


def effects_on_jobs(before: StackSettings, after: StackSettings) -> dict[str, list[str]]:
    found = [each for each in of_objects(render(before), render(after)) if each.kind == "Job"]
    return {each.name: [effect.text for effect in each.effects] for each in found}


def test_the_impact_of_another_address_and_of_another_run() -> None:
    before = with_external(external(), jobs=1)
    moved = effects_on_jobs(before, with_external(external(dashboardAddress="https://other.example.com:8265"), jobs=1))
    assert moved["team-a/lab-external"] == ["a pod connects to the external cluster again"]
    assert moved["team-a/count-0-external"] == []
    again = effects_on_jobs(before, with_external(external(), jobs=1, runId="2"))
    assert again["team-a/count-0-external"][0].startswith("its settings or its runId change: the job stops if it runs")
    assert effects_on_jobs(before, with_external(external()))["team-a/count-0-external"] == [
        "its job on the external cluster stops if it runs"
    ]
