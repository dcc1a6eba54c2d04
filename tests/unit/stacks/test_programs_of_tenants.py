"""Pods of the stack's own in the namespaces of tenants: idle termination, run history and schedules."""

from collections.abc import Iterator
from typing import Any

from kuberay.pod_security import violations
from stacks.load import parse
from stacks.objects.ray_clusters import template_objects
from stacks.objects.tenant_programs import idle_termination, run_history
from stacks.settings import StackSettings

OF_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
OF_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
HEAD = {"containers": [{"name": "ray-head", "securityContext": OF_CONTAINER}], "securityContext": OF_POD}
CLUSTER = {
    "rayVersion": "2.60.0",
    "image": "rayproject/ray:2.60.0",
    "autoscaling": False,
    "podDefaults": "none",
    "head": {"podTemplate": {"spec": HEAD}},
}
NIGHTLY = {
    "name": "nightly",
    "entrypoint": "python train.py",
    "submissionMode": "HTTPMode",
    "cluster": CLUSTER,
    "cron": {"schedule": "0 3 * * *"},
}


def stack(pod_security: str) -> StackSettings:
    tenant = {
        "name": "team-a",
        "podSecurity": pod_security,
        "storage": [{"name": "records", "storageClass": "shared", "size": "1Gi"}],
        "runHistory": {"storage": "records"},
        "clusters": [{**CLUSTER, "name": "adopted", "idleTerminationOptions": {"timeoutSeconds": 600}}],
        "jobTemplates": [NIGHTLY],
    }
    return parse({"tenants": [tenant]})


def templates(settings: StackSettings) -> Iterator[dict[str, Any]]:
    (tenant,) = settings.tenants
    yield idle_termination(settings, tenant)["deployment"]["spec"]["template"]
    yield run_history(settings, tenant)["stateful-set"]["spec"]["template"]
    schedule = template_objects(settings, tenant, tenant.job_templates[0])["nightly:schedule"]
    yield schedule["spec"]["jobTemplate"]["spec"]["template"]


def test_they_meet_pod_security_also_beside_a_cluster_without_defaults() -> None:
    """Pod templates give such a cluster what the level requires, and these pods do not have them."""
    found = list(templates(stack("restricted")))
    assert len(found) == 3
    for template in found:
        assert list(violations(template, (), "restricted")) == []


def test_below_restricted_they_run_as_the_cluster_does() -> None:
    for template in templates(stack("baseline")):
        assert "runAsNonRoot" not in template["spec"].get("securityContext", {})
