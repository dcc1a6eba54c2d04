"""What Prometheus gets to read, with its operator and without it, when, and what heads know of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml

from components.monitoring.dashboards import FOLDER
from components.monitoring.manifests import RULES_FILE, RUNBOOKS, SCRAPE_FILE
from components.monitoring.metrics import Gateway, Job, Ray
from components.monitoring.rules import ALERTS
from components.monitoring.targets import targets
from components.network.manifests import NAMESPACE_LABEL
from components.payloads.redis_gateway.metrics import Metrics
from core.body import Body
from stacks.load import load, parse
from stacks.objects.monitoring import monitored, objects_of_monitoring
from stacks.objects.ray_clusters import rendered, rendered_job
from stacks.objects.stack import render
from stacks.program.build import build
from stacks.program.facts import MissingKindsError, check_kinds
from stacks.settings import StackSettings
from testbed.fake_cluster import FakeCluster
from testbed.ray_dashboards import generated
from testbed.recorder import Recorder, record
from tests.unit.planning.stacks import cluster, stack, tenant

ROOT = Path(__file__).parents[3]
GOOD = ROOT / "tests" / "stack_files" / "good"
READERS = {"network": {"monitoring": ["monitoring"]}}
RAY_LABELS = {"ray_io_cluster", "ray_io_node_type", "ray_io_group"}


def made(**keys: Any) -> dict[tuple[str, str], Body]:
    """The objects of a stack with monitoring, by kind and name."""
    stack = parse({**READERS, **keys, "monitoring": keys.get("monitoring", {})})
    return {(body["kind"], body["metadata"]["name"]): dict(body) for body in objects_of_monitoring(stack)}


def alerts(objects: dict[tuple[str, str], Body]) -> dict[str, Body]:
    _, group = objects["PrometheusRule", "ray-platform"]["spec"]["groups"]
    return {each["alert"]: each for each in group["rules"]}


def of_files(**keys: Any) -> tuple[list[Body], Body]:
    """The scrape configs and the rules, of a Prometheus without the operator."""
    files = made(**keys, monitoring={"mode": "scrapeConfig"})["ConfigMap", "ray-platform"]["data"]
    return yaml.safe_load(files[SCRAPE_FILE])["scrape_configs"], yaml.safe_load(files[RULES_FILE])


def test_a_stack_without_the_key_has_nothing_and_its_operator_is_as_before() -> None:
    stack = parse(READERS)
    assert objects_of_monitoring(stack) == []
    assert not stack.operator_in_force.metrics
    assert parse({**READERS, "monitoring": {}}).operator_in_force.metrics


def test_only_what_the_stack_has_is_scraped_and_alerted_to() -> None:
    alone = made()
    assert set(alone) == {
        *(("PodMonitor", job) for job in (Job.HEAD, Job.WORKER, Job.AUTOSCALER, Job.DASHBOARD, Job.OPERATOR)),
        ("PrometheusRule", "ray-platform"),
    }
    assert {ALERTS[name].part for name in alerts(alone)} == {"ray", "kuberay"}
    with_kueue = made(scheduler={"kueue": {}})
    assert ("ServiceMonitor", Job.KUEUE) in with_kueue
    assert {ALERTS[name].part for name in alerts(with_kueue)} == {"ray", "kuberay", "kueue"}
    assert ("ServiceMonitor", Job.KUEUE) not in made(scheduler={"kueue": {"metrics": False}})
    redis = {"mode": "single", "exporter": {}}
    assert {"RayRedisNodeDown", "RayRedisMemory"} <= set(alerts(made(redis=redis)))
    assert "RayRedisQuorumLost" not in alerts(made(redis=redis))


@pytest.mark.parametrize(("file", "issued"), [("tls", True), ("redis", True), ("queues", False)])
def test_certificates_are_watched_where_cert_manager_issues_them(file: str, issued: bool) -> None:
    assert ("cert-manager" in monitored(load(GOOD / f"{file}.yaml")).parts) is issued


def test_objects_are_in_the_operators_namespace_with_the_labels_that_prometheus_selects() -> None:
    for body in made(monitoring={"labels": {"release": "stack"}}).values():
        assert body["metadata"]["namespace"] == "ray-system"
        assert body["metadata"]["labels"]["release"] == "stack"
    for body in made(monitoring={"namespace": "prometheus"}).values():
        assert body["metadata"]["namespace"] == "prometheus"


def test_each_series_of_a_ray_pod_has_its_cluster_node_type_and_group() -> None:
    scrapes, _ = of_files()
    for scrape in scrapes:
        if scrape["job_name"] != Job.OPERATOR:
            assert {step.get("target_label") for step in scrape["relabel_configs"]} >= {"namespace", *RAY_LABELS}


def test_the_autoscaler_is_scraped_at_its_own_port_of_the_head() -> None:
    [endpoint] = made()["PodMonitor", Job.AUTOSCALER]["spec"]["podMetricsEndpoints"]
    [step] = [each for each in endpoint["relabelings"] if each["targetLabel"] == "__address__"]
    for address, expected in (("10.0.0.7:8080", "10.0.0.7:44217"), ("[fd00::7]:8080", "[fd00::7]:44217")):
        assert re.sub(f"^{step['regex']}$", step["replacement"].replace("$1", r"\g<1>"), address) == expected


def test_metrics_of_the_operator_have_the_namespace_and_cluster_of_their_object() -> None:
    """Prometheus renames a label that the target has, too, to `exported_namespace`."""
    [endpoint] = made()["PodMonitor", Job.OPERATOR]["spec"]["podMetricsEndpoints"]
    by_target = {each["targetLabel"]: each for each in endpoint["metricRelabelings"]}
    assert by_target["namespace"]["sourceLabels"] == ["exported_namespace"]
    pattern = by_target["ray_io_cluster"]["regex"]
    assert re.fullmatch(pattern, "kuberay_cluster_info;training")
    assert not re.fullmatch(pattern, "kuberay_job_info;nightly")


def test_both_ways_scrape_the_same_with_the_same_labels_and_have_the_same_rules() -> None:
    keys: Body = {"scheduler": {"volcano": {}}, "redis": {"exporter": {}}}
    of_operators, (configs, rules) = made(**keys), of_files(**keys)
    assert rules["groups"] == of_operators["PrometheusRule", "ray-platform"]["spec"]["groups"]
    monitors = {name: body["spec"] for (kind, name), body in of_operators.items() if kind.endswith("Monitor")}
    scrapes = {each["job_name"]: each for each in configs}
    assert set(monitors) == set(scrapes)
    for name, spec in monitors.items():
        [endpoint] = spec.get("podMetricsEndpoints") or spec["endpoints"]
        of_operator = [(each["targetLabel"], each.get("sourceLabels")) for each in endpoint["relabelings"]]
        steps = [each for each in scrapes[name]["relabel_configs"] if "target_label" in each]
        of_file = [(each["target_label"], each.get("source_labels")) for each in steps]
        # The operator itself sets namespace and pod; a file's job is the name of its scrape config.
        assert of_operator == [*(each for each in of_file if each[0] not in ("namespace", "pod")), ("job", None)]


def test_an_operator_that_watches_namespaces_has_ray_clusters_only_there() -> None:
    keys: Body = {"operator": {"watchNamespaces": ["team-a"]}, "tenants": [{"name": "team-a"}]}
    assert made(**keys)["PodMonitor", Job.WORKER]["spec"]["namespaceSelector"] == {"matchNames": ["team-a"]}
    assert made()["PodMonitor", Job.WORKER]["spec"]["namespaceSelector"] == {"any": True}
    found = {each["job_name"]: each["kubernetes_sd_configs"] for each in of_files(**keys)[0]}
    assert found[Job.WORKER] == [{"role": "pod", "namespaces": {"names": ["team-a"]}}]


def test_kueue_answers_only_to_prometheus_own_account() -> None:
    [endpoint] = made(scheduler={"kueue": {}})["ServiceMonitor", Job.KUEUE]["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["port"]) == ("https", "https")
    assert endpoint["bearerTokenFile"].endswith("/token")
    scrape = next(each for each in of_files(scheduler={"kueue": {}})[0] if each["job_name"] == Job.KUEUE)
    assert scrape["authorization"] == {"credentials_file": endpoint["bearerTokenFile"]}


def test_alerts_can_be_changed_and_removed() -> None:
    changed = {"RayGpusIdle": {"after": "1h30m", "severity": "critical"}, "RayDemandPending": {"enabled": False}}
    found = alerts(made(monitoring={"alerts": changed, "runbooks": "https://example.com/runbooks.md"}))
    assert "RayDemandPending" not in found
    idle = found["RayGpusIdle"]
    assert (idle["for"], idle["labels"]) == ("5400s", {"severity": "critical"})
    assert idle["annotations"]["runbook_url"] == "https://example.com/runbooks.md#raygpusidle"


def test_every_alert_has_a_section_of_the_runbooks_with_its_time_and_severity() -> None:
    sections = re.findall(r"^## (\w+)\n\n(.*?)\n\n", (ROOT / RUNBOOKS).read_text(), re.MULTILINE | re.DOTALL)
    described = dict(sections)
    assert list(described) == list(ALERTS)
    for name, first in described.items():
        after = "at once" if ALERTS[name].after == "0s" else f"after {ALERTS[name].after}"
        assert first.startswith(f"*{ALERTS[name].severity.capitalize()}, {after}.*"), name


def test_a_cost_needs_one_price_for_all_groups_of_a_name() -> None:
    pools = [
        {"pool": "a100", "count": 1, "cpu": 96, "memory": "1Ti", "gpus": 8, "gpuHourPrice": 2.5},
        {"pool": "l4", "count": 1, "cpu": 32, "memory": "256Gi", "gpus": 1, "gpuProduct": "NVIDIA-L4"},
    ]
    workers = [{"pool": "a100"}, {"pool": "l4"}]
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": workers}
    prices = monitored(parse({"nodes": pools, "tenants": [{"name": "a", "clusters": [cluster]}]})).prices
    assert list(prices) == [2.5]
    assert all(name.startswith("a100") for name in prices[2.5])


def test_every_port_that_is_scraped_is_open_to_prometheus() -> None:
    stack = load(GOOD / "monitoring.yaml")
    readers = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: "monitoring"}}}
    opened = {
        (manifest.body["metadata"]["namespace"], port["port"])
        for (kind, _), manifest in render(stack).items()
        if kind == "NetworkPolicy"
        for rule in manifest.body["spec"].get("ingress", ())
        if readers in rule.get("from", ())
        for port in rule["ports"]
    }
    assert opened == {
        *(("team-a", port) for port in (8080, 44217, 44227, 9399)),
        *(("ray-system", port) for port in (8080, 9121)),
        *(("volcano-system", port) for port in (8080, 8081)),
    }
    assert {each.job for each in targets(monitored(stack))} == set(Job) - {Job.KUEUE}


def test_ray_has_the_metrics_of_the_rules() -> None:
    """As whole strings, in its programs or in its Python code: without the prefix that its exporter adds, and without
    the suffix of counters."""
    folder = Path(ray.__file__).parent
    programs = [folder / "core/src/ray" / name for name in ("raylet/raylet", "gcs/gcs_server")]
    python = [folder / "dashboard" / name for name in ("modules/reporter/reporter_agent.py", "dashboard_metrics.py")]
    python += [folder / "autoscaler/_private/prom_metrics.py", folder / "serve/_private/replica.py"]
    text = b"".join(file.read_bytes() for file in (*programs, *python))
    for metric in set(Ray) - {Ray.STARTED}:
        name = re.sub("^(ray|autoscaler)_|(_(requests|exceptions|nodes))?(_total)?$", "", metric)
        forms = (f"{quote}{name}{unit}{quote}" for quote in '\0"' for unit in ("", "_nodes", "_exceptions"))
        assert any(form.encode() in text for form in forms), metric


def test_the_gateway_has_the_metrics_of_the_rules() -> None:
    names = {name for family in Metrics().registry.collect() for name in (family.name, f"{family.name}_total")}
    assert set(Gateway) <= names


def test_dashboards_are_those_of_rays_wheel() -> None:
    """Otherwise: `.venv/bin/python -m testbed.ray_dashboards --write`."""
    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == generated()


@pytest.mark.parametrize(
    ("name", "by_tenant"), [("fleet", True), ("tenant", True), ("queues", False), ("redis", False)]
)
def test_a_dashboard_has_a_stable_uid_and_perhaps_a_variable_for_the_tenant(name: str, by_tenant: bool) -> None:
    found = made(monitoring={"dashboards": [name]})["ConfigMap", f"ray-{name}"]
    board = json.loads(found["data"][f"ray-{name}.json"])
    assert board["uid"] == f"ray-platform-{name}"
    assert {'namespace=~"$tenant"' in panel["targets"][0]["expr"] for panel in board["panels"]} == {by_tenant}
    assert ("tenant" in {each["name"] for each in board["templating"]["list"]}) is by_tenant
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_each_dashboard_is_a_config_map_for_grafanas_sidecar() -> None:
    found = made(monitoring={"dashboards": ["default", "serveLlm"], "mode": "scrapeConfig"})
    assert {name for _, name in found} == {"ray-platform", "ray-default", "ray-servellm"}
    default = found["ConfigMap", "ray-default"]
    assert default["metadata"]["labels"]["grafana_dashboard"] == "1"
    board = json.loads(default["data"]["ray-default.json"])
    assert (board["uid"], f"rayVersion:{ray.__version__}" in board["tags"]) == ("rayDefaultDashboard", True)
    assert "grafana_dashboard" not in found["ConfigMap", "ray-platform"]["metadata"]["labels"]


def built(**monitoring: Any) -> Recorder:
    keys = {
        "operator": {"location": "config/default"},
        "network": {"monitoring": ["monitoring"]},
        "monitoring": monitoring,
    }
    return record(lambda: build(parse(keys)))


def definition(name: str) -> dict[str, Any]:
    metadata = {"name": f"{name}.monitoring.coreos.com"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}


def test_the_objects_are_made_after_the_operator(kubectl_that_renders: Path, in_memory: FakeCluster) -> None:
    in_memory.add(definition("podmonitors"), definition("prometheusrules"))
    recorder = built()
    assert recorder.registered["platform-monitoring"].type == "ray-platform:index:Monitoring"
    for name in ("podmonitor-ray-head", "prometheusrule-ray-platform"):
        assert recorder.registered[f"platform-monitoring-{name}"].parent == "platform-monitoring"
        assert recorder.made_before("platform-kuberay-crd-guard", f"platform-monitoring-{name}")


def test_the_operator_emits_its_metrics_and_files_need_no_other_kinds(
    kubectl_that_renders: Path,
) -> None:
    deployment = built(mode="scrapeConfig").registered["platform-kuberay-deployment-kuberay-operator"].inputs
    assert "--enable-metrics=true" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    [name] = [each for each in built(mode="scrapeConfig").registered if each.startswith("platform-monitoring-")]
    assert name == "platform-monitoring-configmap-ray-platform"


def test_missing_kinds_are_one_error_that_names_them_and_the_setting() -> None:
    missing = r"lacks prometheusrules\.monitoring\.coreos\.com: install .*scrapeConfig"
    with pytest.raises(MissingKindsError, match=missing):
        check_kinds(FakeCluster(definition("podmonitors")), ["PodMonitor", "PrometheusRule"])


URLS = {
    "RAY_PROMETHEUS_HOST": "http://prometheus.monitoring.svc:9090",
    "RAY_GRAFANA_HOST": "http://grafana.monitoring.svc:3000",
    "RAY_GRAFANA_IFRAME_HOST": "https://grafana.example.com",
}

DASHBOARD = dict(zip(("prometheusHost", "grafanaHost", "grafanaIframeHost"), URLS.values(), strict=True))


def known(*clusters: dict[str, Any], **more: Any) -> StackSettings:
    monitoring = {"mode": "scrapeConfig", "rayDashboard": DASHBOARD}
    operator = {"install": "existing"}
    network = {"monitoring": ["monitoring"]}
    return stack(tenant("team-a", *clusters, **more), monitoring=monitoring, network=network, operator=operator)


def env(group: dict[str, Any]) -> dict[str, str]:
    container = group["template"]["spec"]["containers"][0]
    return {each["name"]: each["value"] for each in container.get("env", ()) if each["name"] in URLS}


def test_these_are_the_variables_that_rays_dashboard_reads() -> None:
    """In its text, because it imports packages that the tests lack."""
    source = (Path(ray.__file__).parent / "dashboard/modules/metrics/metrics_head.py").read_text()
    assert [name for name in URLS if f'_ENV_VAR = "{name}"' not in source] == []


def envs(settings: StackSettings) -> list[dict[str, str]]:
    """Of the head and of each worker group of the first cluster."""
    [team] = settings.tenants
    spec = rendered(settings, team, team.clusters[0])["spec"]
    return [env(group) for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def test_heads_have_the_urls_and_workers_do_not() -> None:
    head, *workers = envs(known())
    assert (head, workers) == (URLS, [{}] * len(workers))
    mine = {"env": {"RAY_PROMETHEUS_HOST": "http://mine"}, "head": {"env": {"RAY_GRAFANA_HOST": "http://head"}}}
    own = {"RAY_PROMETHEUS_HOST": "http://mine", "RAY_GRAFANA_HOST": "http://head"}
    assert envs(known(cluster("training", **mine)))[0] == {**URLS, **own}
    assert envs(stack(tenant("team-a")))[0] == {}


def test_the_head_of_a_jobs_own_cluster_has_them_too() -> None:
    own = {key: value for key, value in cluster("job").items() if key != "name"}
    settings = known(jobs=[{"name": "nightly", "entrypoint": "python main.py", "cluster": own}])
    [team] = settings.tenants
    assert env(rendered_job(settings, team, team.jobs[0])["spec"]["rayClusterSpec"]["headGroupSpec"]) == URLS
