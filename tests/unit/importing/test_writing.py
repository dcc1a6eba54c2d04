"""The stack file that an import writes."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.stack_file import stack_file as read_stack_file
from core.yaml_writer import go_yaml
from stacks.commands.importing import file as module
from stacks.commands.importing.file import import_file
from stacks.commands.importing.reader import Answers, Imported, Note
from stacks.commands.importing.writing import stack_file
from stacks.load import settings_of


def imported(name: str, namespace: str | None, *notes: Note, **more: Any) -> Imported:
    return Imported({"name": name, **more}, namespace, notes)


def test_clusters_are_under_a_tenant_for_each_namespace() -> None:
    text = stack_file([imported("a", "red"), imported("b", "blue"), imported("c", "red")], None)
    assert text.startswith("# yaml-language-server: $schema=./stack-file.schema.json\n")
    assert yaml.safe_load(text)["config"]["ray-platform:tenants"] == [
        {"name": "red", "network": {"egress": [{"internet": True}]}, "clusters": [{"name": "a"}, {"name": "c"}]},
        {"name": "blue", "network": {"egress": [{"internet": True}]}, "clusters": [{"name": "b"}]},
    ]


def test_a_long_namespace_keeps_its_name_under_a_shorter_tenant() -> None:
    namespace = "a-namespace-of-more-than-forty-characters-in-all"
    [tenant] = yaml.safe_load(stack_file([imported("a", namespace)], None))["config"]["ray-platform:tenants"]
    assert (tenant["name"], tenant["namespace"]) == ("a-namespace-of-more-than-forty-character", namespace)


def test_a_decision_for_a_person_is_a_comment_above_the_setting() -> None:
    note = Note((), "the file does not set it", "set cpu", at=("workerGroups", "small", "cpu"))
    image = Note((), "no image is set", "use your own", at=("image",))
    groups = [{"groupName": "large", "cpu": "8"}, {"groupName": "small", "cpu": "1"}]
    text = stack_file([imported("a", None, note, image, image="x", workerGroups=groups)], None)
    assert text.partition("\n")[2] == textwrap.dedent("""\
        config:
          ray-platform:tenants:
          # decide: the namespace of these clusters; the imported file sets none
          - name: imported
            # decide: remove what its pods do not reach, and set who reaches them: dashboardFrom, clientFrom, serveFrom
            network:
              egress:
              - internet: true
            clusters:
            - name: a
              # decide: use your own (no image is set)
              image: x
              workerGroups:
              - groupName: large
                cpu: '8'
              - groupName: small
                # decide: set cpu (the file does not set it)
                cpu: '1'
        """)


def test_a_missing_setting_has_its_comment_at_the_nearest_existing_one() -> None:
    note = Note((), "nobody asks for a token", "remove it", at=("overrides", "authOptions"))
    assert "    # decide: remove it" in stack_file([imported("a", "red", note, overrides={"suspend": True})], None)


def test_a_text_that_looks_like_a_number_stays_a_text(tmp_path: Path) -> None:
    container = {
        "name": "ray-head",
        "image": "rayproject/ray:2.60.0",
        "args": ["7e10"],
        "env": [{"name": "LR", "value": "1e-4"}, {"name": "NOTE", "value": "a\u2028b"}],
        "resources": {"limits": {"cpu": "1", "memory": "4Gi"}},
    }
    head = {"rayStartParams": {}, "template": {"spec": {"containers": [container], "nodeSelector": {"pool": "1e3"}}}}
    metadata = {"name": "a", "namespace": "red", "labels": {"commit": "1234567e1"}}
    file = tmp_path / "a.yaml"
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": {"headGroupSpec": head}}
    file.write_text(go_yaml(body))
    result = import_file(file, Answers())
    [tenant] = settings_of(read_stack_file("Pulumi.any.yaml", result.text)).tenants
    [cluster] = tenant.clusters
    assert cluster.labels == {"commit": "1234567e1"}
    assert cluster.head.env == {"LR": "1e-4", "NOTE": "a\u2028b"}


def test_a_stack_file_with_other_values_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("cluster_name: small\nprovider: {type: aws}\ndocker: {image: 'rayproject/ray:2.60.0'}\n")
    monkeypatch.setattr(
        module,
        "stack_file",
        lambda *_: stack_file([imported("b", "red", rayVersion="2.60.0", image="rayproject/ray:2.60.0")], None),
    )
    result = import_file(file, Answers())
    assert (result.text, len(result.lines)) == ("", 1)
    assert result.lines[0].startswith(f"{file}: the resulting stack file would have other values")
