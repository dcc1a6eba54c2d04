"""The end of `make up`, which README.md shows."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from components.ray_cluster.component import connection
from components.ray_cluster.manifests import HEAD_PORTS
from components.ray_cluster.worker_groups import all_groups
from local import paths, report
from local.nodes import manifests
from stacks.load import load


def test_the_readme_has_the_end_of_make_up_for_the_dev_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = load(paths.ROOT / "Pulumi.dev.yaml")
    [tenant] = stack.tenants
    [cluster] = tenant.clusters
    nodes = [*manifests(stack.nodes).values()]
    monkeypatch.setattr(report, "live", lambda _client: nodes)
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
    pulumi: Any = SimpleNamespace(output=lambda *_: json.dumps(outputs))
    report.result(rehearsal, pulumi)
    report.pages(rehearsal, "dev")
    shown = [line.rstrip() for line in capsys.readouterr().out.strip().splitlines()]
    readme = [line.strip() for line in (paths.ROOT / "README.md").read_text().splitlines()]
    begin = readme.index(shown[0])
    assert readme[begin : begin + len(shown)] == shown
