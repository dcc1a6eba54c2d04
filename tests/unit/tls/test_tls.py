"""A RayCluster with TLS: what changes in it, the certificates that its pods create, and their renewal."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from components.dynamic.generated import AuthorityProvider, ServerCertificateProvider
from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.objects import ray_cluster_objects
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import RayClusterSettings
from components.tls import issuing
from components.tls.issuing import ends_soon, new_authority, new_certificate
from components.tls.manifests import ENVIRONMENT, FOLDER, init_container
from core.nodes import NodePool
from kuberay import OperatorContext, validate
from testbed.recorder import Recorder, record

POOLS = (NodePool(pool="cpu", count=2, cpu="8", memory="64Gi"),)


def settings(**keys: Any) -> RayClusterSettings:
    short = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "cpu"}, "tls": {}}
    return valid({**short, **keys})


def spec(**keys: Any) -> dict[str, Any]:
    body = ray_cluster(settings(**keys), POOLS)
    assert validate(body, OperatorContext()) == []
    return dict(body["spec"])


def pods(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [group["template"]["spec"] for group in (made["headGroupSpec"], *made["workerGroupSpecs"])]


def provisioned(**keys: Any) -> Recorder:
    objects = list(ray_cluster_objects(settings(**keys), ray_cluster(settings(**keys), POOLS)))
    return record(lambda: RayCluster("team-a-training", RayClusterArgs(settings(**keys), objects, "team-a", POOLS)))


def test_every_container_that_runs_ray_uses_the_pods_certificate() -> None:
    made = spec()
    for container in (*(pod["containers"][0] for pod in pods(made)), made["autoscalerOptions"]):
        env = {each["name"]: each.get("value") for each in container["env"]}
        assert env.items() >= ENVIRONMENT.items()
        assert FOLDER in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_only_the_container_that_creates_the_certificate_has_the_authoritys_key() -> None:
    head, worker = pods(spec(head={"image": "head:2.60.0"}))
    for pod, image in ((head, "head:2.60.0"), (worker, "ray:2.60.0")):
        [volume] = [each["name"] for each in pod["volumes"] if "secret" in each]
        [holder] = [
            container
            for container in (*pod["containers"], *pod["initContainers"])
            if volume in [mount["name"] for mount in container["volumeMounts"]]
        ]
        assert (holder["name"], holder["image"]) == ("certificate", image)
        assert holder["securityContext"] == pod["containers"][0]["securityContext"]
    assert "tls" not in str(spec(tls=None))


def test_the_clusters_own_volumes_and_variables_stay() -> None:
    made = spec(
        env={"HF_HOME": "/data"},
        volumes=[{"name": "data", "emptyDir": {}}],
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    )
    for pod in pods(made):
        assert pod["volumes"][0]["name"] == "data"
        assert pod["containers"][0]["volumeMounts"][0]["mountPath"] == "/data"
        assert {"name": "HF_HOME", "value": "/data"} in pod["containers"][0]["env"]


def test_the_named_issuer_of_cert_manager_certifies_the_authority() -> None:
    recorder = provisioned(tls={"issuer": {"name": "lab", "kind": "ClusterIssuer"}})
    made = recorder.registered["team-a-training-tls-certificate"]
    assert made.type == "kubernetes:cert-manager.io/v1:Certificate"
    certificate = made.inputs["spec"]
    assert certificate["isCA"] is True
    assert certificate["secretName"] == "training-ray-authority"
    assert certificate["issuerRef"] == {"group": "cert-manager.io", "name": "lab", "kind": "ClusterIssuer"}
    assert "team-a-training-tls-secret" not in recorder.registered


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


def test_a_certificate_has_the_pods_address_and_is_valid_for_clients_and_as_long_as_the_authority(
    tmp_path: Path, authority: tuple[str, str]
) -> None:
    pod = certified(tmp_path, authority, head=False)
    assert accepts(pod, pod, x509.IPAddress(ip_address(ADDRESS)))
    assert accepts(pod, pod, x509.IPAddress(ip_address("127.0.0.1")))
    assert accepts(pod, pod, x509.DNSName("localhost"))
    assert not accepts(pod, pod, x509.IPAddress(ip_address("10.244.0.8")))
    [leaf] = x509.load_pem_x509_certificates((pod / "tls.crt").read_bytes())
    [ca] = x509.load_pem_x509_certificates(authority[0].encode())
    PolicyBuilder().store(Store([ca])).build_client_verifier().verify(leaf, [])
    assert leaf.not_valid_after_utc == ca.not_valid_after_utc


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
