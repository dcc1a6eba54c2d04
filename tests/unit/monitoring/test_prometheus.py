"""A Prometheus of the stack's own: its configuration, what it may reach and read, and that tenants see their own."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.monitoring.manifests import RULES_FILE, SCRAPE_FILE
from components.monitoring.metrics import Recorded
from components.monitoring.prometheus import CONFIG_FILE
from components.monitoring.settings import PrometheusSettings
from components.network.manifests import NAMESPACE_LABEL
from core.body import Body
from local.images import PROMETHEUS, PROMETHEUS_PROXY
from policies.configuration import Configuration
from policies.judge import Judge
from policies.values import Object
from stacks.load import load, parse
from stacks.objects.stack import render
from testbed.bindings import people_by_binding
from testbed.machine import lacks

FILE = Path(__file__).parents[2] / "stack_files" / "good" / "monitoring-installed.yaml"

NAMESPACE = "ray-monitoring"

TENANTS = [{"name": "team-a", "admins": ["user:ada"], "users": ["group:users"]}, {"name": "team-b"}]


def made(**keys: Any) -> dict[tuple[str, str], Body]:
    """All objects of a stack whose Prometheus is its own, by kind and name with the namespace."""
    stack = parse({"tenants": TENANTS, **keys, "monitoring": {"mode": "install", **keys.get("monitoring", {})}})
    return {key: dict(each.body) for key, each in render(stack).items()}


def pod(objects: dict[tuple[str, str], Body], kind: str, name: str) -> Body:
    return dict(objects[kind, f"{NAMESPACE}/{name}"]["spec"]["template"])


def test_promtool_accepts_the_configuration(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        lacks("not on the PATH: promtool; it is in the package prometheus")
    files = made()["ConfigMap", f"{NAMESPACE}/ray-platform"]["data"]
    config = yaml.safe_load(files[CONFIG_FILE])
    # Debian's build of 2.42 has neither kubernetes_sd_configs nor scrape_config_files, which came with 2.43.
    [included] = config.pop("scrape_config_files")
    config |= yaml.safe_load(files[included])
    for each in config["scrape_configs"]:
        assert each.pop("kubernetes_sd_configs")
    for name, text in {**files, CONFIG_FILE: yaml.safe_dump(config)}.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [promtool, "check", "config", tmp_path / CONFIG_FILE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rule files found" in done.stdout


def test_it_scrapes_the_namespaces_of_the_stack_alone_and_has_rights_in_each_of_them() -> None:
    objects = made(scheduler={"kueue": {}}, redis={"namespace": "ray-redis", "exporter": {}})
    scrapes = yaml.safe_load(objects["ConfigMap", f"{NAMESPACE}/ray-platform"]["data"][SCRAPE_FILE])["scrape_configs"]
    scraped = {name for each in scrapes for name in each["kubernetes_sd_configs"][0]["namespaces"]["names"]}
    assert scraped == {"team-a", "team-b", "ray-system", "ray-redis", "kueue-system"}
    rights = {name.partition("/")[0] for kind, name in objects if name.endswith("/ray-platform:prometheus")}
    assert rights == scraped
    [binding] = [each for (kind, _), each in objects.items() if kind == "ClusterRoleBinding"]
    assert binding["roleRef"]["name"] == "kueue-metrics-reader"
    resources = {
        (namespace, resource)
        for (kind, name), each in objects.items()
        if kind == "Role" and name.endswith("/ray-platform:prometheus")
        for namespace in [name.partition("/")[0]]
        for rule in each["rules"]
        for resource in rule["resources"]
    }
    of_services = {("kueue-system", each) for each in ("services", "endpointslices")}
    assert resources == {*((name, "pods") for name in scraped), *of_services}


def test_a_stack_without_tenants_finds_no_pods_of_others() -> None:
    config = made(tenants=[])["ConfigMap", f"{NAMESPACE}/ray-platform"]["data"][SCRAPE_FILE]
    for each in yaml.safe_load(config)["scrape_configs"]:
        assert each["kubernetes_sd_configs"][0]["namespaces"] == {"names": ["ray-system"]}


def test_people_of_a_tenant_get_its_proxy_alone_and_only_cluster_admins_reach_prometheus() -> None:
    objects = made(access={"clusterAdmins": ["group:platform"]})
    assert people_by_binding(objects, NAMESPACE) == {
        "ray-platform:cluster-admin": ["platform"],
        "ray-platform:metrics:team-a": ["platform", "ada", "users"],
        "ray-platform:metrics:team-b": ["platform"],
    }
    [rule] = objects["Role", f"{NAMESPACE}/ray-platform:metrics:team-a"]["rules"]
    assert rule == {
        "apiGroups": [""],
        "resources": ["services/proxy"],
        "verbs": ["get"],
        "resourceNames": ["prometheus-team-a"],
    }


def test_a_proxy_adds_the_namespace_of_its_tenant_to_each_query() -> None:
    objects = made(tenants=[{"name": "team-a", "namespace": "ml-a"}])
    [container] = pod(objects, "Deployment", "prometheus-ml-a")["spec"]["containers"]
    assert {"-label=namespace", "-label-value=ml-a", "-upstream=http://prometheus:9090"} < set(container["args"])
    labels = pod(objects, "Deployment", "prometheus-ml-a")["metadata"]["labels"]
    assert objects["Service", f"{NAMESPACE}/prometheus-ml-a"]["spec"]["selector"] == labels


def peers(objects: dict[tuple[str, str], Body], policy: str) -> list[Any]:
    """What may connect to the pods of a policy; None for any address."""
    spec = objects["NetworkPolicy", f"{NAMESPACE}/{policy}"]["spec"]
    return [peer for rule in spec["ingress"] for peer in rule.get("from", [None])]


def test_proxies_and_readers_of_metrics_alone_connect_to_prometheus() -> None:
    proxies = {"podSelector": {"matchLabels": {"app.kubernetes.io/component": "prometheus-proxy"}}}
    grafana = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: "grafana"}}}
    assert peers(made(), "prometheus") == [proxies]
    assert peers(made(network={"monitoring": ["grafana"]}), "prometheus") == [proxies, grafana]
    assert peers(made(), "prometheus-proxies") == [None]
    assert not [name for kind, name in made(network={"policies": False}) if kind == "NetworkPolicy"]


def test_every_port_that_prometheus_may_connect_to_is_open_to_it() -> None:
    objects = {key: dict(each.body) for key, each in render(load(FILE)).items()}
    reader = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: NAMESPACE}}}
    opened = {
        (name.partition("/")[0], port["port"])
        for (kind, name), body in objects.items()
        if kind == "NetworkPolicy"
        for rule in body["spec"].get("ingress", ())
        if reader in rule.get("from", ())
        for port in rule["ports"]
    }
    allowed = {
        (namespace, port["port"])
        for rule in objects["NetworkPolicy", f"{NAMESPACE}/prometheus"]["spec"]["egress"]
        for peer in rule.get("to", ())
        for each in peer.get("namespaceSelector", {}).get("matchExpressions", ())
        for namespace in each["values"]
        for port in rule["ports"]
    }
    clusters = {("team-a", port) for port in (8080, 9399, 44217, 44227)}
    assert opened == {*clusters, ("ray-system", 8080), ("ray-redis", 9121), ("kueue-system", 8443)}
    # A tenant without RayClusters has no policy that opens a port yet.
    assert allowed == opened | {("team-b", port) for _, port in clusters}


def test_a_change_of_the_configuration_recreates_prometheus_and_no_proxy() -> None:
    before, after = made(), made(monitoring={"interval": "15s"})
    prometheus = [pod(each, "StatefulSet", "prometheus")["metadata"] for each in (before, after)]
    assert prometheus[0]["labels"] == prometheus[1]["labels"]
    assert prometheus[0]["annotations"] != prometheus[1]["annotations"]
    name = f"{NAMESPACE}/prometheus-team-a"
    assert before["Deployment", name] == after["Deployment", name]


def test_with_clusters_on_cloudera_ml_it_reads_their_targets_from_a_secret() -> None:
    cluster = {"name": "lab", "project": "p", "rayVersion": "2.60.0", "resources": {"cpu": 4, "memory": 16}}
    others = [{**cluster, "name": "more", "numWorkers": 5}, {**cluster, "name": "rests", "suspend": True}]
    objects = made(cml={"host": "https://ml.example.com", "clusters": [cluster, *others]})
    [container] = (spec := pod(objects, "StatefulSet", "prometheus")["spec"])["containers"]
    [folder] = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "cml"]
    assert {"name": "cml", "secret": {"secretName": "ray-platform-cml", "optional": True}} in spec["volumes"]
    files = objects["ConfigMap", f"{NAMESPACE}/ray-platform"]["data"]
    config = yaml.safe_load(files[CONFIG_FILE])
    assert f"{folder}/{SCRAPE_FILE}" in config["scrape_config_files"]
    recorded = yaml.safe_load(files[RULES_FILE])["groups"][0]["rules"]
    workers = {
        each["labels"]["ray_io_cluster"]: each["expr"] for each in recorded if each["record"] == Recorded.WORKERS
    }
    assert workers == {"lab": "vector(1)", "more": "vector(5)", "rests": "vector(0)"}
    egress = objects["NetworkPolicy", f"{NAMESPACE}/prometheus"]["spec"]["egress"]
    assert {"ports": [{"protocol": "TCP", "port": 443}]} in egress


def test_old_metrics_are_deleted_before_the_volume_is_full() -> None:
    objects = made(monitoring={"prometheus": {"storage": "10Gi", "retentionDays": 7}})
    [container] = pod(objects, "StatefulSet", "prometheus")["spec"]["containers"]
    retained = [each.partition("retention.")[2] for each in container["args"] if "retention" in each]
    assert retained == ["time=7d", f"size={8 * 2**30}B"]


def test_its_objects_violate_no_policy_but_that_images_have_digests() -> None:
    """A digest is in the stack file if the environment wants one, as of each image of the stack."""
    report = Judge(Configuration(), "prod").report([Object(each) for each in made().values()])
    found = {(each.rule.id, each.owner.name) for each in report.findings if each.owner.namespace == NAMESPACE}
    images = ("prometheus", "prometheus-team-a", "prometheus-team-b")
    assert found == {("img-digest", name) for name in images}


def test_the_default_images_are_those_that_are_tested() -> None:
    defaults = PrometheusSettings()
    assert (defaults.image, defaults.proxy_image) == (PROMETHEUS.reference, PROMETHEUS_PROXY.reference)


@pytest.mark.parametrize(("kind", "name"), [("StatefulSet", "prometheus"), ("Deployment", "prometheus-team-a")])
def test_a_pod_writes_nothing_but_its_volume_and_only_prometheus_has_a_token(kind: str, name: str) -> None:
    spec = pod(made(), kind, name)["spec"]
    [container] = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert spec["automountServiceAccountToken"] is (kind == "StatefulSet")
