"""How the dashboard of a cluster is reached that KubeRay does not run."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stacks.__main__ import app
from stacks.settings import StackSettings
from stacks.status.elsewhere import dashboard
from tests.unit.planning.stacks import stack, tenant
from tests.unit.status.test_external import ADDRESS, LAB

pytestmark = pytest.mark.unit

TOKEN = {"tokenSecret": {"name": "lab", "key": "auth.token"}}

CML = """\
config:
  ray-platform:cml:
    host: https://ml.example.com
    clusters:
      - {name: training, project: one, rayVersion: 2.60.0, numWorkers: 1, resources: {cpu: 1, memory: 2}}
"""


def shown(settings: StackSettings, word: str) -> list[str]:
    return list(dashboard(settings, "prod", word, "my-context"))


def with_external(*names: str, **more: Any) -> StackSettings:
    return stack(*(tenant(name, externalClusters=[{**LAB, **more}]) for name in names))


def test_an_external_cluster_has_the_address_of_the_stack_file() -> None:
    assert shown(with_external("a"), "lab") == [f"{ADDRESS}    # as pods in a reach it"]


def test_its_token_is_in_a_secret_of_the_tenant() -> None:
    get = "kubectl --context my-context get secret -n a lab -o "
    assert shown(with_external("a", **TOKEN), "a/lab")[-1] == (
        f"{get}'go-template={{{{index .data \"auth.token\" | base64decode}}}}'"
    )


def test_two_of_one_name_are_both_shown_unless_the_namespace_is_named() -> None:
    both = with_external("a", "b")
    assert [line.partition("in ")[2] for line in shown(both, "lab")] == ["a reach it", "b reach it"]
    assert len(shown(both, "b/lab")) == 1
    assert shown(both, "c/lab") == shown(both, "training") == []


def test_a_cluster_on_cloudera_ml_is_asked_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(CML)
    done = CliRunner().invoke(app, ["dashboard", str(file), "training"])
    url, _, command = done.stdout.splitlines()
    assert url.startswith("https://ray-")
    assert url.endswith(".ml.example.com")
    assert command == "pulumi stack output cmlTokens --stack prod --show-secrets --json | jq -r '.[\"training\"]'"
