"""The certificate of a server, where no issuer of the cluster makes it: made once, its key a secret of Pulumi.

It is of an authority of its own, whose key is forgotten at once: nobody can make another that clients would take.
"""

from typing import Any, ClassVar

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from ..dynamic import Resource
from ..kept import Keeper, kept


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def __init__(self, subject: str, with_rsa: bool) -> None:
        super().__init__()
        self._subject = subject
        self._with_rsa = with_rsa

    def create(self, props: dict[str, Any]) -> CreateResult:
        # Only who makes a certificate imports what makes it.
        from .issuing import names_of, new_certificate

        there = kept(props.get("keeper"))
        if names_of(there.get("tls.crt")) == list(props["names"]):
            authority, certificate, key = there["ca.crt"], there["tls.crt"], there["tls.key"]
        else:
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

    def __init__(
        self,
        name: str,
        args: list[str],
        opts: pulumi.ResourceOptions | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        """`args`: the names in DNS that the server is called by. `keeper`: the Secret with `ca.crt`, `tls.crt` and
        `tls.key`, where a server cannot go on with another certificate."""
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key"])
        outputs = dict.fromkeys(("authority", "certificate", "key"))
        properties = {"names": args, **({"keeper": keeper.inputs()} if keeper else {}), **outputs}
        super().__init__(
            _Provider(self.subject, self.with_rsa), name, properties, pulumi.ResourceOptions.merge(opts, secret)
        )
