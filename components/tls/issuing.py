"""Creates and renews authorities and certificates. Imports `cryptography`, which other modules do not need."""

import datetime
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from components.tls.manifests import LIFETIME_HOURS

_RSA_BITS = 3072

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
"""The key usage of the authority."""


_PART_LEFT = 3
"""A certificate is renewed when less than this part of its validity is left: a third, as cert-manager does by default
(cert-manager.io, Certificate, renewBefore). Of ten years these are three years and four months. Until its end, pods
that started before the renewal work with the old one."""

_EARLIER = datetime.timedelta(hours=1)
"""Before their creation certificates are valid, too: clocks of nodes may be minutes behind that of this machine."""


class Issued(NamedTuple):
    """A server certificate. All PEM."""

    authority: str
    certificate: str
    key: str
    authority_key: str


def ends_soon(certificate: str) -> bool:
    """Whether a certificate (PEM) has to be renewed."""
    made = x509.load_pem_x509_certificate(certificate.encode())
    left = made.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left < (made.not_valid_after_utc - made.not_valid_before_utc) / _PART_LEFT


def new_authority(name: str, key_of: str | None = None) -> tuple[str, str]:
    """The self-signed certificate of an authority, and its key. Both PEM.

    `key_of`: the key of an authority of that name, which is renewed: whoever trusts the old certificate accepts what
    the new one has signed, and the other way round, because name and key are the same.
    """
    key = _signing_key(key_of) if key_of else ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + datetime.timedelta(hours=LIFETIME_HOURS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_CERTIFIES, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem).decode(), private.decode()


def new_certificate(
    subject: str, names: list[str], *, with_rsa: bool = False, authority_key: str | None = None
) -> Issued:
    """A server certificate for these names, of an authority of its own.

    `with_rsa`: see ServerCertificate. `authority_key`: the key of its authority if that is renewed (`new_authority`).
    """
    authority, signing = new_authority(f"{subject}-authority", authority_key)
    ca, ca_key = x509.load_pem_x509_certificate(authority.encode()), _signing_key(signing)
    key = rsa.generate_private_key(65537, _RSA_BITS) if with_rsa else ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ca.not_valid_before_utc)
        .not_valid_after(ca.not_valid_after_utc)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        # The nodes of a Redis are also clients of each other.
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False)
        .sign(ca_key, hashes.SHA256())
    )
    written = serialization.PrivateFormat.TraditionalOpenSSL if with_rsa else serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, written, serialization.NoEncryption())
    return Issued(authority, made.public_bytes(serialization.Encoding.PEM).decode(), private.decode(), signing)


def _signing_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def names_of(certificate: str | None) -> list[str]:
    """The DNS names of a certificate (PEM)."""
    if certificate is None:
        return []
    made = x509.load_pem_x509_certificate(certificate.encode())
    return made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
