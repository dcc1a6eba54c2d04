"""The certificate of a server without an issuer in the cluster, and its renewal.

It has its own authority, whose key is only in Pulumi's state, as a secret: in the cluster nobody can create another
certificate that clients would accept.
"""

from typing import Any, ClassVar

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from components.dynamic import Keeper, Resource, kept


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def __init__(self, subject: str, with_rsa: bool) -> None:
        super().__init__()
        self._subject = subject
        self._with_rsa = with_rsa

    def create(self, props: dict[str, Any]) -> CreateResult:
        # Imported here and below: the program itself does not need `cryptography`.
        from components.tls.issuing import ends_soon, names_of

        existing = kept(props.get("keeper"))
        if names_of(existing.get("tls.crt")) == list(props["names"]) and not ends_soon(existing["tls.crt"]):
            found = {"authority": existing["ca.crt"], "certificate": existing["tls.crt"], "key": existing["tls.key"]}
            return CreateResult("certificate", {**props, **found})
        return CreateResult("certificate", self._issued(props, None))

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        from components.tls.issuing import ends_soon

        renamed = list(olds["names"]) != list(news["names"])
        return DiffResult(changes=renamed or ends_soon(olds["certificate"]), replaces=["names"] if renamed else [])

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(self._issued(news, olds.get("authorityKey")))

    def _issued(self, props: dict[str, Any], authority_key: str | None) -> dict[str, Any]:
        from components.tls.issuing import new_certificate

        made = new_certificate(self._subject, props["names"], with_rsa=self._with_rsa, authority_key=authority_key)
        issued = {"authority": made.authority, "certificate": made.certificate, "key": made.key}
        return {**props, **issued, "authorityKey": made.authority_key}


class ServerCertificate(Resource, module="ray-platform", name="ServerCertificate"):
    """A certificate and its key, valid for ten years. While the names are the same, an update renews them in the last
    third of these. Clients that trust the old authority accept the renewed certificate, because the authority's key
    stays. Only if the state was lost, a renewal makes another authority: its key was only there.

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
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key", "authorityKey"])
        outputs = dict.fromkeys(("authority", "certificate", "key"))
        properties = {"names": args, **({"keeper": keeper.inputs()} if keeper else {}), **outputs}
        super().__init__(
            _Provider(self.subject, self.with_rsa), name, properties, pulumi.ResourceOptions.merge(opts, secret)
        )
