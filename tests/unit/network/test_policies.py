"""The NetworkPolicies of tenants, and of the namespaces of the operator and of schedulers. tests/pods tests the
connections that they allow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.access.deployers import OPENING
from stacks.load import parse
from stacks.objects.access import restricted
from stacks.objects.network import operator_policies, policies_of_clusters, scheduler_policies
from tests.pods.port_matrix import ports_table, reach_table

CLUSTER = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0"}

PAGE = Path(__file__).parents[3] / "docs" / "network.md"


def policies(tenant: dict[str, Any], network: dict[str, Any] | None = None) -> dict[str, Any]:
    """The specs of a tenant's policies by name."""
    stack = parse({"network": network or {}, "tenants": [{"name": "team-a", "clusters": [CLUSTER], **tenant}]})
    return {body["metadata"]["name"]: body["spec"] for _, body in policies_of_clusters(stack, stack.tenants[0])}


def from_namespace(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def tcp(*ports: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def test_all_traffic_is_denied_by_default_but_dns_of_cluster_and_node() -> None:
    names = {**from_namespace("kube-system"), "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}
    ports = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
    found = policies({"clusters": []})
    assert set(found) == {"default-deny", "dns"}
    assert found["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert found["dns"]["podSelector"] == {}
    assert found["dns"]["egress"] == [{"to": [names, {"ipBlock": {"cidr": "169.254.0.0/16"}}], "ports": ports}]


def test_pods_of_a_cluster_reach_each_other_on_every_port() -> None:
    own = {"podSelector": {"matchLabels": {"ray.io/cluster": "training"}}}
    cluster = policies({})["cluster.training"]
    assert cluster["podSelector"] == own["podSelector"]
    assert cluster["ingress"] == [{"from": [own]}]
    assert cluster["egress"] == [{"to": [own]}]


def test_only_the_head_may_connect_to_the_api_server() -> None:
    """Its address changes in managed clusters. A rule without addresses includes it in every network plugin."""
    found = policies({})
    assert found["head.training"]["egress"] == [{"ports": tcp(443, 6443)}]
    assert {"ports": tcp(443, 6443)} not in found["cluster.training"]["egress"]
    network = {"apiServer": {"cidrs": ["10.0.0.7/32"], "ports": [8443]}}
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.7/32"}}], "ports": tcp(8443)}
    assert policies({}, network)["head.training"]["egress"] == [rule]
    fixed = policies({"clusters": [{**CLUSTER, "autoscaling": False}]})["head.training"]
    assert ("egress" in fixed, fixed["policyTypes"]) == (False, ["Ingress"])


@pytest.mark.parametrize(
    ("tenant", "cluster"),
    [
        # Each process of Ray reviews the tokens of its callers.
        ({}, {"authOptions": {"mode": "token", "enableK8sTokenAuth": True}}),
        ({"rayDeployer": {}}, {"workerGroups": [{"groupName": "cpu", "cpu": 1, "memory": "2Gi"}]}),
        ({}, {"serviceAccount": "deployer", "workerGroups": [{"groupName": "cpu", "cpu": 1, "memory": "2Gi"}]}),
    ],
)
def test_workers_with_kubernetes_tokens_or_an_account_may_connect_to_the_api_server(
    tenant: dict[str, Any], cluster: dict[str, Any]
) -> None:
    found = policies({**tenant, "clusters": [{**CLUSTER, **cluster}]})["cluster.training"]["egress"]
    assert {"ports": tcp(443, 6443)} in found


def test_a_head_without_peers_is_open_only_to_operator_and_submitters() -> None:
    job = {"podSelector": {"matchExpressions": [{"key": "batch.kubernetes.io/job-name", "operator": "Exists"}]}}
    assert policies({})["head.training"]["ingress"] == [
        {"from": [from_namespace("ray-system")], "ports": tcp(8265, 8000)},
        {"from": [job], "ports": tcp(8265)},
    ]


def test_no_rule_allows_all_peers() -> None:
    """A rule with an empty `from` would be open."""
    full = {"dashboardFrom": ["a"], "clientFrom": ["b"], "serveFrom": ["c"], "otherClusters": True}
    network = {"monitoring": ["d"], "ingressController": "e"}
    for tenant in ({}, {"network": full, "clusterNames": ["adhoc"]}):
        rules = [rule for spec in policies(tenant, network).values() for rule in spec.get("ingress", [])]
        assert rules
        assert all(rule["from"] for rule in rules)


def test_a_peer_may_connect_to_its_port() -> None:
    peer = {"namespace": "portal", "podLabels": {"app": "portal"}}
    network = {"dashboardFrom": [peer], "clientFrom": ["notebooks"], "serveFrom": [{"cidr": "2001:db8::/32"}]}
    found = policies({"network": network})
    portal = {**from_namespace("portal"), "podSelector": {"matchLabels": {"app": "portal"}}}
    dashboard = next(rule for rule in found["head.training"]["ingress"] if portal in rule["from"])
    assert dashboard["ports"] == tcp(8265)
    assert {"from": [from_namespace("notebooks")], "ports": tcp(10001)} in found["head.training"]["ingress"]
    serve = {"from": [{"ipBlock": {"cidr": "2001:db8::/32"}}], "ports": tcp(8000)}
    assert serve in found["cluster.training"]["ingress"]


def test_only_monitoring_may_read_metrics() -> None:
    reads = {"from": [from_namespace("monitoring")]}
    found = policies({}, {"monitoring": ["monitoring"]})
    assert {**reads, "ports": tcp(8080)} in found["cluster.training"]["ingress"]
    assert {**reads, "ports": tcp(44217, 44227)} in found["head.training"]["ingress"]
    assert {**reads, "ports": tcp(44217, 44227)} in of_redis({"gateway": False})["head.training"]["ingress"]
    assert {**reads, "ports": tcp(44217, 44227, 9399)} in of_redis({})["head.training"]["ingress"]


KEPT = {**CLUSTER, "faultTolerance": True}


def of_redis(redis: dict[str, Any], tenant: dict[str, Any] | None = None) -> dict[str, Any]:
    """The specs of the policies of a tenant whose cluster is fault tolerant, by name."""
    entry = {"name": "team-a", "clusters": [KEPT], **(tenant or {})}
    stack = parse({"network": {"monitoring": ["monitoring"]}, "redis": redis, "tenants": [entry]})
    return {body["metadata"]["name"]: body["spec"] for _, body in policies_of_clusters(stack, stack.tenants[0])}


def test_head_and_clean_up_job_may_connect_to_redis() -> None:
    found = of_redis({})
    assert found["redis.training"] == {
        "podSelector": {
            "matchLabels": {"ray.io/cluster": "training"},
            "matchExpressions": [
                {"key": "ray.io/node-type", "operator": "In", "values": ["head", "redis-cleanup"]},
            ],
        },
        "policyTypes": ["Egress"],
        "egress": [{"to": [from_namespace("ray-system")], "ports": tcp(6379, 26379)}],
    }


def test_redis_is_allowed_to_clusters_that_may_use_it_where_it_is() -> None:
    assert "redis.training" not in of_redis({}, {"clusters": [CLUSTER]})
    assert "redis.adhoc" in of_redis({}, {"clusters": [], "clusterNames": ["adhoc"]})
    [rule] = of_redis({"scope": "perTenant"})["redis.training"]["egress"]
    assert rule["to"] == [from_namespace("team-a")]
    outside = {"address": "redis.example.com:6380", "secretName": "redis"}
    [rule] = of_redis({"mode": "external", "external": outside})["redis.training"]["egress"]
    assert rule == {"ports": tcp(6380)}
    [rule] = of_redis({"mode": "external", "external": {**outside, "cidrs": ["10.40.0.7/32"]}})["redis.training"][
        "egress"
    ]
    assert rule["to"] == [{"ipBlock": {"cidr": "10.40.0.7/32"}}]


def with_ports(*ports: dict[str, Any], **head: Any) -> dict[str, Any]:
    """A cluster whose pod template sets these ports of the head."""
    containers = [{"name": "ray-head", "ports": list(ports)}]
    return {**CLUSTER, "head": {**head, "podTemplate": {"spec": {"containers": containers}}}}


def test_the_ports_are_those_of_the_pod_template() -> None:
    moved = with_ports({"containerPort": 8265, "$patch": "delete"}, {"name": "dashboard", "containerPort": 9265})
    found = policies({"clusters": [moved], "network": {"dashboardFrom": ["a"]}})
    ports = [rule["ports"] for rule in found["head.training"]["ingress"] if from_namespace("a") in rule["from"]]
    assert ports == [tcp(9265)]
    assert found["submitters"]["egress"][0]["ports"] == tcp(9265)
    # KubeRay 1.6 adds ports with such names to Serve's Service.
    with_grpc = with_ports({"name": "serve-grpc", "containerPort": 9000})
    found = policies({"clusters": [with_grpc], "network": {"serveFrom": ["portal"]}})
    assert {"from": [from_namespace("portal")], "ports": tcp(8000, 9000)} in found["cluster.training"]["ingress"]


def test_metrics_of_workers_are_open_where_those_of_the_head_are_elsewhere() -> None:
    ports = ({"containerPort": 8080, "$patch": "delete"}, {"name": "metrics", "containerPort": 9090})
    head = with_ports(*ports, rayStartParams={"metrics-export-port": "9090"})
    cluster = {**head, "workerGroups": [{"groupName": "cpu", "cpu": 1, "memory": "1Gi"}]}
    found = policies({"clusters": [cluster]}, {"monitoring": ["monitoring"]})
    opened = {"from": [from_namespace("monitoring")], "ports": tcp(8080, 9090)}
    assert opened in found["cluster.training"]["ingress"]


def test_only_clusters_with_an_ingress_allow_the_ingress_controller() -> None:
    ingress = {"host": "ray.example.com", "className": "nginx", "tlsSecretName": "tls"}
    clusters = [{**CLUSTER, "ingress": ingress}, {**CLUSTER, "name": "inside"}]
    found = policies({"clusters": clusters, "network": {"ingress": True}}, {"ingressController": "ingress-nginx"})
    let_in = {
        name: any(from_namespace("ingress-nginx") in rule["from"] for rule in found[name]["ingress"])
        for name in ("head.training", "head.inside")
    }
    assert let_in == {"head.training": True, "head.inside": False}


def test_clusters_of_a_tenants_own_stack_have_policies_by_their_names() -> None:
    found = policies({"clusters": [], "clusterNames": ["adhoc"]})
    assert set(found) == {"default-deny", "dns", "submitters", "cluster.adhoc", "head.adhoc"}


def test_pods_of_jobs_and_services_of_another_stack_are_selected_by_their_labels() -> None:
    found = policies({"clusters": [], "jobNames": ["survey"], "serviceNames": ["chat"]})
    labels = {"ray-platform/ray-job": "survey", "ray-platform/ray-service": "chat"}
    for label, name in labels.items():
        assert found[f"cluster.{name}"]["podSelector"]["matchLabels"] == {label: name}
        assert found[f"head.{name}"]["podSelector"]["matchLabels"] == {label: name, "ray.io/node-type": "head"}
    others = policies({"jobNames": ["survey"], "network": {"otherClusters": True}})["clusters-other"]["podSelector"]
    assert {"key": "ray-platform/ray-job", "operator": "DoesNotExist"} in others["matchExpressions"]


def test_clusters_of_rayjobs_are_selected_as_those_without_their_own_policy() -> None:
    found = policies({"clusterNames": ["adhoc"], "network": {"otherClusters": True}})
    assert found["heads-other"]["podSelector"] == {
        "matchExpressions": [
            {"key": "ray.io/cluster", "operator": "Exists"},
            {"key": "ray.io/cluster", "operator": "NotIn", "values": ["adhoc", "training"]},
        ],
        "matchLabels": {"ray.io/node-type": "head"},
    }
    assert "heads-other" not in policies({})


def test_policies_of_different_clusters_have_different_names() -> None:
    clusters = [{**CLUSTER, "name": name} for name in ("a", "a-head", "head-a", "other", "deny")]
    stack = parse({"tenants": [{"name": "t", "clusters": clusters, "network": {"otherClusters": True}}]})
    names = [body["metadata"]["name"] for _, body in policies_of_clusters(stack, stack.tenants[0])]
    assert len(names) == len(set(names))


def test_egress_is_allowed_to_configured_targets() -> None:
    egress = [
        {"cidr": "10.30.0.0/16", "ports": [443, 5000]},
        {"namespace": "minio", "ports": [9000], "protocol": "UDP"},
    ]
    assert policies({"network": {"egress": egress}})["egress"] == {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [
            {"to": [{"ipBlock": {"cidr": "10.30.0.0/16"}}], "ports": tcp(443, 5000)},
            {"to": [from_namespace("minio")], "ports": [{"protocol": "UDP", "port": 9000}]},
        ],
    }


def test_the_internet_excludes_private_networks_and_the_metadata_service() -> None:
    (rule,) = policies({"network": {"egress": [{"internet": True}]}})["egress"]["egress"]
    assert rule["ports"] == tcp(443)
    excluded = {block["ipBlock"]["cidr"]: set(block["ipBlock"]["except"]) for block in rule["to"]}
    clouds = {"169.254.0.0/16", "168.63.129.16/32"}
    assert excluded["0.0.0.0/0"] > {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", *clouds}
    assert excluded["::/0"] == {"fc00::/7", "fe80::/10"}


DEPLOYED = {"podSelector": {"matchLabels": {"ray-platform/created-by": "ray-deployer"}}}

OF_TEAM_A = {"matchLabels": {"kubernetes.io/metadata.name": "team-a"}}


def test_pods_of_a_ray_deployer_and_its_rayclusters_connect_to_each_other_on_its_ports() -> None:
    own = {"podSelector": {"matchLabels": {"ray.io/cluster": "training"}}}
    other = {**CLUSTER, "name": "other", "serviceAccount": "mine"}
    network = {"ports": [8000, 8001], "apiServer": True, "egress": [{"cidr": "10.30.0.7/32"}]}
    found = policies({"clusters": [CLUSTER, other], "rayDeployer": {"network": network}})
    assert found["ray-deployer"] == {
        **DEPLOYED,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [DEPLOYED, own], "ports": tcp(8000, 8001)}],
        "egress": [
            {"to": [DEPLOYED, own], "ports": tcp(8000, 8001)},
            {"ports": tcp(443, 6443)},
            {"to": [{"ipBlock": {"cidr": "10.30.0.7/32"}}], "ports": tcp(443)},
        ],
    }
    assert {"from": [DEPLOYED], "ports": tcp(8000, 8001)} in found["cluster.training"]["ingress"]
    assert {"to": [DEPLOYED], "ports": tcp(8000, 8001)} in found["cluster.training"]["egress"]
    assert "created-by" not in str(found["cluster.other"])


def test_rayclusters_by_name_and_of_jobs_run_as_the_ray_deployer() -> None:
    cluster = {key: value for key, value in CLUSTER.items() if key != "name"}
    job = {"name": "nightly", "entrypoint": "true", "cluster": cluster}
    names = {"clusterNames": ["adhoc"], "network": {"otherClusters": True}}
    found = policies({"clusters": [], "jobs": [job], "rayDeployer": {"network": {"ports": [8000]}}, **names})
    (opened,) = found["ray-deployer"]["ingress"]
    assert opened["from"] == [
        DEPLOYED,
        {"podSelector": found["cluster.adhoc"]["podSelector"]},
        {"podSelector": found["cluster.nightly"]["podSelector"]},
        {"podSelector": found["clusters-other"]["podSelector"]},
    ]
    assert "created-by" not in str(policies({"rayDeployer": {}}))


def test_no_label_by_which_policies_of_a_tenant_select_pods_is_free_for_those_of_a_ray_deployer() -> None:
    cluster = {**CLUSTER, "idleTerminationOptions": {"timeoutSeconds": 600}, "faultTolerance": True}
    own = {key: value for key, value in CLUSTER.items() if key != "name"}
    tenant = {
        "name": "team-a",
        "rayDeployer": {"network": {"ports": [8000]}},
        "clusters": [cluster],
        "jobs": [{"name": "nightly", "entrypoint": "true", "cluster": own}],
        "jobTemplates": [
            {"name": "tune", "entrypoint": "true", "cluster": own, "cron": {"schedule": "@daily"}},
        ],
        "storage": [{"name": "runs", "storageClass": "standard", "size": "1Gi"}],
        "runHistory": {"storage": "runs"},
        "serviceNames": ["chat"],
        "network": {"otherClusters": True, "serveFrom": [{"namespace": "team-a", "podLabels": {"app": "portal"}}]},
    }
    stack = parse({"redis": {"mode": "single"}, "tenants": [tenant]})
    bodies = [body for _, body in policies_of_clusters(stack, stack.tenants[0])]
    (deployer,) = restricted(stack).deployers.values()

    def refused(selector: dict[str, Any]) -> bool:
        labels = selector.get("matchLabels", {})
        keys = [*labels, *(each["key"] for each in selector.get("matchExpressions", ()))]
        named = any(each.items() <= labels.items() for each in deployer.selected)
        return named or any(key.startswith(OPENING) for key in keys)

    selectors = [
        each for body in bodies for each in selectors_in(body["spec"]) if each and each != DEPLOYED["podSelector"]
    ]
    assert len(selectors) > 20
    assert [each for each in selectors if not refused(each)] == []


def selectors_in(value: Any) -> Iterator[dict[str, Any]]:
    """The selectors of pods of the policy's own namespace."""
    if isinstance(value, list):
        for each in value:
            yield from selectors_in(each)
    if isinstance(value, dict):
        if "podSelector" in value and value.get("namespaceSelector", OF_TEAM_A) == OF_TEAM_A:
            yield value["podSelector"]
        for each in value.values():
            yield from selectors_in(each)


@pytest.mark.parametrize(
    "configured",
    [
        {},
        {"scheduler": {"kueue": {"install": "existing"}}},
        {"scheduler": {"volcano": {"install": "existing"}}},
        {"scheduler": {"volcano": {}}, "network": {"policies": False}},
    ],
)
def test_without_policies_and_for_existing_programs_none_are_created(configured: dict[str, Any]) -> None:
    assert scheduler_policies(parse(configured)) == []
    assert policies({}, {"policies": False}) == policies({"network": {"policies": False}}) == {}
    assert operator_policies(parse({"network": {"policies": False}})) == []
    assert operator_policies(parse({"operator": {"install": "existing"}})) == []


@pytest.mark.parametrize("table", [ports_table(), reach_table()], ids=["ports", "reach"])
def test_the_page_has_the_tested_matrix(table: str) -> None:
    assert table in PAGE.read_text()


def test_the_operators_namespace_has_policies() -> None:
    deny, operator = operator_policies(parse({"operator": {"watchNamespaces": ["a"]}}))
    assert {body["metadata"]["namespace"] for body in (deny, operator)} == {"ray-system"}
    assert deny["spec"]["podSelector"] == {}
    assert "ingress" not in operator["spec"]
    names = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}
    heads = {
        "namespaceSelector": {"matchExpressions": [names]},
        "podSelector": {"matchLabels": {"ray.io/node-type": "head"}},
    }
    assert {"to": [heads], "ports": tcp(8265, 8000)} in operator["spec"]["egress"]


def test_the_operator_may_connect_to_the_ports_that_pod_templates_set() -> None:
    ports = [
        {"containerPort": 8265, "$patch": "delete"},
        {"name": "dashboard", "containerPort": 9265},
        {"containerPort": 8000, "$patch": "delete"},
        {"name": "serve", "containerPort": 9000},
    ]
    head = {"podTemplate": {"spec": {"containers": [{"name": "ray-head", "ports": ports}]}}}
    cluster = {"rayVersion": "2.60.0", "image": "ray:2.60.0", "head": head}
    config = {"http_options": {"port": 9000}, "applications": [{"import_path": "chat:app"}]}
    service = {"name": "chat", "cluster": cluster, "serveConfigV2": config}
    _, operator = operator_policies(parse({"tenants": [{"name": "team-a", "services": [service]}]}))
    assert operator["spec"]["egress"][-1]["ports"] == tcp(8265, 8000, 9000, 9265)


@pytest.mark.parametrize(
    ("scheduler", "metrics", "webhook", "labels"),
    [
        ("volcano", (8080, 8081), 8443, {"app": "volcano-admission"}),
        ("kueue", (8443,), 9443, {"control-plane": "controller-manager"}),
    ],
)
def test_the_namespace_of_a_scheduler_is_open_only_for_webhook_and_metrics(
    scheduler: str, metrics: tuple[int, ...], webhook: int, labels: dict[str, str]
) -> None:
    settings = {"network": {"monitoring": ["monitoring"]}, "scheduler": {scheduler: {"namespace": "queues"}}}
    bodies = scheduler_policies(parse(settings))
    assert [body["metadata"]["name"] for body in bodies] == ["default-deny", scheduler, f"{scheduler}-webhook"]
    assert {body["metadata"]["namespace"] for body in bodies} == {"queues"}
    deny, of_all, of_webhook = (body["spec"] for body in bodies)
    assert deny["policyTypes"] == ["Ingress", "Egress"]
    assert of_all["ingress"][0]["ports"] == tcp(*metrics)
    # The API server calls it, from an unknown address.
    assert of_webhook["ingress"] == [{"ports": tcp(webhook)}]
    assert of_webhook["podSelector"] == {"matchLabels": labels}
