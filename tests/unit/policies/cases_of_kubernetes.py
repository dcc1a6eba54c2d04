"""Cases of the rules about networks, rights, namespaces, and all objects of a stack."""

from testbed.policies.bodies import (
    binding,
    body,
    budget,
    cml_cluster,
    default_deny,
    deployment,
    for_ray,
    ingress,
    ingress_without_tls,
    namespace,
    network_policy,
    opened,
    ray_cluster,
    ray_job,
    ray_service,
    role,
    service,
    template,
)
from testbed.policies.case import MISSING, case

RULE = "rules 0"
MAIN = "spec template spec containers 0"
ENFORCE = "metadata labels pod-security.kubernetes.io/enforce"
WARN = "metadata labels pod-security.kubernetes.io/warn"
BLOCK = "spec egress 0 to 0 ipBlock"
EVERYWHERE = [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}]}]
HEAD_SERVICE = "spec headGroupSpec headService spec"
SECRET = body("v1", "Secret")
CONFIG = body("v1", "ConfigMap", data={})
TOKEN = f"hf_{'aB' * 17}"
RAY_OF_ACCOUNT = ray_cluster()
RAY_OF_ACCOUNT["spec"]["headGroupSpec"]["template"]["spec"]["serviceAccountName"] = "ray"
TO_ONE_SERVICE = body(
    "networking.k8s.io/v1",
    "Ingress",
    spec={"defaultBackend": {"service": {"name": "ray", "port": {"number": 8265}}}},
)
WORKER = "spec workerGroupSpecs 0 template spec"
WITH_TOKEN = ray_cluster()
del WITH_TOKEN["spec"]["workerGroupSpecs"][0]["template"]["spec"]["automountServiceAccountToken"]
OF_DEFAULT = (role(resources=["secrets"]), binding())
OF_DEFAULT[1]["subjects"][0]["name"] = "default"
SECRETS = role("ClusterRole", resources=["secrets"])
TO_A_ROLE = {"kind": "Role", "name": "cluster-admin"}
OPERATOR = role("ClusterRole", resources=["rayclusters/status"], verbs=["update"])

