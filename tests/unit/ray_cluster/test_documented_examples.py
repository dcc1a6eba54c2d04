"""The examples of docs/stack-file.md that are parts of a cluster's entry."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from core.nodes import NodePool
from kuberay import OperatorContext, validate

PAGE = (Path(__file__).parents[3] / "docs" / "stack-file.md").read_text()
KEYS = {str(field.alias) for field in RayClusterSettings.model_fields.values()}


def examples() -> list[dict[str, Any]]:
    """The indented blocks whose keys are a cluster's."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE, re.MULTILINE)
    documents = [yaml.safe_load(textwrap.dedent(block)) for block in blocks if re.match(r"\s*[a-zA-Z]+:", block)]
    return [each for each in documents if isinstance(each, dict) and set(each) <= KEYS]


def test_the_page_has_examples() -> None:
    assert {"workers", "workerGroups", "head", "overrides"} <= {key for each in examples() for key in each}


@pytest.mark.parametrize("example", examples(), ids=lambda example: ",".join(example))
def test_an_example_is_valid(example: dict[str, Any]) -> None:
    pools = (NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8),)
    entry = {"name": "a", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "a100"}, **example}
    body = ray_cluster(valid(entry), pools)
    assert validate(body, OperatorContext()) == []


def test_flags_in_json_are_quoted_as_documented() -> None:
    [example] = re.findall(r'`resources: (".*?")`', PAGE)
    params = {"rayStartParams": {"resources": yaml.safe_load(example)}}
    valid({"name": "a", "rayVersion": "2.60.0", "image": "ray:2.60.0", "head": params})
