"""The inputs as they are compared and sent."""

from typing import Any

import pytest
from pulumi.runtime.proto.provider_pb2 import CheckRequest

from local.plugins.kubernetes.check import check
from local.plugins.kubernetes.errors import RefusedError
from local.plugins.kubernetes.values import UNKNOWN, Secret

CONFIG_MAP = "urn:pulumi:dev::shop::my:Component$kubernetes:core/v1:ConfigMap::settings"
SEED = bytes.fromhex("0123456789abcdef")


def checked(urn: str = CONFIG_MAP, olds: dict[str, Any] | None = None, **news: Any) -> dict[str, Any]:
    return check(urn, olds or {}, news, SEED, None, cluster=None)


def test_a_name_is_generated_from_the_engines_seed_so_that_preview_and_update_agree() -> None:
    inputs = checked(data={"a": "1"})
    assert inputs == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"a": "1"},
        "metadata": {"name": "settings-01234567", "annotations": {"pulumi.com/autonamed": "true"}},
    }


def test_a_generated_name_is_kept_and_a_given_one_is_not() -> None:
    before = checked() | {"metadata": {"name": "settings-old", "annotations": {"pulumi.com/autonamed": "true"}}}
    assert checked(olds=before)["metadata"]["name"] == "settings-old"
    given = {"metadata": {"name": "given"}}
    assert checked(olds=given)["metadata"]["name"] == "settings-01234567"


def test_an_unknown_name_is_not_replaced_by_a_generated_one() -> None:
    assert checked(metadata={"name": UNKNOWN})["metadata"] == {"name": UNKNOWN}


def test_the_projects_own_naming_is_used() -> None:
    proposal = CheckRequest.AutonamingOptions(proposed_name="settings-dev", mode=CheckRequest.AutonamingOptions.PROPOSE)
    assert check(CONFIG_MAP, {}, {}, SEED, proposal, None)["metadata"]["name"] == "settings-dev"
    disabled = CheckRequest.AutonamingOptions(mode=CheckRequest.AutonamingOptions.DISABLE)
    with pytest.raises(RefusedError, match="autonaming is disabled"):
        check(CONFIG_MAP, {}, {}, SEED, disabled, None)


def test_secrets_stay_secret() -> None:
    assert checked(data={"a": Secret("1"), "b": "2"})["data"] == {"a": Secret("1"), "b": "2"}


def test_fields_that_only_the_server_writes_are_removed() -> None:
    metadata = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "7"}
    assert checked(metadata=metadata)["metadata"] == {"name": "a"}


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        ("core/v1:ConfigMapList", "Use the underlying resource type instead"),
        ("core/v1:ConfigMapPatch", "use the real plugin for Patch resources"),
        ("apps/v1:DeploymentPatch", "use the real plugin for Patch resources"),
        ("helm.sh/v3:Release", "does not do Helm"),
    ],
)
def test_unsupported_kinds_are_refused(token: str, complaint: str) -> None:
    with pytest.raises(RefusedError, match=complaint):
        checked(f"urn:pulumi:dev::shop::kubernetes:{token}::x")


def test_a_custom_kind_may_be_called_list_or_patch() -> None:
    for kind in ("AllowList", "DataPatch"):
        assert checked(f"urn:pulumi:dev::shop::kubernetes:example.com/v1:{kind}::x")["kind"] == kind


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"pulumi\.com/waitFor"):
        checked(metadata={"name": "a", "annotations": {"pulumi.com/waitFor": "ready"}})
