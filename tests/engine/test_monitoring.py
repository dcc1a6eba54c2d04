"""A real API server, with the kinds of the Prometheus operator, accepts what a stack has for it."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.rehearsal import Rehearsal
from local.tools import PROMETHEUS_OPERATOR
from stacks.load import load
from stacks.objects.monitoring import objects_of_monitoring
from testbed.kubectl import Kubectl

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(120)]

FILE = Path(__file__).parents[1] / "stack_files" / "good" / "monitoring.yaml"

KINDS = ("podmonitors", "prometheusrules", "servicemonitors")

STRICT = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
"""Fields that a definition does not have are errors, as they are not when Pulumi creates an object."""


@pytest.fixture(scope="module")
def kubectl(cluster: Rehearsal) -> Iterator[Kubectl]:
    """With the definitions, and the namespace of the objects."""
    made = Kubectl(cluster)
    folder = PROMETHEUS_OPERATOR.share("example/prometheus-operator-crd")
    files = [f"--filename={folder}/monitoring.coreos.com_{kind}.yaml" for kind in KINDS]
    made.does("create", *files)
    made.does("create", "namespace", "monitoring")
    try:
        made.does("wait", "--for=condition=Established", "--timeout=300s", *files)
        yield made
    finally:
        made.does("delete", "namespace", "monitoring")
        made.does("delete", *files)


def objects(kind: str | None = None) -> list[dict[str, Any]]:
    return [each for each in objects_of_monitoring(load(FILE)) if kind in (None, each["kind"])]


def test_all_objects_of_a_stack_are_accepted(kubectl: Kubectl) -> None:
    bodies = objects()
    assert {each["kind"] for each in bodies} == {"PodMonitor", "ServiceMonitor", "PrometheusRule", "ConfigMap"}
    created = kubectl.does(*STRICT, bodies=bodies)
    assert created.count("created (server dry run)") == len(bodies) > 8


@pytest.mark.parametrize("kind", ["PodMonitor", "ServiceMonitor", "PrometheusRule"])
def test_a_field_that_the_definition_does_not_have_is_refused(kubectl: Kubectl, kind: str) -> None:
    body = copy.deepcopy(objects(kind)[0])
    body["spec"]["nonsense"] = True
    refused = kubectl.tries(*STRICT, bodies=[body])
    assert refused.returncode != 0
    assert f'({kind}.spec): unknown field "nonsense"' in refused.stderr