NETWORK = [
    case("ray-default-deny", "spec policyTypes", ["Ingress", "Egress"], ["Ingress"], default_deny(), ray_cluster()),
    case("ray-default-deny", "metadata namespace", "team-a", "team-b", default_deny(), ray_cluster()),
    case(
        "ray-egress-complete",
        "spec egress 0 ports",
        [{"port": 53, "protocol": "UDP"}, {"port": 6443}],
        [{"port": 53, "protocol": "UDP"}],
        opened(),
        default_deny(),
        ray_cluster(),
    ),
    case(
        "ray-egress-complete",
        "spec egress 0 ports 0 protocol",
        "UDP",
        MISSING,
        network_policy(
            "out",
            {"matchLabels": {"ray.io/node-type": "worker"}},
            policyTypes=["Egress"],
            egress=[{"ports": [{"port": 53}, {"port": 443}]}],
        ),
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
    case(
        "net-ray-ports-closed",
        "spec ingress",
        [{"from": [{"podSelector": {}}]}],
        [{}],
        network_policy("all", {}, policyTypes=["Ingress"]),
    ),
    case(
        "net-ray-ports-closed",
        "spec podSelector",
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
        for_ray(ingress=[{}]),
    ),
    case(
        "net-ray-ports-closed",
        "spec ingress 0 from 1 ipBlock cidr",
        "127.0.0.0/8",
        "128.0.0.0/1",
        for_ray(ingress=[{"from": [{"ipBlock": {"cidr": "0.0.0.0/1"}}, {}]}]),
    ),
    case(
        "redis-ingress-scoped",
        "spec ingress 0 from",
        [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
        MISSING,
        network_policy("redis", {"matchLabels": {"app": "redis"}}, ingress=[{"ports": [{"port": 6379}]}]),
    ),
    case(
        "redis-ingress-scoped",
        "spec ingress 0 ports 0 endPort",
        6378,
        26379,
        network_policy("redis", {}, ingress=[{"ports": [{"port": 6000}]}]),
    ),
    case(
        "net-no-cloud-metadata",
        "spec egress",
        [{"to": [{"podSelector": {}}]}, {"ports": [{"port": 443}]}],
        [{}],
        for_ray(),
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
    case("net-no-public-service", "spec serveService spec type", "ClusterIP", "LoadBalancer", ray_service()),
    case("net-no-external-ips", "spec externalIPs", [], ["203.0.113.7"], service()),
    case("net-no-external-ips", "spec serveService spec externalIPs", [], ["203.0.113.7"], ray_service()),
    case("net-no-external-ips", f"{HEAD_SERVICE} externalIPs", [], ["203.0.113.7"], ray_cluster()),
    case("net-no-external-ips", f"spec rayClusterSpec{HEAD_SERVICE[4:]} externalIPs", [], ["203.0.113.7"], ray_job()),
    case("net-ingress-tls", "spec tls 0 hosts", ["ray.example.com"], ["www.example.com"], ingress()),
    case(
        "net-ingress-tls",
        "metadata annotations nginx.ingress.kubernetes.io/ssl-passthrough",
        "true",
        "false",
        ingress_without_tls(),
    ),
    case(
        "net-ingress-tls",
        "metadata annotations alb.ingress.kubernetes.io/certificate-arn",
        "arn:aws:acm:eu-west-1:1:certificate/a",
        MISSING,
        ingress_without_tls(),
    ),
    case("net-ingress-tls", "spec tls", [{"secretName": "ray"}], MISSING, TO_ONE_SERVICE),
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
    case("rbac-no-cluster-admin", "roleRef", TO_A_ROLE, {**TO_A_ROLE, "kind": "ClusterRole"}, binding()),
    case("rbac-no-cluster-admin", "roleRef name", "it", "edit", binding("ClusterRoleBinding")),
    case("rbac-no-escalate", f"{RULE} verbs", ["get"], ["impersonate"], role()),
    case("rbac-no-escalate", f"{RULE} verbs", ["get"], ["impersonate:user-info"], role()),
    case("rbac-no-escalate", f"{RULE} verbs", ["get"], ["create"], role(resources=["serviceaccounts/token"])),
    case("rbac-no-exec", f"{RULE} resources", ["*/scale"], ["*/exec"], role()),
    case("rbac-no-exec", f"{RULE} resources", ["pods/log"], ["pods/exec"], role()),
    case("rbac-no-node-proxy", f"{RULE} resources", ["nodes"], ["nodes/proxy"], role("ClusterRole")),
    case("rbac-no-everybody", "subjects 0 name", "ray", "system:authenticated", binding()),
    case("rbac-no-everybody", "subjects 0 name", "team-a", "system:serviceaccounts:team-a", binding()),
    case("rbac-no-default-account", "subjects 0 name", "ray", "default", binding()),
    case(
        "rbac-no-default-account",
        "subjects 0",
        {"kind": "User", "name": "system:serviceaccount:team-a:ray"},
        {"kind": "User", "name": "system:serviceaccount:team-a:default"},
        binding(),
        unknown="subjects 0 name",
    ),
    case("rbac-no-secrets-everywhere", f"{RULE} resources", ["pods"], ["secrets"], role("ClusterRole")),
    case("rbac-no-secrets-everywhere", f"{RULE} apiGroups", ["example.com"], ["*"], SECRETS),
    case(
        "rbac-operator-namespaced",
        f"{RULE} resources",
        ["rayclusters"],
        ["rayclusters/status"],
        role("ClusterRole", verbs=["update"]),
        binding("ClusterRoleBinding"),
    ),
    case("rbac-operator-namespaced", "roleRef name", "other", "it", binding("ClusterRoleBinding"), OPERATOR),
    case(
        "ray-role-minimal",
        "spec headGroupSpec template spec serviceAccountName",
        "other",
        "ray",
        ray_cluster(),
        role(resources=["secrets"]),
        binding(),
    ),
    case(
        "ray-role-minimal",
        f"{RULE} apiGroups",
        ["extensions.example.com"],
        ["apps"],
        role(resources=["deployments"], verbs=["create"]),
        binding(),
        RAY_OF_ACCOUNT,
    ),
    case("ray-role-minimal", f"{WORKER} serviceAccountName", "own", MISSING, WITH_TOKEN, *OF_DEFAULT),
]

NAMESPACES = [
    case("ns-psa-labels", ENFORCE, "baseline", "privileged", namespace()),
    case("ns-psa-warns", WARN, "restricted", MISSING, namespace()),
    case("ns-not-default", "metadata namespace", MISSING, "default", deployment()),
    case("ns-not-default", "metadata namespace", "team-a", MISSING, ray_cluster(), protected=False),
    case("ns-quota", "metadata namespace", "team-a", "team-b", body("v1", "ResourceQuota"), ray_cluster()),
    case(
        "ray-one-tenant-per-namespace",
        "metadata labels team",
        "a",
        "b",
        ray_cluster("it", team="a"),
        ray_cluster("other", team="a"),
        of=1,
    ),
    case(
        "ray-one-tenant-per-namespace",
        "metadata namespace",
        "team-b",
        "team-a",
        ray_cluster("it", owner="a"),
        ray_cluster("other", owner="b"),
    ),
    case("ns-owner", "metadata labels owner", "research", MISSING, namespace()),
]

STACK = [
    case("api-not-deprecated", "apiVersion", "ray.io/v1", "ray.io/v1alpha1", ray_cluster()),
    case("explicit-names", "metadata name", "it", MISSING, service()),
    case("explicit-names", "metadata", {"generateName": "it-"}, {}, service()),
    case("unique-objects", "metadata name", "other", "it", service(), service()),
    case("secrets-encrypted", "stringData", {}, {"password": "hunter2"}, SECRET, protected=False),
    case("no-plain-secrets", "stringData", {"token": "<your-token>", "id": "$ID"}, {"token": "<a> b"}, SECRET),
    case("no-plain-secrets", "data", MISSING, {"password": "aHVudGVyMg=="}, SECRET),
    case("no-plain-secrets", "data config", "url: $URL", f"token: {TOKEN}", CONFIG),
    case("no-plain-secrets", "data HF_TOKEN", "<your-token>", "hunter2", CONFIG),
    case("no-plain-secrets", "spec entrypoint", "A=1 TOKEN=$T python a.py", "API_TOKEN=a7 python a.py", ray_job()),
    case("no-plain-secrets", "data env", "DB_HOST=db", "DB_HOST=db\nexport DB_PASSWORD=hunter2\n", CONFIG),
    case("no-plain-secrets", "spec entrypoint", "a --token $T", "a --api-token hunter2", ray_job()),
    case("no-plain-secrets", f"{MAIN} args", ["--password=$(P)"], ["--password", "hunter2"], deployment()),
    case(
        "no-plain-secrets",
        "spec runtimeEnvYAML",
        "env_vars: {HF_HOME: /models}",
        "env_vars: {HF_TOKEN: hunter2}",
        ray_job(),
    ),
    case("no-plain-secrets", "spec serveConfigV2", "applications: []", f"a: [{{b: {TOKEN}}}]", ray_service()),
    case("kind-judged", "spec", {"template": template()}, {"a": 1}, body("example.com/v1", "Thing")),
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

SERVED = '{"applications": [{"name": "a", "runtime_env": {"env_vars": {"DB_PASSWORD": "%s"}}}]}'

CML = [
    case("cml-min-version", "spec rayVersion", "2.54.0", "2.53.0", cml_cluster()),
    case("cml-no-latest", "spec head runtime", "", "docker.example.com/ray:latest-gpu", cml_cluster()),
    case("cml-no-latest", "spec groups workers runtime", "ray@sha256:abc", "docker.example.com/ray", cml_cluster()),
    case(
        "cml-registry",
        "spec groups workers runtime",
        "docker.example.com/ray:2.60.0",
        "quay.io/someone/ray:2.60.0",
        cml_cluster(),
        options={"allowed": ["docker.example.com"]},
    ),
    case("no-plain-secrets", "spec groups workers env DB_PASSWORD", "", "correct-horse-4711", cml_cluster()),
    case("no-plain-secrets", "spec serve", SERVED % "", SERVED % "correct-horse-4711", cml_cluster()),
]

CASES = [*NETWORK, *RBAC, *NAMESPACES, *STACK, *CML]
