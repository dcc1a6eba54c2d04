"""The certificate of a server, where no issuer of the cluster makes it: made once, its key a secret of Pulumi.

It is of an authority of its own, whose key is forgotten at once: nobody can make another that clients would take.
"""

import datetime
from typing import Any, ClassVar

import pulumi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from ..dynamic import Resource
from .authority import new_authority

_RSA_BITS = 3072


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def __init__(self, subject: str, with_rsa: bool) -> None:
        super().__init__()
        self._subject = subject
        self._with_rsa = with_rsa

    def create(self, props: dict[str, Any]) -> CreateResult:
        authority, certificate, key = new_certificate(self._subject, props["names"], with_rsa=self._with_rsa)
        return CreateResult("certificate", {**props, "authority": authority, "certificate": certificate, "key": key})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        changes = list(_olds["names"]) != list(_news["names"])
        return DiffResult(changes=changes, replaces=["names"] if changes else [])


class ServerCertificate(Resource, module="ray-platform", name="ServerCertificate"):
    """A certificate and its key, good for ten years. They stay as they are while the names do.

    Outputs:
        authority: what clients check it with, PEM.
        certificate: PEM.
        key: PEM, a secret.
    """

    authority: pulumi.Output[str]
    certificate: pulumi.Output[str]
    key: pulumi.Output[str]

    subject: ClassVar[str] = "ray-platform"
    """Name that the certificate shows."""

    with_rsa: ClassVar[bool] = False
    """Its key is of RSA, in the format of PKCS #1, for servers that read no other."""

    def __init__(self, name: str, args: list[str], opts: pulumi.ResourceOptions | None = None) -> None:
        """`args`: the names in DNS that the server is called by."""
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key"])
        outputs = dict.fromkeys(("authority", "certificate", "key"))
        properties = {"names": args, **outputs}
        super().__init__(
            _Provider(self.subject, self.with_rsa), name, properties, pulumi.ResourceOptions.merge(opts, secret)
        )


def new_certificate(subject: str, names: list[str], *, with_rsa: bool = False) -> tuple[str, str, str]:
    """A new authority's certificate, one of it for servers of these names, and the key of the second. All PEM.

    `with_rsa`: see ServerCertificate.
    """
    authority, signing = new_authority(f"{subject}-authority")
    ca = x509.load_pem_x509_certificate(authority.encode())
    ca_key = serialization.load_pem_private_key(signing.encode(), None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    key = rsa.generate_private_key(65537, _RSA_BITS) if with_rsa else ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5))
        .not_valid_after(ca.not_valid_after_utc)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        # The nodes of a Redis are each other's clients, too.
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False)
        .sign(ca_key, hashes.SHA256())
    )
    written = serialization.PrivateFormat.TraditionalOpenSSL if with_rsa else serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, written, serialization.NoEncryption())
    return authority, made.public_bytes(serialization.Encoding.PEM).decode(), private.decode()
