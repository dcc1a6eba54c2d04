"""What a cluster admin relies on when Kueue is provisioned, or exists already. Kueue accepts the certificate."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from components.cluster import Connection
from components.install import installation_of
from components.kueue.component import KUEUE, Kueue, KueueArgs, KueueCertificate
from components.kueue.manifests import webhook_names
from components.kueue.settings import KueueSettings
from components.tls.issuing import new_certificate
from core.versions import UnsupportedVersionError
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record


def test_crds_are_created_before_the_manager_and_the_guard_is_deleted_first(
    kueue_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion order is reversed: the guard is deleted before everything else."""
    recorder = provisioned(kueue_file, tmp_path, monkeypatch)
    definitions = recorder.registered["kueue-crds"].inputs
    assert len(definitions["definitions"]) == 11
    assert definitions["webhook"]["namespace"] == "kueue-system"
    assert definitions["webhook"]["caBundle"]
    assert recorder.made_before("kueue-crds", "kueue-deployment-kueue-controller-manager")
    guard = recorder.registered["kueue-crd-guard"]
    for other in set(recorder.registered) - {"kueue", "kueue-crd-guard"}:
        assert recorder.made_before(other, "kueue-crd-guard")
    assert guard.inputs["connection"] == {"context": "staging"}
    assert "workloads.v1beta1.kueue.x-k8s.io" in guard.inputs["resources"]


def test_an_invalid_tree_is_refused_with_the_reason(
    tmp_path: Path, kueue_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kueue_file = tmp_path / "other.yaml"
    kueue_file.write_text("kind: ConfigMap\nmetadata: {name: x}")
    with pytest.raises(pulumi.RunError, match="it has no Deployment"):
        provisioned(kueue_file, tmp_path, monkeypatch)


def provisioned(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """With a kubectl that renders any location to the content of the file."""
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(f'#!/bin/sh\nwhile IFS= read -r line; do echo "$line"; done < {file}\n')
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(kubectl.parent))
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(folder / "cache"))
    settings = KueueSettings(location="config/default")
    return record(lambda: Kueue("kueue", KueueArgs(settings, FakeCluster(connection=Connection("staging")))))


def test_its_rsa_key_is_in_the_format_of_kueue_and_it_has_both_names() -> None:
    """With another format Kueue never became ready: `failed to parse private key`."""
    assert KueueCertificate.with_rsa
    _, pem, key, _ = new_certificate("kueue", webhook_names(KueueSettings()), with_rsa=KueueCertificate.with_rsa)
    assert key.startswith("-----BEGIN RSA PRIVATE KEY-----")
    private = serialization.load_pem_private_key(key.encode(), None)
    assert isinstance(private, rsa.RSAPrivateKey)
    certificate = x509.load_pem_x509_certificate(pem.encode())
    assert certificate.public_key() == private.public_key()
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kueue-webhook-service.kueue-system.svc", "kueue-ca"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert ExtendedKeyUsageOID.SERVER_AUTH in usage


def crd(*served: str) -> dict[str, Any]:
    return {"spec": {"versions": [{"name": name, "served": True} for name in served]}}


def deployment(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "manager", "image": image}]}}}}


def test_a_supported_installation_is_accepted() -> None:
    live = installation_of(crd("v1beta1", "v1beta2"), deployment("registry.k8s.io/kueue/kueue:v0.15.2"))
    assert KUEUE.check(live, "kueue-system") == "0.15.2"


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (
            installation_of(None, None),
            "no Deployment kueue-controller-manager with a version in namespace 'kueue-system'",
        ),
        (
            installation_of(crd("v1beta1"), deployment("kueue:v0.14.0")),
            r"Kueue 0\.14\.0 is not supported.*Supported: 0\.15\.x",
        ),
        (
            installation_of(crd("v1beta1"), deployment("kueue:v0.15.0")),
            r"does not serve v1beta2: apply .* Kueue 0\.15\.0",
        ),
        (installation_of(None, deployment("kueue:v0.15.0")), "no CRD clusterqueues.kueue.x-k8s.io. Here"),
    ],
)
def test_an_unsupported_installation_is_refused_with_its_version(there: Any, message: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=message):
        KUEUE.check(there, "kueue-system")
