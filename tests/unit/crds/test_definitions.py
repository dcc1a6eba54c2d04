"""References to definitions by digest, and descriptions of their changes."""

import copy
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError, NoAnswerError
from components.crds import live
from components.crds.definitions import (
    MissingDefinitionError,
    are_kept,
    content,
    definitions_of,
    referred,
    whole,
)
from components.crds.live import describe
from core.body import Body
from testbed.fake_cluster import FakeCluster


def crd(**spec: Any) -> Body:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "description": "How big."},
                    "parts": {"type": "array", "items": {"properties": {"name": {"type": "string"}}}},
                },
            }
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.example", "creationTimestamp": None},
        "spec": {"group": "sea.example", "names": {"plural": "boats"}, "versions": [version], **spec},
        "status": {"conditions": []},
    }


def fields(body: Body) -> dict[str, Any]:
    found: dict[str, Any] = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "cache"


def test_a_reference_replaces_a_definition_and_no_other_object() -> None:
    other = {"kind": "ConfigMap", "metadata": {"name": "x"}}
    objects = referred([crd(), other])
    assert len(str(objects[0])) < 400
    assert objects[1] == other
    (definition,) = definitions_of(objects)
    assert (definition.name, definition.resource) == ("boats.sea.example", "boats.v1.sea.example")
    assert content(definition.digest) == crd()
    assert whole(objects) == [crd(), other]
    assert referred(objects) == objects


def test_different_contents_have_different_digests() -> None:
    one, other = (definitions_of(referred([crd(scope=scope)]))[0] for scope in ("Cluster", "Namespaced"))
    assert one.name == other.name
    assert one.digest != other.digest


def test_without_a_cache_a_temporary_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the place of the folder")
    (definition,) = definitions_of(referred([crd()]))
    assert content(definition.digest) == crd()


def test_without_any_folder_the_error_names_them(tmp_path: Path) -> None:
    for name in ("cache", "temporary"):
        (tmp_path / name).write_text("")
    with pytest.raises(OSError, match=r"none of .*cache/definitions, .*temporary/ray-platform-\d+/definitions can be"):
        referred([crd()])


def test_a_cache_file_that_was_changed_or_removed_is_not_used(cache: Path) -> None:
    objects = referred([crd()])
    (file,) = (cache / "definitions").iterdir()
    assert are_kept(objects)
    file.write_text(file.read_text().replace("boats", "ships"))
    with pytest.raises(MissingDefinitionError, match=f"{file.stem} is in none of"):
        content(file.stem)
    file.unlink()
    assert not are_kept(objects)


def test_a_definition_is_applied_with_its_digest_and_without_fields_of_the_server() -> None:
    applied = live.applied(crd(), "abc", None)
    assert applied["metadata"] == {"name": "boats.sea.example", "annotations": {"ray-platform/definition": "abc"}}
    assert "status" not in applied
    assert applied["spec"] == crd()["spec"]


def test_a_conversion_webhook_is_found_in_its_namespace_with_its_certificate() -> None:
    service = {"name": "convert", "namespace": "kueue-system", "path": "/convert"}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}}
    body = crd(conversion=conversion)
    before = copy.deepcopy(body)
    applied = live.applied(body, "abc", {"namespace": "queues", "caBundle": "Q0E="})
    client = applied["spec"]["conversion"]["webhook"]["clientConfig"]
    assert client == {"service": {**service, "namespace": "queues"}, "caBundle": "Q0E="}
    assert body == before
    assert live.applied(crd(), "abc", {"namespace": "queues", "caBundle": "Q0E="})["spec"] == crd()["spec"]


def test_fields_and_versions_that_are_added_removed_and_changed_are_named_by_their_topmost_path() -> None:
    after = crd()
    fields(after)["size"]["description"] = "Its length in metres."
    assert describe(crd(), after) == ""
    fields(after)["crew"] = {"type": "object", "properties": {"captain": {"type": "string"}}}
    fields(after)["size"]["type"] = "string"
    del fields(after)["parts"]["items"]["properties"]["name"]
    assert describe(crd(), after) == "adds v1 spec.crew; removes v1 spec.parts.name; changes v1 spec.size"
    after = crd()
    after["spec"]["versions"].append({**crd()["spec"]["versions"][0], "name": "v2", "storage": False})
    after["spec"]["versions"][0]["served"] = False
    assert describe(crd(), after) == "adds v2; changes v1"
    after = crd()
    fields(after).update({f"field{number:02}": {"type": "string"} for number in range(12)})
    assert describe(crd(), after).endswith("v1 spec.field09 and 2 more")


def test_a_change_of_a_field_takes_its_ownership() -> None:
    ours = {"manager": "ours", "operation": "Apply", "fieldsV1": {"f:spec": {"f:versions": {}}}}
    status = {"manager": "kube-apiserver", "operation": "Update", "subresource": "status", "fieldsV1": {}}
    before = {"managedFields": [ours, status]}
    edit = {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-02T00:00:00Z", "fieldsV1": {}}
    after = {"managedFields": [{**ours, "fieldsV1": {"f:spec": {}}}, status, edit]}
    assert live.owned_fields(before, "ours") != live.owned_fields(after, "ours")
    assert live.owned_fields(before, "others") is None
    assert (live.owns_versions(before, "ours"), live.owns_versions(after, "ours")) == (True, False)
    assert live.other_managers(after, "ours") == ["kubectl-edit"]


Answer = dict[str, Any] | Exception | None

APPLIED: Answer = {"metadata": {}}

SERVED: Answer = {"resources": [{"name": crd()["spec"]["names"]["plural"]}]}
"""The API server's answer for the group of the definition once it serves its kind."""

Applying = Callable[..., list[str]]


@pytest.fixture
def applying(monkeypatch: pytest.MonkeyPatch) -> Applying:
    """Applies the definition with an API server that gives these answers; returns the methods of the requests."""

    def apply(*answers: Answer) -> list[str]:
        (definition,) = definitions_of(referred([crd()]))
        left, asked = list(answers), []

        class Answering(FakeCluster):
            def request(self, method: str, path: str, **_: Any) -> dict[str, Any] | None:
                asked.append(method)
                if isinstance(answer := left.pop(0), Exception):
                    raise answer
                return answer

        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        live.apply(Answering(), {definition.name: definition.digest}, "stack", None)
        assert left == []
        return asked

    return apply


def test_a_definition_is_applied_again_if_the_api_server_was_too_busy_to_answer(applying: Applying) -> None:
    assert applying(NoAnswerError("the read operation timed out"), APPLIED, SERVED) == ["PATCH", "PATCH", "GET"]


def test_a_refused_definition_is_not_applied_again(applying: Applying) -> None:
    with pytest.raises(ClusterUnreachableError, match=r"spec\.scope"):
        applying(ClusterUnreachableError("the API server refuses: spec.scope"))


def test_an_applied_definition_is_not_read_again_once_its_kind_is_served(applying: Applying) -> None:
    assert applying(APPLIED, None, {}, {"resources": []}, {"status": {}}, SERVED) == ["PATCH", *5 * ["GET"]]


def test_the_reason_of_a_definition_that_is_never_served_is_reported(applying: Applying) -> None:
    refused = {"type": "NamesAccepted", "status": "False", "message": '"rayclusters" is already in use'}
    with pytest.raises(live.DefinitionError, match='not established: "rayclusters" is already in use'):
        applying(APPLIED, None, {"status": {"conditions": [refused]}})
