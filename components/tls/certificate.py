"""The certificate of a server without an issuer in the cluster: created once, its key a secret of Pulumi.

It has its own authority, whose key is not stored. So nobody can create another certificate that clients would accept.
"""

from typing import Any, ClassVar

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from components.dynamic import Keeper, Resource, kept


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def __init__(self, subject: str, with_rsa: bool) -> None:
        super().__init__()
        self._subject = subject
        self._with_rsa = with_rsa

    def create(self, props: dict[str, Any]) -> CreateResult:
        # Imported here: only the creation of a certificate needs `cryptography`.
        from components.tls.issuing import names_of, new_certificate

        existing = kept(props.get("keeper"))
        if names_of(existing.get("tls.crt")) == list(props["names"]):
            authority, certificate, key = existing["ca.crt"], existing["tls.crt"], existing["tls.key"]
        else:
            authority, certificate, key = new_certificate(self._subject, props["names"], with_rsa=self._with_rsa)
        return CreateResult("certificate", {**props, "authority": authority, "certificate": certificate, "key": key})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        changes = list(_olds["names"]) != list(_news["names"])
        return DiffResult(changes=changes, replaces=["names"] if changes else [])


class ServerCertificate(Resource, module="ray-platform", name="ServerCertificate"):
    """A certificate and its key, valid for ten years. They do not change while the names are the same.

    Outputs:
        authority: the certificate authority for clients, PEM.
        certificate: PEM.
        key: PEM, a secret.
    """

    authority: pulumi.Output[str]
    certificate: pulumi.Output[str]
    key: pulumi.Output[str]

    subject: ClassVar[str] = "ray-platform"
    """Subject of the certificate."""

    with_rsa: ClassVar[bool] = False
    """Whether its key is RSA in PKCS #1 format, for servers that read no other."""

    def __init__(
        self,
        name: str,
        args: list[str],
        opts: pulumi.ResourceOptions | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        """`args`: the DNS names of the server. `keeper`: the Secret with `ca.crt`, `tls.crt` and `tls.key`, if a
        running server cannot switch to another certificate."""
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key"])
        outputs = dict.fromkeys(("authority", "certificate", "key"))
        properties = {"names": args, **({"keeper": keeper.inputs()} if keeper else {}), **outputs}
        super().__init__(
            _Provider(self.subject, self.with_rsa), name, properties, pulumi.ResourceOptions.merge(opts, secret)
        )
