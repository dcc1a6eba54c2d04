"""Adding a RayCluster to a stack file that people have written."""

import difflib
from typing import Any

import pytest
import yaml

from stacks.commands.adopt.entry import CannotInsertError, insert_cluster

TENANT = {"name": "team-a", "createNamespace": False}

CLUSTER = {"name": "tuning", "adopt": True, "env": {"THREADS": "1"}, "workerGroups": [{"groupName": "small"}]}

WRITTEN = """\
# What team A has.
encryptionsalt: v1:abc
config:
  kubernetes:namespace: default
  ray-platform:tenants:
    - name: team-a # the first
      clusters:
        - name: training
          env: {A: "1"}
          annotations:
            note: |
              two
              lines

    # the next one is new
    - name: team-b
      namespace: b
  # the end
  ray-platform:operator: {install: existing}
"""


def tenants(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(text)["config"]["ray-platform:tenants"]
    return found


def only_adds(before: str, after: str) -> bool:
    return not [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("- ")]


def test_it_follows_the_clusters_of_its_tenant_and_nothing_else_changes() -> None:
    text = insert_cluster(WRITTEN, TENANT, CLUSTER)
    assert only_adds(WRITTEN, text)
    first, second = tenants(text)
    assert first["clusters"] == [tenants(WRITTEN)[0]["clusters"][0], CLUSTER]
    assert second == tenants(WRITTEN)[1]
    assert text.index("- name: tuning") < text.index("# the next one is new")


def test_a_tenant_is_known_by_its_namespace() -> None:
    text = insert_cluster(WRITTEN, {"name": "b", "createNamespace": False}, CLUSTER)
    assert only_adds(WRITTEN, text)
    assert tenants(text)[1] == {"name": "team-b", "namespace": "b", "clusters": [CLUSTER]}
    assert text.index("- name: tuning") < text.index("# the end")


def test_a_namespace_that_no_tenant_has_gets_one() -> None:
    text = insert_cluster(WRITTEN, {"name": "team-c", "createNamespace": False}, CLUSTER)
    assert only_adds(WRITTEN, text)
    assert tenants(text)[2] == {"name": "team-c", "createNamespace": False, "clusters": [CLUSTER]}


def test_the_first_tenant_of_a_file() -> None:
    written = "config:\n  ray-platform:operator: {install: existing}"
    text = insert_cluster(written, TENANT, CLUSTER)
    assert text.startswith(written)
    assert tenants(text) == [{**TENANT, "clusters": [CLUSTER]}]


def test_the_lines_of_a_file_from_windows_end_as_they_did() -> None:
    written = WRITTEN.replace("\n", "\r\n")
    text = insert_cluster(written, TENANT, CLUSTER)
    assert text.count("\n") == text.count("\r\n")
    assert only_adds(written, text)


@pytest.mark.parametrize(
    "written",
    [
        "config: {}",
        "config:\n  ray-platform:tenants: []",
        "config:\n  ray-platform:tenants:\n    - {name: team-a}",
        "config:\n  ray-platform:tenants:\n    - name: team-a\n      clusters: [{name: training}]",
    ],
)
def test_a_list_in_one_line_is_not_edited(written: str) -> None:
    with pytest.raises(CannotInsertError, match="not written as a block"):
        insert_cluster(written, TENANT, CLUSTER)


def test_a_tenant_of_a_base_is_named_in_the_file_that_extends_it() -> None:
    text = insert_cluster(WRITTEN, {"name": "team-c"}, CLUSTER)
    assert tenants(text)[2] == {"name": "team-c", "clusters": [CLUSTER]}
    text = insert_cluster(WRITTEN, {"name": "team-b"}, CLUSTER)
    assert tenants(text)[1] == {"name": "team-b", "namespace": "b", "clusters": [CLUSTER]}


def test_lines_may_end_differently() -> None:
    """An editor of another system has written some of them."""
    mixed = WRITTEN.replace("\n", "\r\n").replace("- name: training\r\n", "- name: training\n")
    text = insert_cluster(mixed, TENANT, CLUSTER)
    assert tenants(text) == tenants(insert_cluster(WRITTEN, TENANT, CLUSTER))
    assert text.count("\n") - text.count("\r\n") == 1
    assert insert_cluster(WRITTEN.removesuffix("\n"), TENANT, CLUSTER) == insert_cluster(WRITTEN, TENANT, CLUSTER)
