"""Cases of the rules about networks, rights, namespaces, and all objects of a stack."""

from .bodies import (
    binding,
    body,
    budget,
    default_deny,
    deployment,
    for_ray,
    ingress,
    namespace,
    opened,
    ray_cluster,
    role,
    service,
)
from .case import MISSING, case

RULE = "rules 0"
ENFORCE = "metadata labels pod-security.kubernetes.io/enforce"
WARN = "metadata labels pod-security.kubernetes.io/warn"
BLOCK = "spec egress 0 to 0 ipBlock"
EVERYWHERE = [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}]}]
SECRET = body("v1", "Secret")

NETWORK = [
    case("ray-default-deny", "spec policyTypes", ["Ingress", "Egress"], ["Ingress"], default_deny(), ray_cluster()),
    case("ray-default-deny", "metadata namespace", "team-a", "team-b", default_deny(), ray_cluster()),
    case(
        "ray-egress-complete",
        "spec egress 0 ports",
        [{"port": 53}, {"port": 6443}],
        [{"port": 53}],
        opened(),
        default_deny(),
        ray_cluster(),
    ),
    case("net-ray-ports-closed", "spec ingress 0 from", [{"podSelector": {}}], [], for_ray()),
    case(
        "net-ray-ports-closed",
        "spec ingress 0 from 0 ipBlock cidr",
        "10.0.0.0/8",
        "0.0.0.0/0",
        for_ray(ingress=[{"from": [{}]}]),
    ),
    case("net-no-cloud-metadata", f"{BLOCK} except", ["169.254.0.0/16"], ["10.0.0.0/8"], for_ray(egress=EVERYWHERE)),
    case("net-no-public-service", "spec type", "ClusterIP", "NodePort", service()),
    case(
        "net-no-public-service",
        "metadata name",
        "front",
        "back",
        service(type="LoadBalancer"),
        options={"allowed": ["front"]},
    ),
    case("net-no-external-ips", "spec externalIPs", [], ["203.0.113.7"], service()),
    case("net-ingress-tls", "spec tls 0 hosts", ["ray.example.com"], ["www.example.com"], ingress()),
    case("net-service-selects", "spec selector app", "it", "typo", service(), deployment()),
    case(
        "net-peer-not-empty",
        "spec ingress 0 from",
        [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
        [{"namespaceSelector": {}}],
        for_ray(),
    ),
]

RBAC = [
    case("rbac-no-wildcard", f"{RULE} verbs", ["get"], ["*"], role()),
    case("rbac-no-wildcard", "metadata name", "root", "it", role(resources=["*"]), options={"allowed": ["root"]}),
    case("rbac-no-cluster-admin", "roleRef name", "it", "cluster-admin", binding()),
    case("rbac-no-escalate", f"{RULE} verbs", ["get"], ["impersonate"], role()),
    case("rbac-no-exec", f"{RULE} resources", ["pods/log"], ["pods/exec"], role()),
    case("rbac-no-node-proxy", f"{RULE} resources", ["nodes"], ["nodes/proxy"], role("ClusterRole")),
    case("rbac-no-everybody", "subjects 0 name", "ray", "system:authenticated", binding()),
    case("rbac-no-default-account", "subjects 0 name", "ray", "default", binding()),
    case("rbac-no-secrets-everywhere", f"{RULE} resources", ["pods"], ["secrets"], role("ClusterRole")),
    case(
        "ray-role-minimal",
        "spec headGroupSpec template spec serviceAccountName",
        "other",
        "ray",
        ray_cluster(),
        role(resources=["secrets"]),
        binding(),
    ),
]

NAMESPACES = [
    case("ns-psa-labels", ENFORCE, "baseline", "privileged", namespace()),
    case("ns-psa-warns", WARN, "restricted", MISSING, namespace()),
    case("ns-not-default", "metadata namespace", MISSING, "default", deployment()),
    case("ns-not-default", "metadata namespace", "team-a", MISSING, ray_cluster(), protected=False),
    case("ns-quota", "metadata namespace", "team-a", "team-b", body("v1", "ResourceQuota"), ray_cluster()),
    case("ns-owner", "metadata labels owner", "research", MISSING, namespace()),
]

STACK = [
    case("api-not-deprecated", "apiVersion", "ray.io/v1", "ray.io/v1alpha1", ray_cluster()),
    case("explicit-names", "metadata name", "it", MISSING, service()),
    case("explicit-names", "metadata", {"generateName": "it-"}, {}, service()),
    case("unique-objects", "metadata name", "other", "it", service(), service()),
    case("secrets-encrypted", "stringData", {}, {"password": "hunter2"}, SECRET, protected=False),
    case("no-plain-secrets", "data", MISSING, {"password": "aHVudGVyMg=="}, SECRET),
    case(
        "protect-stateful",
        "spec persistentVolumeClaimRetentionPolicy whenDeleted",
        "Retain",
        "Delete",
        body("apps/v1", "StatefulSet", spec={}),
        protected=False,
    ),
    case("pdb-lets-drain", "spec maxUnavailable", 1, 0, budget()),
]

CASES = [*NETWORK, *RBAC, *NAMESPACES, *STACK]
