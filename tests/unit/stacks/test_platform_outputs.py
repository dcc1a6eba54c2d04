"""A separate stack of a tenant, on a platform of another stack."""

from typing import Any

import pulumi
import pytest

from stacks.load import parse
from stacks.objects.platform_outputs import PlatformMismatchError, check, exported
from stacks.program.build import build
from stacks.settings import StackSettings
from testbed.recorder import Recorder, record

PLATFORM = "acme/ray-platform/prod"

CLUSTER = {"name": "adhoc", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}


def platform(redis: dict[str, Any] | None = None, queues: list[Any] | None = None, **tenant: Any) -> dict[str, Any]:
    """The outputs of the platform's stack, with these settings of its Redis and its tenant team-a."""
    tenant_settings = {"name": "team-a", "clusterNames": ["adhoc"], **tenant}
    scheduled = {} if queues is None else {"scheduler": {"volcano": {}}, "queues": queues}
    stack = parse({"tenants": [tenant_settings, {"name": "team-b"}], "redis": redis, **scheduled})
    return {"operator": {"version": "1.6.2", "namespace": "ray-system"}, **exported(stack)}


def tenants_own(**settings: Any) -> StackSettings:
    all_settings = {"platform": {"stack": PLATFORM}, "tenants": [{"name": "team-a", "clusters": [CLUSTER]}], **settings}
    return parse(all_settings)


def mismatch(stack: StackSettings, outputs: dict[str, Any]) -> str:
    with pytest.raises(PlatformMismatchError) as raised:
        check(stack, PLATFORM, outputs)
    return str(raised.value)


def test_a_stack_that_matches_the_platform_is_valid() -> None:
    check(tenants_own(), PLATFORM, platform())


def test_a_namespace_without_a_tenant_is_reported_with_the_tenants_namespaces() -> None:
    reasons = mismatch(tenants_own(tenants=[{"name": "team-c"}]), platform())
    assert "namespace 'team-c' belongs to no tenant there; namespaces of tenants: team-a, team-b" in reasons


def test_a_cluster_that_nobody_could_access_is_reported() -> None:
    reasons = mismatch(tenants_own(), platform(clusterNames=["other"]))
    assert "RayCluster 'adhoc' is not in clusterNames of tenant 'team-a' (other)" in reasons


def test_jobs_and_services_that_no_packet_would_reach_are_reported() -> None:
    template = {key: CLUSTER[key] for key in ("rayVersion", "image")}
    jobs = [
        {"name": "survey", "entrypoint": "python survey.py", "cluster": template},
        {"name": "count", "entrypoint": "python count.py", "clusterSelector": {"ray.io/cluster": "adhoc"}},
    ]
    served = {"applications": [{"import_path": "chat:app"}]}
    services = [{"name": "chat", "serveConfigV2": served, "cluster": template}]
    stack = tenants_own(tenants=[{"name": "team-a", "clusters": [CLUSTER], "jobs": jobs, "services": services}])
    check(stack, PLATFORM, platform(jobNames=["survey"], serviceNames=["chat"]))
    reasons = mismatch(stack, platform(serviceNames=["talk"]))
    assert "RayJob 'survey' is not in jobNames of tenant 'team-a' (none)" in reasons
    assert "RayService 'chat' is not in serviceNames of tenant 'team-a' (talk)" in reasons
    assert "count" not in reasons


def test_versions_that_do_not_match_are_reported() -> None:
    outputs = {**platform(), "operator": {"version": "1.7.0", "namespace": "ray-system"}}
    assert "operator.version is 1.6.2, and the platform has 1.7.0: set it to 1.7.0" in mismatch(tenants_own(), outputs)


def test_missing_priorities_are_reported_because_no_pod_would_be_admitted() -> None:
    outputs = {**platform(), "priorityClasses": {"head": None, "worker": None}}
    assert "priorityClasses.head is ray-head, and the platform has none" in mismatch(tenants_own(), outputs)
    check(tenants_own(priorityClasses={"install": "none"}), PLATFORM, outputs)


def test_images_of_other_registries_and_missing_pull_secrets_are_reported() -> None:
    outputs = platform(images={"registries": ["quay.io"], "pullSecrets": ["registry"]})
    reasons = mismatch(tenants_own(), outputs)
    assert "RayCluster 'adhoc' has image 'rayproject/ray:2.60.0', and the tenant may use quay.io" in reasons
    assert "images.pullSecrets of tenant 'team-a' lacks registry" in reasons


