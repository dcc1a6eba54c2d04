"""The certificate passes the checks of Kueue at start, so Kueue keeps it."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from components.kueue.component import KueueCertificate
from components.kueue.manifests import webhook_names
from components.kueue.settings import KueueSettings
from components.tls.issuing import new_certificate

pytestmark = pytest.mark.unit


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
