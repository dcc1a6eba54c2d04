"""How the dashboard of a cluster is reached that KubeRay does not run."""

import json
from pathlib import Path
from typing import Any

import pytest

from components.cluster import Connection
from stacks.commands.status.dashboard import elsewhere
from stacks.commands.status.targets import NoSuchTargetError
from stacks.settings import StackSettings
from testbed.commands import stacks
from tests.unit.planning.stacks import cluster, stack, tenant
from tests.unit.status.test_external import ADDRESS, LAB

TOKEN = {"tokenSecret": {"name": "lab", "key": "auth.token"}}

CML = """\
config:
  ray-platform:cml:
    host: https://ml.example.com
    clusters:
      - {name: training, project: one, rayVersion: 2.60.0, numWorkers: 1, resources: {cpu: 1, memory: 2}}
"""


def shown(settings: StackSettings, word: str) -> list[str]:
    return list(elsewhere(settings, "prod", word, Connection("my-context")))


def with_external(*names: str, **more: Any) -> StackSettings:
    return stack(*(tenant(name, externalClusters=[{**LAB, **more}]) for name in names))


def test_an_external_cluster_has_the_address_of_the_stack_file() -> None:
    assert shown(with_external("a"), "lab") == [f"{ADDRESS}    # as pods in a reach it"]


def test_its_token_is_in_a_secret_of_the_tenant() -> None:
    get = "kubectl --context my-context get secret -n a lab -o "
    assert shown(with_external("a", **TOKEN), "a/lab")[-1] == (
        f"{get}'go-template={{{{index .data \"auth.token\" | base64decode}}}}'"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"externalClusters": [LAB]},
        {"clusters": [cluster("lab")]},
        {"clusterNames": ["lab"]},
        {"jobNames": ["lab"]},
        {"serviceNames": ["lab"]},
    ],
)
def test_a_name_of_two_tenants_needs_its_namespace(other: dict[str, Any]) -> None:
    both = stack(tenant("a", externalClusters=[LAB]), {"name": "b", **other})
    with pytest.raises(NoSuchTargetError, match="'lab' exists in several namespaces: write a/lab or b/lab"):
        shown(both, "lab")
    assert len(shown(both, "a/lab")) == 1


def test_a_name_of_no_external_cluster_is_looked_for_among_live_objects() -> None:
    both = stack(tenant("a", externalClusters=[LAB]), tenant("b", externalClusters=[LAB]))
    assert shown(both, "c/lab") == shown(both, "training") == []


def test_a_cluster_on_cloudera_ml_is_asked_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(CML)
    done = stacks("dashboard", str(file), "training")
    url, _, command = done.stdout.splitlines()
    assert url.startswith("https://ray-")
    assert url.endswith(".ml.example.com")
    assert command == "pulumi stack output cmlTokens --stack prod --show-secrets --json | jq -r '.[\"training\"]'"


def test_a_cluster_on_cloudera_ml_has_no_namespace_so_others_of_its_name_are_mentioned(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(f"{CML}  ray-platform:tenants: [{{name: a, clusterNames: [training]}}]\n")
    done = stacks("dashboard", str(file), "training")
    assert done.stdout.splitlines()[3:] == ["# Another one of this name: a/training"]


def test_the_command_ends_with_2_for_a_name_that_needs_its_namespace(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(
        json.dumps(
            {"config": {"ray-platform:tenants": [{"name": name, "externalClusters": [LAB]} for name in ("a", "b")]}}
        )
    )
    done = stacks("dashboard", str(file), "lab")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "'lab' exists in several namespaces: write a/lab or b/lab\n"
