"""What a rehearsal changes in a stack file, and the end of `make up`, which README.md shows."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from components.ray_cluster.component import connection
from components.ray_cluster.worker_groups import all_groups
from kuberay.ports import HEAD_PORTS
from local import paths, report
from local.nodes import manifests
from local.placement import Kind
from local.rehearsed_file import adapt
from stacks.load import load
from tests.unit.status.live import pod

READY_POD = {"conditions": [{"type": "Ready", "status": "True"}]}

OPERATOR = {"ray-platform:operator": {"install": "existing"}}


def adapted(nodes: Kind = "simulated", **config: Any) -> dict[str, Any]:
    made = {**OPERATOR, **{f"ray-platform:{key}": value for key, value in config.items()}}
    adapt(made, nodes)
    return {key.partition(":")[2]: value for key, value in made.items()}


def test_the_context_is_removed() -> None:
    assert adapted(kubernetes={"context": "prod"})["kubernetes"] == {}


def test_no_update_waits_for_a_job_or_a_service_where_no_process_runs() -> None:
    def tenants() -> list[dict[str, Any]]:
        jobs = [{"name": "count", "waitFor": "succeeded", "waitTimeout": "2h"}]
        return [{"name": "team-a", "jobs": jobs, "services": [{"name": "chat", "waitFor": "ready"}]}]

    [tenant] = adapted(tenants=tenants())["tenants"]
    assert (tenant["jobs"], tenant["services"]) == ([{"name": "count"}], [{"name": "chat"}])
    assert adapted("real", tenants=tenants())["tenants"] == tenants()
    config: dict[str, Any] = {**OPERATOR, "ray-platform:tenants": tenants()}
    assert adapt(config, "simulated") == ["job team-a/count", "service team-a/chat"]


@pytest.mark.parametrize("tenants", ["team-a", ["team-a"], [{"jobs": "count"}], [{"jobs": ["count"]}]])
def test_values_of_a_wrong_type_stay_for_the_program_to_refuse(tenants: Any) -> None:
    assert adapted(tenants=tenants)["tenants"] == tenants


def test_the_readme_has_the_end_of_make_up_for_the_dev_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = load(paths.ROOT / "Pulumi.dev.yaml")
    [tenant] = stack.tenants
    [cluster] = tenant.clusters
    nodes = [*manifests(stack.nodes).values()]
    monkeypatch.setattr(report, "live", lambda _client: nodes)
    operator = {"metadata": {"labels": {"app.kubernetes.io/component": "kuberay-operator"}}, "status": READY_POD}
    pods = [operator, pod("head")]
    monkeypatch.setattr(report, "_live_pods", lambda _: pods)
    groups = [
        {
            "name": group.name,
            "gpus": group.gpus,
            "cpu": group.cpu,
            "memory": group.memory,
            "maxReplicas": group.max_replicas,
        }
        for group in all_groups(cluster, stack.nodes)
    ]
    addresses = connection(tenant.namespace_name, f"{cluster.name}-head-svc", HEAD_PORTS)
    name = f"{tenant.namespace_name}/{cluster.name}"
    outputs = {"clusters": {name: {"state": "ready", "workerGroups": groups, **addresses}}}
    rehearsal: Any = SimpleNamespace(client=lambda: None, states=list)
    file = paths.ROOT / "Pulumi.dev.yaml"
    pulumi: Any = SimpleNamespace(output=lambda *_: json.dumps(outputs), file=file, name="dev", not_waited_for=[])
    report.result(rehearsal, pulumi)
    report.pages(rehearsal, "dev")
    shown = [line.rstrip() for line in capsys.readouterr().out.strip().splitlines()]
    readme = [line.strip() for line in (paths.ROOT / "README.md").read_text().splitlines()]
    begin = readme.index(shown[0])
    assert readme[begin : begin + len(shown)] == shown
    pods.clear()
    report.result(rehearsal, pulumi)
    gone = capsys.readouterr().out
    assert "The KubeRay operator does not run: nothing below is kept current." in gone
    assert f"{name}  not ready: no head" in gone
    del outputs["clusters"][name]["state"]  # It could not be read.
    report.result(rehearsal, pulumi)
    assert f"{name}  unknown" in capsys.readouterr().out
