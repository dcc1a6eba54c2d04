"""The rehearsal's own certificate authority and the credentials that it issues. Rehearsals share none."""

from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

SERVING_NAMES = (
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
"""Names under which the API server is reached, from outside and as the Service `kubernetes`."""

CLIENTS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", None),
    "kube-scheduler": ("system:kube-scheduler", None),
    "kwok": ("kwok", "system:masters"),
    "host-pods": ("host-pods", "system:masters"),
}
"""Client certificates: user and group. The two Kubernetes programs get no more than their built-in roles give;
KWOK and host-pods stand in for kubelets, on machinery of the rehearsal only."""


def issue(folder: Path) -> None:
    """Write the authority, the serving certificates, the client certificates and the service account key into `folder`.

    A folder that holds them already is left as it is.
    """
    if folder.is_dir():
        return
    folder.mkdir(parents=True, mode=0o700)
    authority = trustme.CA(organization_name="ray-platform rehearsal")
    authority.cert_pem.write_to_path(str(folder / "ca.crt"))
    _write(folder, "kube-apiserver", authority.issue_cert(*SERVING_NAMES))
    _write(folder, "etcd", authority.issue_cert("localhost", "127.0.0.1", common_name="etcd"))
    for name, (user, group) in CLIENTS.items():
        # A certificate without names carries an empty, critical extension for them, which Go's verifier refuses.
        _write(folder, name, authority.issue_cert(name, common_name=user, organization_name=group))
    _write_service_account_key(folder)


def _write(folder: Path, name: str, certificate: trustme.LeafCert) -> None:
    key = folder / f"{name}.key"
    key.touch(mode=0o600)
    certificate.private_key_pem.write_to_path(str(key))
    for position, blob in enumerate(certificate.cert_chain_pems):
        blob.write_to_path(str(folder / f"{name}.crt"), append=position > 0)


def _write_service_account_key(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = folder / "service-account.key"
    private.touch(mode=0o600)
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "service-account.pub").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
