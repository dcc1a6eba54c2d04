"""Certificates are renewed before they end, and running pods accept the renewed ones."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from components.dynamic.generated import AuthorityProvider, ServerCertificateProvider
from components.tls import issuing
from components.tls.issuing import ends_soon, new_authority, new_certificate

NAME = "ray-redis-0"

YEARS = 365 * 24


def aged(monkeypatch: pytest.MonkeyPatch, years: float) -> None:
    """Certificates are made as if it were some years ago."""

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) - timedelta(hours=years * YEARS)

    monkeypatch.setattr(issuing, "datetime", SimpleNamespace(datetime=Earlier, timedelta=timedelta, UTC=UTC))


def loaded(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def verify(certificate: str, authority: str) -> None:
    """Verifies a server certificate as a client with the authority does."""
    PolicyBuilder().store(Store([loaded(authority)])).build_server_verifier(x509.DNSName(NAME)).verify(
        loaded(certificate), []
    )


@pytest.mark.parametrize(("years", "soon"), [(0, False), (6.6, False), (6.7, True), (11, True)])
def test_the_last_third_of_ten_years_is_soon(monkeypatch: pytest.MonkeyPatch, years: float, soon: bool) -> None:
    with monkeypatch.context() as earlier:
        aged(earlier, years)
        certificate, _ = new_authority("training")
    assert ends_soon(certificate) is soon


def test_an_authority_is_renewed_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        aged(earlier, 7)
        certificate, key = new_authority("training")
    old = {"name": "training", "certificate": certificate, "key": key}
    provider = AuthorityProvider()
    assert provider.diff("", old, {"name": "training"}).changes
    new = provider.update("", old, {"name": "training"}).outs
    assert new is not None
    assert new["key"] == key
    assert loaded(new["certificate"]).subject == loaded(certificate).subject
    assert not provider.diff("", new, {"name": "training"}).changes


def test_a_renewed_certificate_and_the_old_one_are_accepted_by_clients_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        aged(earlier, 7)
        authority, certificate, key, authority_key = new_certificate("ray-redis", [NAME])
    issued = {"authority": authority, "certificate": certificate, "key": key, "authorityKey": authority_key}
    old: dict[str, Any] = {"names": [NAME], **issued}
    provider = ServerCertificateProvider("ray-redis", with_rsa=False)
    difference = provider.diff("", old, {"names": [NAME]})
    assert (difference.changes, difference.replaces) == (True, [])
    new = provider.update("", old, {"names": [NAME]}).outs
    assert new is not None
    for made in (old, new):
        for trusted in (old, new):
            verify(made["certificate"], trusted["authority"])
    assert not provider.diff("", new, {"names": [NAME]}).changes


def test_a_certificate_for_other_names_is_replaced() -> None:
    made = new_certificate("ray-redis", [NAME])
    difference = ServerCertificateProvider("ray-redis", with_rsa=False).diff(
        "", {"names": [NAME], "certificate": made.certificate}, {"names": ["ray-redis-1"]}
    )
    assert (difference.changes, difference.replaces) == (True, ["names"])
