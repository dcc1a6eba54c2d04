"""When objects count as ready."""

from typing import Any

from local.plugins.kubernetes.readiness import Verdict, claim_rule, rule_for


def verdict(kind: str, api_version: str = "apps/v1", others: Any = (), **body: Any) -> Verdict | None:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}, **body}
    rule = rule_for(obj, obj)
    return rule.check(obj, others) if rule else None


def ready(*arguments: Any, **body: Any) -> bool:
    found = verdict(*arguments, **body)
    return found is None or found.ready


def conditions(**status: str) -> list[dict[str, str]]:
    return [{"type": name, "status": value} for name, value in status.items()]


def test_a_deployment_is_ready_when_all_new_pods_are_available_and_the_old_ones_have_ended() -> None:
    done = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    spec = {"replicas": 3}
    assert ready("Deployment", spec=spec, status=done)
    for short in ({"observedGeneration": 1}, {"updatedReplicas": 2}, {"availableReplicas": 2}, {"replicas": 4}):
        assert not ready("Deployment", spec=spec, status=done | short), short


def test_a_deployment_that_cannot_progress_is_reported() -> None:
    progressing = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late"}
    found = verdict("Deployment", spec={}, status={"observedGeneration": 2, "conditions": [progressing]})
    assert found is not None
    assert found.message == "[ProgressDeadlineExceeded] late"


def test_a_stateful_set_updates_only_above_its_partition() -> None:
    spec = {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}
    status = {"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 1}
    assert ready("StatefulSet", spec=spec, status=status)
    assert not ready("StatefulSet", spec={"replicas": 3}, status=status)
    assert ready("StatefulSet", spec={"replicas": 3, "updateStrategy": {"type": "OnDelete"}}, status=status)


def test_a_daemon_set_is_ready_on_every_node_or_on_none() -> None:
    status = {"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}
    assert not ready("DaemonSet", status=status)
    assert ready("DaemonSet", status=status | {"numberAvailable": 2})
    assert ready("DaemonSet", status={"observedGeneration": 2})


def test_a_job_that_failed_is_not_waited_for() -> None:
    assert ready("Job", "batch/v1", status={"conditions": conditions(Complete="True")})
    failed = verdict("Job", "batch/v1", status={"conditions": conditions(Failed="True")})
    assert failed is not None
    assert failed.failed


def test_a_service_waits_for_each_pod_behind_it_and_is_accepted_without_any() -> None:
    def behind(*endpoints: bool) -> Verdict | None:
        slices = [{"endpoints": [{"conditions": {"ready": each}} for each in endpoints]}]
        return verdict("Service", "v1", slices, spec={"selector": {"app": "web"}})

    pending, none, done = behind(True, False), behind(), behind(True, True)
    assert pending is not None
    assert (pending.ready, pending.settles) == (False, False)
    assert none is not None
    assert (none.ready, none.settles) == (False, True)
    assert done is not None
    assert done.ready


def test_a_service_that_selects_no_pods_or_has_no_address_is_not_awaited() -> None:
    selects = {"selector": {"app": "web"}}
    assert ready("Service", "v1", spec={})
    assert ready("Service", "v1", spec=selects | {"clusterIP": "None"})
    assert ready("Service", "v1", spec=selects | {"type": "ExternalName"})


def test_a_load_balancer_needs_an_address_as_well() -> None:
    spec = {"type": "LoadBalancer"}
    assert not ready("Service", "v1", spec=spec, status={"loadBalancer": {}})
    assert ready("Service", "v1", spec=spec, status={"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})


def test_a_claim_that_binds_late_is_ready_while_it_is_pending() -> None:
    pending = {"status": {"phase": "Pending"}}
    assert claim_rule(binds_late=True).check(pending, ()).ready
    assert not claim_rule(binds_late=False).check(pending, ()).ready
    assert claim_rule(binds_late=False).check({"status": {"phase": "Bound"}}, ()).ready


def test_a_definition_is_ready_when_its_kind_is_served() -> None:
    kind = ("CustomResourceDefinition", "apiextensions.k8s.io/v1")
    assert not ready(*kind, status={})
    assert ready(*kind, status={"conditions": conditions(Established="True")})


def test_a_quota_is_ready_when_it_is_in_force() -> None:
    spec = {"hard": {"cpu": "1000m"}}
    assert not ready("ResourceQuota", "v1", spec=spec, status={})
    assert ready("ResourceQuota", "v1", spec=spec, status={"hard": {"cpu": "1"}})


def test_a_custom_resource_is_awaited_only_with_the_annotation() -> None:
    plain = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "x"}}
    assert rule_for(plain, plain) is None
    annotated = plain | {"metadata": {"annotations": {"pulumi.com/waitFor": "condition=Ready"}}}
    rule = rule_for(annotated, annotated)
    assert rule is not None
    assert not rule.check(annotated, ()).ready


def test_skip_await_disables_every_wait() -> None:
    annotations = {"pulumi.com/skipAwait": "true", "pulumi.com/waitFor": "condition=Ready"}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": annotations}}
    assert rule_for(obj, obj) is None
