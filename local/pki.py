"""The rehearsal's own certificate authority and its credentials. Rehearsals share none."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

Client = tuple[str, str | None]
"""A client certificate: user and group."""

API_SERVER_NAMES = (
    "localhost",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
"""Names of the API server beside its address, such as the Service `kubernetes`."""

CONTROL_PLANE: Mapping[str, Client] = {
    "admin": ("kubernetes-admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", None),
    "kube-scheduler": ("system:kube-scheduler", None),
}
"""Clients in every rehearsal. The two programs have only the rights of their built-in roles."""


@dataclass(frozen=True)
class Credentials:
    """The certificates to issue: the API server's address, names of other servers, and other clients."""

    address: str
    servers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    clients: Mapping[str, Client] = field(default_factory=dict)

    @property
    def all_clients(self) -> dict[str, Client]:
        """The clients by the name of their files."""
        return {**CONTROL_PLANE, **self.clients}

    @property
    def all_servers(self) -> dict[str, Sequence[str]]:
        """The servers' names by the name of their files."""
        return {
            "kube-apiserver": (self.address, *API_SERVER_NAMES),
            "etcd": ("localhost", "127.0.0.1"),
            **self.servers,
        }


def issue(folder: Path, credentials: Credentials) -> None:
    """Writes the authority, the certificates of servers and clients and the service account key into `folder`.

    Does nothing if the folder has them already. They are written into another folder, which gets the name at the end,
    because a killed command would leave a part of them.
    """
    if folder.is_dir() and all(file.stat().st_size for file in folder.iterdir()):
        return
    made = folder.with_name(f"{folder.name}.new")
    for old in (folder, made):
        shutil.rmtree(old, ignore_errors=True)
    made.mkdir(parents=True, mode=0o700)
    _issue(made, credentials)
    made.rename(folder)


def _issue(folder: Path, credentials: Credentials) -> None:
    authority = trustme.CA(organization_name="ray-platform rehearsal")
    authority.cert_pem.write_to_path(str(folder / "ca.crt"))
    for name, names in credentials.all_servers.items():
        _write(folder, name, authority.issue_cert(*names, common_name=name))
    for name, (user, group) in credentials.all_clients.items():
        # A certificate without names has an empty, critical extension for them, which Go's verifier refuses.
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
