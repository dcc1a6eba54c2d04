"""Heads know the stack's Prometheus and Grafana, unless their own settings name others."""

from pathlib import Path
from typing import Any

import ray

from stacks.objects.ray_clusters import rendered, rendered_job
from stacks.settings import StackSettings
from tests.unit.planning.stacks import cluster, stack, tenant

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


def test_heads_have_the_urls_and_workers_do_not() -> None:
    settings = known()
    [team] = settings.tenants
    spec = rendered(settings, team, team.clusters[0])["spec"]
    assert env(spec["headGroupSpec"]) == URLS
    assert [env(group) for group in spec["workerGroupSpecs"]] == [{}] * len(spec["workerGroupSpecs"])


def test_the_head_of_a_jobs_own_cluster_has_them_too() -> None:
    own = {key: value for key, value in cluster("job").items() if key != "name"}
    settings = known(jobs=[{"name": "nightly", "entrypoint": "python main.py", "cluster": own}])
    [team] = settings.tenants
    assert env(rendered_job(settings, team, team.jobs[0])["spec"]["rayClusterSpec"]["headGroupSpec"]) == URLS


def test_env_of_a_cluster_and_of_its_head_goes_before() -> None:
    mine = {"env": {"RAY_PROMETHEUS_HOST": "http://mine"}, "head": {"env": {"RAY_GRAFANA_HOST": "http://head"}}}
    settings = known(cluster("training", **mine))
    [team] = settings.tenants
    assert env(rendered(settings, team, team.clusters[0])["spec"]["headGroupSpec"]) == {
        **URLS,
        "RAY_PROMETHEUS_HOST": "http://mine",
        "RAY_GRAFANA_HOST": "http://head",
    }


def test_without_the_setting_heads_are_as_before() -> None:
    settings = stack(tenant("team-a"))
    [team] = settings.tenants
    assert env(rendered(settings, team, team.clusters[0])["spec"]["headGroupSpec"]) == {}
