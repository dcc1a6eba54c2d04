"""How monitoring is provisioned: after the operator, and only where the Prometheus operator's kinds are."""

from pathlib import Path
from typing import Any

import pytest

from components.monitoring.installed import MissingKindsError, check_kinds
from stacks.load import parse
from stacks.program.build import build
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record


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


def test_the_operator_emits_its_metrics(kubectl_that_renders: Path) -> None:
    deployment = built(mode="scrapeConfig").registered["platform-kuberay-deployment-kuberay-operator"].inputs
    assert "--enable-metrics=true" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_missing_kinds_are_one_error_that_names_them_and_the_setting() -> None:
    missing = r"lacks prometheusrules\.monitoring\.coreos\.com: install .*scrapeConfig"
    with pytest.raises(MissingKindsError, match=missing):
        check_kinds(FakeCluster(definition("podmonitors")), ["PodMonitor", "PrometheusRule"])


def test_files_need_no_kinds_of_the_prometheus_operator(kubectl_that_renders: Path) -> None:
    [name] = [each for each in built(mode="scrapeConfig").registered if each.startswith("platform-monitoring-")]
    assert name == "platform-monitoring-configmap-ray-platform"