def test_a_cluster_uses_the_redis_that_the_platform_has() -> None:
    kept = [{"name": "team-a", "clusters": [{**CLUSTER, "faultTolerance": True}]}]
    stack = tenants_own(redis={}, tenants=kept)
    check(stack, PLATFORM, platform(redis={}))
    assert "and the platform has none: set redis as it is there" in mismatch(stack, platform())
    assert "and the platform has ray-redis-0" in mismatch(stack, platform(redis={"scope": "perTenant"}))
    check(tenants_own(redis={}), PLATFORM, platform())


def test_a_cluster_uses_a_scheduler_that_its_tenant_may_use() -> None:
    nodes = [{"pool": "cpu", "count": 1, "cpu": 32, "memory": "128Gi"}]
    platforms = {"scheduler": {"kueue": {}}, "queues": [{"name": "research"}], "nodes": nodes}
    outputs = {
        scheduler: {
            "operator": {"version": "1.6.2", "namespace": "ray-system"},
            **exported(
                parse(
                    {
                        **platforms,
                        "tenants": [
                            {
                                "name": "team-a",
                                "clusterNames": ["adhoc"],
                                "queue": "research",
                                "scheduler": ["kueue", scheduler],
                            }
                        ],
                    }
                )
            ),
        }
        for scheduler in ("kueue", "kubernetes")
    }
    own = tenants_own(
        scheduler={"kueue": {}}, tenants=[{"name": "team-a", "clusters": [{**CLUSTER, "scheduler": "kubernetes"}]}]
    )
    check(own, PLATFORM, outputs["kubernetes"])
    assert "would be scheduled by kubernetes, and the tenant may use kueue" in mismatch(own, outputs["kueue"])


def test_a_cluster_waits_in_a_queue_that_its_tenant_may_use() -> None:
    def waiting(**settings: Any) -> StackSettings:
        return tenants_own(scheduler={"volcano": {}}, tenants=[{"name": "team-a", "clusters": [CLUSTER], **settings}])

    outputs = platform(queues=[{"name": "research"}, {"name": "other"}], queue="research")
    check(waiting(queue="research"), PLATFORM, outputs)
    assert "would wait in queue 'other', and the tenant may use research" in mismatch(waiting(queue="other"), outputs)
    assert "names no queue, and the tenant's is 'research': add queue: research" in mismatch(waiting(), outputs)
    assert "scheduler is none, and the platform has volcano: set scheduler to {volcano: {}}" in mismatch(
        tenants_own(), outputs
    )
    assert "scheduler is volcano, and the platform has none: remove scheduler" in mismatch(waiting(), platform())


def test_a_stack_that_is_not_a_platform_is_reported() -> None:
    assert "has no output priorityClasses, tenants" in mismatch(
        tenants_own(), {"operator": {"version": "1.6.2"}, "priorityClasses": None, "tenants": None}
    )


def made(settings: StackSettings) -> Recorder:
    return record(lambda: build(settings))


def referred_to(monkeypatch: pytest.MonkeyPatch, **tenant: Any) -> None:
    """The platform's stack has the outputs of `platform`."""
    outputs = platform(**tenant)
    monkeypatch.setattr(
        pulumi.StackReference, "get_output", lambda _, name: pulumi.Output.from_input(outputs.get(name))
    )


def test_with_names_alone_only_ray_clusters_and_their_objects_are_created() -> None:
    stack = parse({"platform": {}, "tenants": [{"name": "team-a", "namespace": "research", "clusters": [CLUSTER]}]})
    recorder = made(stack)
    kinds = {kind for kind in recorder.kinds() if kind.startswith("kubernetes:")}
    assert kinds == {"kubernetes:ray.io/v1:RayCluster", "kubernetes:policy/v1:PodDisruptionBudget"}
    cluster = recorder.registered["research/adhoc-ray-cluster"]
    assert cluster.inputs["metadata"]["namespace"] == "research"
    assert "serviceAccountName" not in cluster.inputs["spec"]["headGroupSpec"]["template"]["spec"]


def test_the_outputs_of_the_platforms_stack_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    referred_to(monkeypatch, rayDeployer={"serviceAccount": "runner"})
    recorder = made(tenants_own())
    cluster = recorder.registered["team-a/adhoc-ray-cluster"]
    assert cluster.inputs["metadata"]["namespace"] == "team-a"
    assert cluster.inputs["spec"]["headGroupSpec"]["template"]["spec"]["serviceAccountName"] == "runner"


def test_a_mismatch_ends_the_program_with_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    referred_to(monkeypatch, clusterNames=[])
    with pytest.raises(pulumi.RunError, match=rf"does not match stack {PLATFORM}:\n  RayCluster 'adhoc' is not in"):
        made(tenants_own())
