"""The faults of Ray's releases: who meets them, with the last release that has each and the first that does not."""

from typing import Any

import pytest

from kuberay.faults import faults_of_cluster, faults_of_job, faults_of_service
from kuberay.serve import read_config

HEAD: dict[str, Any] = {"template": {"spec": {"containers": [{"name": "ray-head"}]}}}
SCALED: dict[str, Any] = {"headGroupSpec": HEAD, "enableInTreeAutoscaling": True}
V1, V2 = ({**SCALED, "autoscalerOptions": {"version": version}} for version in ("v1", "v2"))
BY_VARIABLE = {"name": "ray-head", "env": [{"name": "RAY_enable_autoscaler_v2", "value": "1"}]}
GROUPS = {"workerGroupSpecs": [{"groupName": "slices", "numOfHosts": 4, "template": HEAD["template"]}]}
KEPT = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}


@pytest.mark.parametrize(
    ("spec", "last", "first", "finds"),
    [
        ({**V1, **GROUPS}, "2.42.1", "2.43.0", "autoscaling_config.py"),
        ({**V2, **GROUPS}, "2.47.1", "2.48.0", "kuberay/cloud_provider.py"),
        (V2, "2.46.0", "2.47.0", "ray#52264"),
        (
            {**SCALED, "headGroupSpec": {"template": {"spec": {"containers": [BY_VARIABLE]}}}},
            "2.46.0",
            "2.47.0",
            "ray#52264",
        ),
        ({**V2, **KEPT}, "2.47.1", "2.48.0", "ray#54353"),
        (SCALED, "2.54.0", "2.55.0", "ray#60534"),
        ({"headGroupSpec": HEAD, "authOptions": {"mode": "token"}}, "2.52.1", "2.53.0", "ray#59614"),
    ],
)
def test_a_cluster_meets_a_fault_until_the_release_without_it(
    spec: dict[str, Any], last: str, first: str, finds: str
) -> None:
    def found(version: str | None) -> list[str]:
        return [each.message for each in faults_of_cluster({**spec, "rayVersion": version}) if finds in each.message]

    [message] = found(last)
    assert message.startswith(f"Ray before {first} ")
    assert found(first) == found(None) == found("nightly") == []


@pytest.mark.parametrize("spec", [{"headGroupSpec": HEAD}, V1, {**SCALED, **KEPT}])
def test_a_cluster_without_the_feature_meets_none(spec: dict[str, Any]) -> None:
    assert list(faults_of_cluster({**spec, "rayVersion": "2.46.0"})) == []


def test_a_job_meets_the_one_of_its_command() -> None:
    spec = {"entrypoint": "python run.py `date`"}
    [met] = faults_of_job(spec, "2.55.1")
    assert met.path == ("entrypoint",)
    assert list(faults_of_job(spec, "2.56.0")) == []
    assert list(faults_of_job({**spec, "submissionMode": "HTTPMode"}, "2.55.1")) == []


@pytest.mark.parametrize(("strategy", "first", "number"), [("NewClusterWithIncrementalUpgrade", 1, 1), ("None", 1, 0)])
def test_a_service_meets_the_one_of_its_upgrade(strategy: str, first: int, number: int) -> None:
    scaling = f"autoscaling_config: {{min_replicas: 0, initial_replicas: {first}}}"
    text = f"applications: [{{name: a, import_path: a:app, deployments: [{{name: Model, {scaling}}}]}}]"
    config, _ = read_config(text)
    assert config
    spec = {"upgradeStrategy": {"type": strategy}, "rayClusterConfig": {"rayVersion": "2.60.0"}}
    met = list(faults_of_service(config, spec))
    assert len(met) == number
    assert [each.path[-1] for each in met] == ["initial_replicas"] * number
