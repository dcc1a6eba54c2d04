"""What the program reads from its own state, and what a state has lost and a Secret still holds."""

import base64
import time
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from components import state
from components.cluster import path_of
from components.dynamic.generated import AuthorityProvider as Authority
from components.dynamic.generated import PasswordProvider as Password
from components.dynamic.generated import ServerCertificateProvider as Certificate
from components.tls.issuing import new_authority, new_certificate
from testbed.fake_cluster import FakeCluster

HALF_WRITTEN = "invoke of pulumi:pulumi:readStackOutputs failed: failed to load checkpoint: EOF"


def engine(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[Any]:
    """An engine that gives these answers, one after the other. Returns those that it has not given."""
    left = list(answers)

    def invoke(_function: str, _arguments: dict[str, str]) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(value=answer)

    monkeypatch.setattr(pulumi.runtime, "invoke", invoke)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    return left


def test_a_state_that_is_being_written_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, Exception(HALF_WRITTEN), Exception(HALF_WRITTEN), {"outputs": {"split": 3}})
    assert state.last_outputs() == {"split": 3}
    engine(monkeypatch, *[Exception(HALF_WRITTEN)] * 5)
    with pytest.raises(Exception, match="failed to load checkpoint"):
        state.last_outputs()
    left = engine(monkeypatch, Exception("no stack named dev"), {})
    with pytest.raises(Exception, match="no stack named dev"):
        state.last_outputs()
    assert left == [{}]


KEEPER = {
    "namespace": "team-a",
    "secret": "training-ray-authority",
    "manager": "pulumi-ray-platform-dev",
}


def live(in_memory: FakeCluster, manager: str, **texts: str) -> None:
    """A Secret in the cluster."""
    data = {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    body = {"metadata": {"annotations": {"pulumi.com/patchFieldManager": manager}}, "data": data}
    in_memory.objects[path_of("v1", "secrets", "team-a", KEEPER["secret"])] = body


def made(**props: Any) -> dict[str, Any]:
    outs = Authority().create({"name": "training", **props}).outs
    assert outs is not None
    return outs


def test_an_authority_that_pods_were_certified_by_is_found_again_unless_another_stack_made_it(
    in_memory: FakeCluster,
) -> None:
    assert "BEGIN CERTIFICATE" in made(keeper=KEEPER)["certificate"]
    certificate, key = new_authority("training")
    live(in_memory, KEEPER["manager"], tls_crt=certificate, tls_key=key)
    assert (made(keeper=KEEPER)["certificate"], made(keeper=KEEPER)["key"]) == (certificate, key)
    live(in_memory, "pulumi-ray-platform-prod", tls_crt=certificate, tls_key=key)
    assert made(keeper=KEEPER)["key"] != key


def test_the_certificate_of_a_server_is_found_again_if_it_is_for_its_names(in_memory: FakeCluster) -> None:
    authority, certificate, key, _ = new_certificate("ray-redis", ["ray-redis-0", "ray-redis-1"])
    live(in_memory, KEEPER["manager"] or "", ca_crt=authority, tls_crt=certificate, tls_key=key)

    def key_for(*names: str) -> str:
        outs = Certificate("ray-redis", with_rsa=False).create({"names": list(names), "keeper": KEEPER}).outs
        assert outs is not None
        return str(outs["key"])

    assert key_for("ray-redis-0", "ray-redis-1") == key
    assert key_for("ray-redis-0") != key


def password(generation: float) -> str:
    """Of a user whose Secret is `passwords`, with numbers as the engine passes them."""
    props = {"purpose": "user x", "keeper": KEEPER, "key": "passwords", "generation": generation}
    outs = Password().create(props).outs
    assert outs is not None
    return str(outs["password"])


def test_each_password_is_found_again_by_its_generation_and_a_new_one_has_a_new_password(
    in_memory: FakeCluster,
) -> None:
    live(in_memory, KEEPER["manager"], passwords="newest\noldest\n", generations="4\n2\n")
    assert [password(2.0), password(4.0)] == ["oldest", "newest"]
    assert all(len(password(generation)) > 40 for generation in (3.0, 5.0))
