"""NetworkPolicies and Ingresses on a real API server: accepted unchanged, edited in place, removed with the stack.

Their effect on packets is tested on a real node (tests/pods/test_network.py).
"""

from functools import partial
from typing import Any

import pytest
from kubernetes import client

from local.rehearsal import Rehearsal
from testbed.platform_stack import Stack, existing, training
from tests.engine.conftest import MakeStack
from tests.engine.people import Person, acting_as, refusal

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

ALLOWED = "konghq.com/strip-path"
"""An annotation that the stack file allows."""

FULL: dict[str, Any] = {
    "dashboardFrom": ["notebooks", {"namespace": "portal", "podLabels": {"app": "portal"}}],
    "clientFrom": [{"cidr": "2001:db8::/32"}],
    "serveFrom": [{"cidr": "10.20.0.0/16"}],
    "egress": [{"internet": True}, {"namespace": "minio", "ports": [9000]}],
    "ingress": True,
    "ingressHosts": ["*.team-a.example.com"],
    "ingressAnnotations": [ALLOWED],
    "otherClusters": True,
}


def all_network_settings(settings: dict[str, Any]) -> None:
    """All settings of the network, a cluster with a host name, and a Redis in the operator's namespace."""
    settings["redis"] = {}
    settings["network"] = {
        "monitoring": ["monitoring"],
        "ingressController": "ingress-nginx",
        "apiServer": {"cidrs": ["10.0.0.7/32"]},
    }
    settings["tenants"][0].update(network=FULL, clusterNames=["adhoc"], admins=["group:leads"])
    training(settings)["ingress"] = {"host": "ray.example.com", "className": "nginx", "tlsSecretName": "ray-tls"}


@pytest.fixture(scope="module")
def up(stack: MakeStack) -> Stack:
    """The dev stack with all network settings."""
    made = stack("network")
    made.edit(all_network_settings)
    made.up()
    return made


def items(cluster: Rehearsal, listed: Any) -> list[dict[str, Any]]:
    """The objects of a list, as in kubectl's output."""
    return list(cluster.client().sanitize_for_serialization(listed)["items"])


def policies(cluster: Rehearsal, namespace: str) -> dict[str, Any]:
    """The specs of a namespace's policies by name."""
    listed = client.NetworkingV1Api(cluster.client()).list_namespaced_network_policy(namespace)
    return {each["metadata"]["name"]: each["spec"] for each in items(cluster, listed)}


def ingresses(cluster: Rehearsal) -> list[dict[str, Any]]:
    """The tenant's Ingresses."""
    return items(cluster, client.NetworkingV1Api(cluster.client()).list_namespaced_ingress("team-a"))


def selected(cluster: Rehearsal, namespace: str, policy: str) -> list[dict[str, Any]]:
    """The pods that a policy is for."""
    labels = policies(cluster, namespace)[policy]["podSelector"]["matchLabels"]
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return items(cluster, client.CoreV1Api(cluster.client()).list_namespaced_pod(namespace, label_selector=selector))


def all_policies_are_accepted_and_stored_unchanged(up: Stack, cluster: Rehearsal) -> None:
    assert set(policies(cluster, "team-a")) == {
        *("default-deny", "dns", "egress", "submitters"),
        *("cluster.training", "head.training", "cluster.adhoc", "head.adhoc", "redis.adhoc"),
        *("clusters-other", "heads-other", "rediss-other"),
    }
    assert set(policies(cluster, "ray-system")) == {"default-deny", "kuberay-operator", "ray-redis"}
    up.changes_nothing()


def a_dashboard_has_a_host_name_with_tls(up: Stack, cluster: Rehearsal) -> None:
    (ingress,) = ingresses(cluster)
    assert ingress["spec"]["tls"] == [{"hosts": ["ray.example.com"], "secretName": "ray-tls"}]
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    services = items(cluster, client.CoreV1Api(cluster.client()).list_namespaced_service("team-a"))
    ports = {each["metadata"]["name"]: [port["port"] for port in each["spec"]["ports"]] for each in services}
    backend = path["backend"]["service"]
    assert backend["port"]["number"] in ports[backend["name"]]


def own_ingress(host: str | None, **spec: Any) -> dict[str, Any]:
    """An Ingress of the tenant's own."""
    service = {"service": {"name": "adhoc-head-svc", "port": {"number": 8265}}}
    paths = {"paths": [{"path": "/", "pathType": "Prefix", "backend": service}]}
    rule = {"http": paths, **({"host": host} if host else {})}
    return {"metadata": {"name": "own"}, "spec": {"rules": [rule], **spec}}


def with_annotation(key: str, value: str) -> dict[str, Any]:
    """An Ingress of the tenant's own, for one of its hosts, with an annotation."""
    ingress = own_ingress("a.team-a.example.com")
    return {**ingress, "metadata": {**ingress["metadata"], "annotations": {key: value}}}


