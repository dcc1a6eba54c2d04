"""An authority that certifies the pods of one RayCluster: made once, its key a secret of Pulumi.

Pulumi's own provider for this, pulumi-tls, would be one more plugin to download for a key and a certificate.
"""

import datetime
from typing import Any

import pulumi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from ..dynamic import Resource
from .manifests import LIFETIME_HOURS

_CERTIFIES = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    **dict.fromkeys(
        (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    ),
)
"""What the authority's key is for."""


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        certificate, key = new_authority(props["name"])
        return CreateResult("authority", {**props, "certificate": certificate, "key": key})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)


class Authority(Resource, module="ray-platform", name="Authority"):
    """The certificate and the key of an authority. They stay as they are until the resource is deleted.

    Outputs:
        certificate: PEM.
        key: PEM, a secret.
    """

    certificate: pulumi.Output[str]
    key: pulumi.Output[str]

    def __init__(self, name: str, args: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """`args`: the authority's name, which its certificate shows."""
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key"])
        super().__init__(
            _Provider(),
            name,
            {"name": args, "certificate": None, "key": None},
            pulumi.ResourceOptions.merge(opts, secret),
        )


def new_authority(name: str) -> tuple[str, str]:
    """The certificate of a new authority that certifies itself, and its key. Both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=LIFETIME_HOURS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_CERTIFIES, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem).decode(), private.decode()
