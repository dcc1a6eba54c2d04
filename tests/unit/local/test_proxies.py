"""The effect of a proxy in the environment on the rehearsal."""

import pytest

from local.proxies import corrections

pytestmark = pytest.mark.unit


def test_without_a_proxy_the_environment_stays_as_it_is() -> None:
    assert corrections({"PATH": "/bin", "NO_PROXY": "corp.example", "https_proxy": ""}) == {}


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "ALL_PROXY", "grpc_proxy"])
def test_with_a_proxy_the_rehearsals_addresses_are_exceptions(name: str) -> None:
    changed = corrections({name: "http://proxy.corp.example:3128"})
    assert changed["no_proxy"] == changed["NO_PROXY"]
    assert {"127.0.0.1", "198.18.0.0/15", "10.96.0.0/16", ".svc"} <= set(changed["no_proxy"].split(","))


def test_a_proxy_in_capitals_is_one_for_apt_too() -> None:
    assert corrections({"HTTP_PROXY": "http://proxy:3128"})["http_proxy"] == "http://proxy:3128"
    configured = {"HTTP_PROXY": "http://one:3128", "http_proxy": "http://other:3128"}
    assert corrections(configured)["http_proxy"] == "http://other:3128"


def test_the_users_own_exceptions_stay_and_none_is_repeated() -> None:
    configured = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "corp.example, 127.0.0.1", "no_proxy": "git.example"}
    exceptions = corrections(configured)["no_proxy"].split(",")
    assert exceptions[:3] == ["git.example", "corp.example", "127.0.0.1"]
    assert len(exceptions) == len(set(exceptions))
    again = corrections({**configured, **corrections(configured)})
    assert again == corrections(configured)