INGRESSES = [
    (own_ingress("adhoc.team-a.example.com"), False),
    (own_ingress("ray.example.com", tls=[{"hosts": ["ray.example.com"], "secretName": "ray-tls"}]), False),
    (own_ingress("team-b.example.com"), True),
    (own_ingress("*.example.com"), True),
    (own_ingress(None), True),
    (own_ingress("a.team-a.example.com", tls=[{"hosts": ["team-b.example.com"], "secretName": "tls"}]), True),
    (
        own_ingress("a.team-a.example.com", defaultBackend={"service": {"name": "all", "port": {"number": 80}}}),
        True,
    ),
    (with_annotation("nginx.ingress.kubernetes.io/proxy-body-size", "8m"), False),
    (with_annotation("cert-manager.io/cluster-issuer", "letsencrypt"), False),
    (with_annotation(ALLOWED, "true; or more"), False),
]
"""Ingresses of a tenant's own, and whether each is refused for its hosts."""

ANNOTATIONS = {
    "nginx.ingress.kubernetes.io/server-alias": "team-b.example.com",
    "haproxy-ingress.github.io/server-alias-regex": ".*",
    "external-dns.alpha.kubernetes.io/hostname": "training.team-b.example.com",
    "nginx.ingress.kubernetes.io/server-snippet": "return 200;",
    "nginx.ingress.kubernetes.io/configuration-snippet": "return 200;",
    "nginx.ingress.kubernetes.io/auth-tls-secret": "ray-system/ray-redis",
    "nginx.ingress.kubernetes.io/proxy-body-size": "8m; } server {",
    "alb.ingress.kubernetes.io/group.name": "all",
    "alb.ingress.kubernetes.io/conditions.all": "[]",
    "haproxy.org/frontend-config-snippet": "http-request deny",
    "cert-manager.io/common-name": "training.team-b.example.com",
}
"""Those that are refused."""


def a_tenants_own_ingress_has_only_hosts_of_the_tenant(cluster: Rehearsal) -> None:
    api: Any = client.NetworkingV1Api(acting_as(Person("ada", ("leads",)), cluster.client()))
    for ingress, refused in INGRESSES:
        error = refusal(partial(api.create_namespaced_ingress, "team-a", ingress, dry_run="All"))
        assert ("Its hosts: ray.example.com, *.team-a.example.com" in error) == refused, ingress
        assert bool(error) == refused, ingress
    for key, value in ANNOTATIONS.items():
        error = refusal(partial(api.create_namespaced_ingress, "team-a", with_annotation(key, value), dry_run="All"))
        assert f"annotation {key} may give the controller" in error, error


def an_ingress_with_an_earlier_host_gets_no_other(cluster: Rehearsal) -> None:
    """Its host has left the stack file since."""
    everybody: Any = client.NetworkingV1Api(cluster.client())
    everybody.create_namespaced_ingress("team-a", own_ingress("earlier.example.com"))
    api: Any = client.NetworkingV1Api(acting_as(Person("ada", ("leads",)), cluster.client()))
    edit = partial(api.patch_namespaced_ingress, "own", "team-a", dry_run="All")
    backend = {"service": {"name": "all", "port": {"number": 80}}}
    assert refusal(partial(edit, {"metadata": {"labels": {"a": "b"}}})) == ""
    assert "training.team-b.example.com: each rule" in refusal(
        partial(edit, {"spec": own_ingress("training.team-b.example.com")["spec"]})
    )
    assert "defaultBackend: each rule" in refusal(partial(edit, {"spec": {"defaultBackend": backend}}))
    everybody.delete_namespaced_ingress("own", "team-a")


def pods_carry_the_labels_that_policies_select_by(up: Stack, cluster: Rehearsal) -> None:
    (head,) = selected(cluster, "team-a", "head.training")
    assert head["metadata"]["labels"]["ray.io/cluster"] == "training"
    assert selected(cluster, "ray-system", "kuberay-operator")


def a_source_that_leaves_the_file_leaves_the_policy(up: Stack, cluster: Rehearsal) -> None:
    up.edit(lambda settings: settings["tenants"][0]["network"].update(clientFrom=[], ingress=False, ingressHosts=[]))
    refused = up.up(fails=True).output
    assert "clusters of this tenant may have no Ingress: set ingress: true" in refused
    assert "10001" in str(policies(cluster, "team-a")["head.training"])

    up.edit(lambda settings: training(settings).pop("ingress"))
    up.up()
    assert "10001" not in str(policies(cluster, "team-a")["head.training"])
    assert ingresses(cluster) == []


def destroy_deletes_redis_with_the_operators_namespace(up: Stack, cluster: Rehearsal) -> None:
    core: Any = client.CoreV1Api(cluster.client())
    assert len(core.list_namespaced_persistent_volume_claim("ray-system").items) == 3
    up.destroy()
    assert up.resources() == []
    assert "namespace ray-system" not in existing(cluster)
    assert core.list_persistent_volume_claim_for_all_namespaces().items == []


def test_network_objects_are_stored_edited_and_deleted(up: Stack, cluster: Rehearsal) -> None:
    all_policies_are_accepted_and_stored_unchanged(up, cluster)
    a_dashboard_has_a_host_name_with_tls(up, cluster)
    a_tenants_own_ingress_has_only_hosts_of_the_tenant(cluster)
    an_ingress_with_an_earlier_host_gets_no_other(cluster)
    pods_carry_the_labels_that_policies_select_by(up, cluster)
    a_source_that_leaves_the_file_leaves_the_policy(up, cluster)
    destroy_deletes_redis_with_the_operators_namespace(up, cluster)
