"""The client of Cloudera ML's API: what it repeats, reads in pages, reports and hides."""

import re
from collections.abc import Callable

import httpx
import pytest

from components.cml.client import (
    Client,
    CmlError,
    ConflictError,
    NotAnsweredError,
    NotFoundError,
    QuotaError,
    api_key,
    proxy,
    tls,
)
from components.cml.manifests import THE_HEAD, application, script, script_path
from testbed.cml.server import HOST, KEY, RUNTIMES, Faults
from tests.unit.cml.conftest import TOKEN, MakePlace, Place

pytestmark = pytest.mark.thorough


def test_failures_are_repeated_and_pages_are_read(place_with: MakePlace) -> None:
    place = place_with(Faults(seed=3, rate=0.3, latency=0.01, in_a_row=4))
    client, inputs = place.client(), place.inputs()
    client.upload("one", script_path(inputs), script())
    body = application(inputs, THE_HEAD, TOKEN, "1")
    for number in range(120):
        place.workspace.create("one", {**body, "nvidia_gpu": 0, "name": f"a.{number}", "subdomain": f"a-{number}"})
    assert len(client.applications("one")) == 120
    assert len(client.applications("one", "a.11")) == 11
    assert client.applications("one")[0].environment["RAY_AUTH_TOKEN"] == TOKEN
    assert client.runtimes() == list(RUNTIMES)
    assert client.most_gpus() == 4
    for each in client.applications("one"):
        client.delete(each)
    assert client.applications("one") == []
    client.remove("one", script_path(inputs))
    client.remove("one", script_path(inputs))


def test_errors_name_what_to_do(place: Place) -> None:
    with pytest.raises(CmlError, match=r"does not accept the API key \(401\): create another one") as refused:
        place.client("a-wrong-key").applications("one")
    assert "a-wrong-key" not in str(refused.value)
    with pytest.raises(NotFoundError, match=r"was not found \(404\): check the project's id"):
        place.client().applications("three")
    inputs = place.inputs()
    body = application(inputs, THE_HEAD, TOKEN, "1")
    with pytest.raises(CmlError, match=r"refuses POST .*: script .* does not exist"):
        place.client().create("one", body)
    place.client().upload("one", script_path(inputs), script())
    place.client().create("one", body)
    with pytest.raises(ConflictError, match="is already in use"):
        place.client().create("one", body)


def test_a_server_that_always_fails_is_reported_and_a_creation_is_sent_once(place_with: MakePlace) -> None:
    place = place_with(Faults(rate=1.0))
    with pytest.raises(NotAnsweredError):
        place.client().create("one", {"name": "x"})
    assert len(place.server.requests) == 1
    with pytest.raises(NotAnsweredError, match=re.escape(f"https://{HOST}")):
        place.client().applications("one")
    assert len(place.server.requests) == 1 + 7


def test_a_certificate_of_an_unknown_authority_is_refused(place: Place) -> None:
    with pytest.raises(NotAnsweredError, match="CERTIFICATE_VERIFY_FAILED"):
        Client(f"https://{HOST}", KEY, pause=0).applications("one")
    with pytest.raises(CmlError, match=r"caFile '/nowhere\.pem' is not a file with certificates"):
        tls("/nowhere.pem")


def test_the_key_of_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CML_API_KEY", "first")
    assert api_key("second") == "first"
    monkeypatch.delenv("CML_API_KEY")
    assert api_key("second") == "second"
    with pytest.raises(CmlError, match="set CML_API_KEY in the environment, or run `pulumi config set --secret"):
        api_key(None)


def test_a_key_that_no_header_can_have_is_refused_and_not_shown() -> None:
    assert api_key("a-key\n") == "a-key"
    for wrong in ("a-secret\nkey", "a-secret key", "a-secret-kéy"):
        with pytest.raises(CmlError, match="the API key has a space or a letter that no key has") as refused:
            api_key(wrong)
        assert "secret" not in str(refused.value)


def test_the_proxy_may_have_no_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    found = proxy(f"https://{HOST}")
    assert found is not None
    assert str(found.url) == "http://proxy.example:3128"
    monkeypatch.setenv("HTTPS_PROXY", "ftp://me:hunter2@proxy.example")
    with pytest.raises(CmlError, match="HTTPS_PROXY is not the address of a proxy") as refused:
        proxy(f"https://{HOST}")
    assert "hunter2" not in str(refused.value)


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    """A client of a server that answers so."""
    client = Client(f"https://{HOST}", KEY, secrets=[TOKEN])
    client._http = httpx.Client(base_url=f"https://{HOST}/", transport=httpx.MockTransport(answer))
    return client


def test_an_application_on_two_pages_is_one_application() -> None:
    """Else the second one would be deleted as a double, which is the only one."""

    def answer(request: httpx.Request) -> httpx.Response:
        token = request.url.params.get("page_token", "")
        body = {"id": "same", "name": "ray.dev.training.head", "status": "running"}
        return httpx.Response(
            200, json={"applications": [body], "next_page_token": {"": "a", "a": "b"}.get(token, "a")}
        )

    assert [each.id for each in answering(answer).applications("one")] == ["same"]


def test_what_a_server_repeats_is_hidden_before_it_is_shortened() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(400, json={"message": f"{'x' * 270} {KEY} {TOKEN} {request.content.decode()}"})

    for secret in (KEY, TOKEN):
        with pytest.raises(CmlError) as refused:
            answering(answer).create("one", {"environment": {"RAY_AUTH_TOKEN": TOKEN}})
        assert secret[:5] not in str(refused.value)


def test_an_answer_that_is_no_object_is_reported() -> None:
    with pytest.raises(CmlError, match="with no object of JSON: set `host`"):
        answering(lambda _: httpx.Response(200, json=[5])).applications("one")


def test_the_key_is_nowhere_but_in_the_header(place: Place) -> None:
    place.make(place.inputs())
    place.clean(place.inputs())
    assert place.server.requests
    assert not [request for request in place.server.requests if KEY in request]
    assert not [line for line in place.lines if KEY in line or TOKEN in line]


def test_a_user_without_the_right_and_a_quota_are_distinguished() -> None:
    refuses = answering(lambda _: httpx.Response(403, json={"message": "not allowed"}))
    with pytest.raises(CmlError, match=r"may not POST .* \(403\): not allowed. Its user needs to be a contributor"):
        refuses.create("one", {})
    with pytest.raises(QuotaError, match=r"over a quota \(403\)"):
        answering(lambda _: httpx.Response(403, json={"message": "GPU quota exceeded"})).create("one", {})


def test_a_request_that_takes_too_long_may_have_been_done() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("timed out", request=request)

    with pytest.raises(NotAnsweredError, match=r"does not answer .*timed out.*: run the command again"):
        answering(answer).create("one", {})
