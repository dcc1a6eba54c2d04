"""The certificates that pods create, verified as Ray's processes verify each other's."""

import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from components.tls.issuing import new_authority
from components.tls.manifests import init_container

ADDRESS = "10.244.0.7"
SERVICE = "training-head-svc.team-a.svc.cluster.local"


def certified(folder: Path, authority: tuple[str, str], head: bool) -> Path:
    """The files of a pod's init container, whose command runs as in Kubernetes."""
    ca, target = folder / "ca", folder / "target"
    ca.mkdir()
    target.mkdir()
    for name, text in zip(("tls.crt", "tls.key"), authority, strict=True):
        (ca / name).write_text(text)
    _, *arguments = init_container(head, "any", "Always")["command"]
    places = {"AUTHORITY": str(ca), "TARGET": str(target), "POD_IP": ADDRESS, "FQ_RAY_IP": SERVICE}
    subprocess.run([sys.executable, *arguments], env={**os.environ, **places}, check=True)
    return target


def accepts(pod: Path, certificate: Path, called: x509.DNSName | x509.IPAddress) -> bool:
    """Whether a client with the pod's authority accepts the certificate for the called address."""
    store = Store(x509.load_pem_x509_certificates((pod / "ca.crt").read_bytes()))
    [leaf] = x509.load_pem_x509_certificates((certificate / "tls.crt").read_bytes())
    try:
        PolicyBuilder().store(store).build_server_verifier(called).verify(leaf, [])
    except VerificationError:
        return False
    return True


@pytest.fixture
def authority() -> tuple[str, str]:
    return new_authority("training")


def test_a_certificate_has_the_pods_address_and_localhost(tmp_path: Path, authority: tuple[str, str]) -> None:
    pod = certified(tmp_path, authority, head=False)
    assert accepts(pod, pod, x509.IPAddress(ip_address(ADDRESS)))
    assert accepts(pod, pod, x509.IPAddress(ip_address("127.0.0.1")))
    assert accepts(pod, pod, x509.DNSName("localhost"))
    assert not accepts(pod, pod, x509.IPAddress(ip_address("10.244.0.8")))


@pytest.mark.parametrize("name", ["training-head-svc", "training-head-svc.team-a.svc", SERVICE])
def test_only_the_heads_certificate_has_the_names_of_its_service(
    tmp_path: Path, authority: tuple[str, str], name: str
) -> None:
    for kind in ("head", "worker"):
        (tmp_path / kind).mkdir()
        pod = certified(tmp_path / kind, authority, head=kind == "head")
        assert accepts(pod, pod, x509.DNSName(name)) is (kind == "head")


def test_the_certificate_of_another_cluster_is_refused(tmp_path: Path, authority: tuple[str, str]) -> None:
    (tmp_path / "other").mkdir()
    pod, other = certified(tmp_path, authority, True), certified(tmp_path / "other", new_authority("other"), True)
    assert not accepts(pod, other, x509.DNSName(SERVICE))


def test_it_is_valid_for_clients_and_as_long_as_the_authority(tmp_path: Path, authority: tuple[str, str]) -> None:
    pod = certified(tmp_path, authority, head=False)
    [leaf] = x509.load_pem_x509_certificates((pod / "tls.crt").read_bytes())
    [ca] = x509.load_pem_x509_certificates(authority[0].encode())
    PolicyBuilder().store(Store([ca])).build_client_verifier().verify(leaf, [])
    assert leaf.not_valid_after_utc == ca.not_valid_after_utc
