"""A log store of the stack's own: what its objects may reach and who reads what."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.logs.manifests import CONFIG_MAP
from components.logs.settings import LogStoreSettings
from components.logs.store import account
from core.body import Body
from local.images import LOGS_PROXY, VICTORIA_LOGS
from policies.configuration import Configuration
from policies.judge import Judge
from policies.values import Object
from stacks.load import load, parse
from stacks.objects.stack import render
from testbed.bindings import people_by_binding

FILE = Path(__file__).parents[2] / "stack_files" / "good" / "logs-installed.yaml"

NAMESPACE = "ray-logs"

TENANTS = [{"name": "team-a", "admins": ["user:ada"], "users": ["group:users"]}, {"name": "team-b"}]

Objects = dict[tuple[str, str], Body]


def made(**keys: Any) -> Objects:
    """All objects of a stack whose log store is its own, by kind and name with the namespace."""
    stack = parse({"tenants": TENANTS, **keys, "logs": {"mode": "install", **keys.get("logs", {})}})
    return {key: dict(each.body) for key, each in render(stack).items()}


def pod(objects: Objects, kind: str, name: str) -> Body:
    return dict(objects[kind, f"{NAMESPACE}/{name}"]["spec"]["template"])


def exported_to(objects: Objects, tenant: str) -> str:
    """Where the collectors of a tenant send to."""
    config = yaml.safe_load(objects["ConfigMap", f"{tenant}/{CONFIG_MAP}"]["data"]["config.yaml"])
    return str(config["exporters"]["otlp_http"]["endpoint"])


def test_the_pods_of_a_tenant_reach_the_proxy_of_the_tenant_alone() -> None:
    objects = made()
    for tenant in ("team-a", "team-b"):
        assert exported_to(objects, tenant) == f"http://logs-{tenant}.{NAMESPACE}.svc:8427/insert/opentelemetry"
        [rule] = objects["NetworkPolicy", f"{tenant}/log-collectors"]["spec"]["egress"]
        [peer] = rule["to"]
        assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": NAMESPACE}
        labels = peer["podSelector"]["matchLabels"]
        assert labels == pod(objects, "Deployment", f"logs-{tenant}")["metadata"]["labels"]
        assert labels == objects["Service", f"{NAMESPACE}/logs-{tenant}"]["spec"]["selector"]
        assert rule["ports"] == [{"protocol": "TCP", "port": 8427}]


def test_the_proxies_alone_connect_to_the_store_which_connects_to_nothing() -> None:
    objects = made()
    store = objects["NetworkPolicy", f"{NAMESPACE}/log-store"]["spec"]
    [rule] = store["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"app.kubernetes.io/component": "logs-proxy"}}}]
    assert (store["policyTypes"], objects["NetworkPolicy", f"{NAMESPACE}/default-deny"]["spec"]["podSelector"]) == (
        ["Ingress"],
        {},
    )


def test_people_of_a_tenant_get_its_proxy_alone_and_no_one_the_store() -> None:
    objects = made(access={"clusterAdmins": ["group:platform"]})
    assert people_by_binding(objects, NAMESPACE) == {
        "ray-platform:cluster-admin": ["platform"],
        "ray-platform:logs:team-a": ["platform", "ada", "users"],
        "ray-platform:logs:team-b": ["platform"],
    }
    rules = [each for (kind, name), body in objects.items() if (kind, name.partition("/")[0]) == ("Role", NAMESPACE)
             for each in body["rules"] if "services/proxy" in each["resources"]]  # fmt: skip
    assert [(each["verbs"], each["resourceNames"]) for each in rules] == [
        (["get"], ["logs-team-a"]),
        (["get"], ["logs-team-b"]),
    ]


def test_an_account_depends_on_the_namespace_of_the_tenant_alone() -> None:
    """Another one would have none of its logs."""
    assert account("team-a") == {"AccountID": 2529331308, "ProjectID": 1372708788}
    [container] = pod(made(tenants=TENANTS[:1]), "Deployment", "logs-team-a")["spec"]["containers"]
    assert container["env"] == [
        {"name": "ACCOUNTID", "value": "2529331308"},
        {"name": "PROJECTID", "value": "1372708788"},
    ]
    assert pod(made(), "Deployment", "logs-team-a") == pod(made(tenants=TENANTS[:1]), "Deployment", "logs-team-a")


def test_a_tenant_without_logs_has_no_proxy() -> None:
    objects = {key: dict(each.body) for key, each in render(load(FILE)).items()}
    assert {name for kind, name in objects if kind == "Deployment"} == {"logs/logs-team-a", "logs/logs-team-b"}
    assert ("ConfigMap", f"team-c/{CONFIG_MAP}") not in objects


def test_old_logs_are_deleted_before_the_volume_is_full() -> None:
    objects = made(logs={"store": {"storage": "10Gi", "retentionDays": 7}})
    [container] = pod(objects, "StatefulSet", "victoria-logs")["spec"]["containers"]
    retained = [each for each in container["args"] if "retention" in each]
    assert retained == ["-retentionPeriod=7d", f"-retention.maxDiskSpaceUsageBytes={8 * 2**30}"]


def test_its_objects_violate_no_policy_but_that_images_have_digests() -> None:
    """A digest is in the stack file if the environment wants one, as of each image of the stack."""
    report = Judge(Configuration(), "prod").report([Object(each) for each in made().values()])
    found = {(each.rule.id, each.owner.name) for each in report.findings if each.owner.namespace == NAMESPACE}
    assert found == {("img-digest", name) for name in ("victoria-logs", "logs-team-a", "logs-team-b")}


def test_the_default_images_are_those_that_are_tested() -> None:
    defaults = LogStoreSettings()
    assert (defaults.image, defaults.proxy_image) == (VICTORIA_LOGS.reference, LOGS_PROXY.reference)


@pytest.mark.parametrize(("kind", "name"), [("StatefulSet", "victoria-logs"), ("Deployment", "logs-team-a")])
def test_a_pod_writes_nothing_but_its_volume_and_has_no_token(kind: str, name: str) -> None:
    spec = pod(made(), kind, name)["spec"]
    [container] = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert spec["automountServiceAccountToken"] is False
