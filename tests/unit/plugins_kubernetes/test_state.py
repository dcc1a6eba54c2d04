"""The content of the state, and previews."""

from local.plugins.kubernetes import state
from local.plugins.kubernetes.values import UNKNOWN, Secret

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "door"}}


def test_the_text_of_a_secret_is_compared_and_kept_as_the_data_that_the_server_stores() -> None:
    written = SECRET | {"data": {"code": "eA==", "kept": "eQ=="}, "stringData": {"code": "z"}}
    assert state.as_stored(written) == SECRET | {"data": {"code": "eg==", "kept": "eQ=="}}


def test_the_text_of_other_kinds_and_unknown_text_stay_as_in_the_program() -> None:
    for written in (SECRET | {"kind": "Vault", "stringData": {"a": "x"}}, SECRET | {"stringData": {"a": UNKNOWN}}):
        assert state.as_stored(written) == written


def test_all_data_of_a_secret_is_secret_though_the_program_did_not_mark_it() -> None:
    packed = state.pack(SECRET | {"data": {"code": "eA=="}}, SECRET | {"stringData": {"code": "x"}}, "m", "v1")
    assert packed["data"] == Secret({"code": "eA=="})
    assert packed["__inputs"]["stringData"] == Secret({"code": "x"})


def test_the_copy_that_kubectl_apply_keeps_of_a_secret_is_secret() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"code": "eA=="}}', "a": "b"}
    packed = state.pack(SECRET | {"metadata": {"name": "door", "annotations": annotations}}, SECRET, "m", "v1")
    assert "eA==" not in repr(packed)
    assert packed["metadata"]["annotations"]["a"] == "b"


def test_a_packed_state_is_unpacked_again() -> None:
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "1"}, "data": {"k": "v"}}
    inputs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": Secret("v")}}
    packed = state.pack(live, inputs, "manager", "v1")
    assert state.live_of(packed) == live
    assert state.inputs_of(packed) == inputs
    assert (state.manager_of(packed), state.api_version_of(packed)) == ("manager", "v1")
    assert packed["data"] == {"k": Secret("v")}


def test_schema_extensions_have_dashes_for_kubernetes_and_underscores_for_programs() -> None:
    schema = {"spec": {"x_kubernetes_preserve_unknown_fields": True}}
    sent = state.from_program(schema)
    assert sent == {"spec": {"x-kubernetes-preserve-unknown-fields": True}}
    assert state.pack(sent, {}, "m", "v1")["spec"] == schema["spec"]


def test_a_preview_of_a_creation_knows_the_name_but_not_the_servers_values() -> None:
    shown = state.predict_create({"metadata": {"name": "a", "uid": "made up by the dry run"}, "spec": {"x": 1}})
    assert shown["metadata"]["name"] == "a"
    assert shown["metadata"]["uid"] is UNKNOWN
    assert shown["status"] is UNKNOWN


def test_a_preview_of_an_update_knows_the_identity() -> None:
    shown = state.foresee_update({"metadata": {"name": "a"}}, {"metadata": {"uid": "1", "generation": 3}})
    assert shown["metadata"]["uid"] == "1"
    assert shown["metadata"]["generation"] is UNKNOWN
