"""Makes the certificate of one of Ray's pods, in that pod and before Ray: its init container runs this very text.

Ray's processes reach each other by the pods' addresses, and check that the certificate is for the address that they
called. An address is known only once there is a pod, so that no certificate can be made before it.

Reads the authority's certificate and key, which are mounted here and not beside Ray, and writes `tls.crt`, `tls.key`
and `ca.crt`. They are good as long as the authority: Ray reads them once, when it starts.
"""

import ipaddress
import os
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def head_names(service: str) -> list[str]:
    """What clients may call the head: its Service, by all names that Kubernetes' DNS completes."""
    parts = service.split(".")
    return [".".join(parts[:length]) for length in (1, 2, 3, len(parts))]


def certify(authority: Path, target: Path, address: str, names: list[str]) -> None:
    """Write the files into the folder `target`, for a pod with that address and these names."""
    ca = x509.load_pem_x509_certificate((authority / "tls.crt").read_bytes())
    ca_key = serialization.load_pem_private_key((authority / "tls.key").read_bytes(), None)
    assert isinstance(ca_key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey))
    key = ec.generate_private_key(ec.SECP256R1())
    # Issuers derive it from the key in different ways: Go since 1.25, and so cert-manager since 1.19, by SHA-256.
    identifiers = [each.value for each in ca.extensions if isinstance(each.value, x509.SubjectKeyIdentifier)]
    addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", address)]
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ray")]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ca.not_valid_before_utc)
        .not_valid_after(ca.not_valid_after_utc)
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, ["localhost", *names]), *addresses]), False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False)
    )
    for each in identifiers:
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(each), False)
    made = builder.sign(ca_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (target / "tls.key").write_bytes(private)
    (target / "tls.crt").write_bytes(made.public_bytes(pem))
    (target / "ca.crt").write_bytes(ca.public_bytes(pem))


if __name__ == "__main__":
    certify(
        Path(os.environ["AUTHORITY"]),
        Path(os.environ["TARGET"]),
        os.environ["POD_IP"],
        head_names(os.environ["FQ_RAY_IP"]) if sys.argv[1] == "head" else [],
    )
