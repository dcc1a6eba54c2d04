"""Generated keys, certificates and passwords, which the stack creates itself and keeps: secrets of Pulumi.

They are read from a Secret of this stack if the state has lost them. A state can lose resources if an update was killed
before the state was written, or if an older state was restored. A newly generated key or password would differ from the
one that running pods use.

Pulumi's own providers for these, pulumi-tls and pulumi-random, would be two more plugins to download.
"""

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from components.bodies import FIELD_MANAGER_ANNOTATION
from components.cluster import AMBIENT, Connection
from components.dynamic import Provider, Resource
from components.kubernetes import field_manager
from components.kubernetes_cluster import cluster_of


@dataclass(frozen=True)
class Keeper:
    """The Secret with a generated value."""

    namespace: pulumi.Input[str]

    secret: str

    connection: Connection = AMBIENT

    def inputs(self) -> dict[str, Any]:
        """The inputs of a dynamic resource for `kept`."""
        return {
            "namespace": self.namespace,
            "secret": self.secret,
            **self.connection.inputs(),
            "manager": field_manager(),
        }


def kept(keeper: Mapping[str, Any] | None) -> dict[str, str]:
    """The data of the Secret; empty if it does not exist or this stack did not create it.

    `keeper`: the result of `Keeper.inputs`; None for no Secret. Raises ClusterUnreachableError.
    """
    if keeper is None:
        return {}
    body = cluster_of(keeper).get("v1", "secrets", keeper["namespace"], keeper["secret"])
    if body is None or (body["metadata"].get("annotations") or {}).get(FIELD_MANAGER_ANNOTATION) != keeper["manager"]:
        return {}
    return {key: base64.b64decode(value).decode() for key, value in (body.get("data") or {}).items()}


_BYTES = 32
"""Random bytes of a password."""

GENERATIONS_KEY = "generations"
"""Key of the Secret with the generations of its passwords, in the order of the passwords."""


class PasswordProvider(Provider):
    """Creates a password once. Whatever changes in its inputs, it stays."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        secret = kept(props["keeper"])
        known = zip(secret.get(GENERATIONS_KEY, "").split(), secret.get(props["key"], "").split(), strict=False)
        found = dict(known).get(str(int(props["generation"])))
        return CreateResult("password", {**props, "password": found or secrets.token_urlsafe(_BYTES)})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)


@dataclass(frozen=True)
class PasswordArgs:
    purpose: str
    """A description for readers of the state."""

    keeper: Keeper
    """The Secret in which it is stored."""

    key: str
    """Key of the Secret with the passwords, one per line, the newest first."""

    generation: int
    """Its generation. A password is found again by it, so that a new generation is a new password."""


class Password(Resource, module="ray-platform", name="Password"):
    """A password of letters, digits, hyphens and underscores. It does not change until the resource is deleted.

    Outputs:
        password: a secret.
    """

    password: pulumi.Output[str]

    def __init__(self, name: str, args: PasswordArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        secret = pulumi.ResourceOptions(additional_secret_outputs=["password"])
        inputs = {
            "purpose": args.purpose,
            "keeper": args.keeper.inputs(),
            "key": args.key,
            "generation": args.generation,
        }
        super().__init__(
            PasswordProvider(), name, {**inputs, "password": None}, pulumi.ResourceOptions.merge(opts, secret)
        )


class AuthorityProvider(Provider):
    def create(self, props: dict[str, Any]) -> CreateResult:
        # Imported here and below: the program itself does not need `cryptography`.
        from components.tls.issuing import ends_soon, new_authority

        existing = kept(props["keeper"])
        certificate, key = existing.get("tls.crt"), existing.get("tls.key")
        if certificate is None or key is None or ends_soon(certificate):
            certificate, key = new_authority(props["name"], key)
        return CreateResult("authority", {**props, "certificate": certificate, "key": key})

    def diff(self, _id: str, olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        from components.tls.issuing import ends_soon

        return DiffResult(changes=ends_soon(olds["certificate"]))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        from components.tls.issuing import new_authority

        certificate, key = new_authority(news["name"], olds["key"])
        return UpdateResult({**news, "certificate": certificate, "key": key})


@dataclass(frozen=True)
class AuthorityArgs:
    name: str
    """Subject of its certificate."""

    keeper: Keeper
    """The Secret with its certificate and its key, as `tls.crt` and `tls.key`."""


class Authority(Resource, module="ray-platform", name="Authority"):
    """The certificate and the key of an authority. The key does not change until the resource is deleted. An update
    renews the certificate in the last third of its ten years; running pods and pods of the renewed one accept each
    other.

    Outputs:
        certificate: PEM.
        key: PEM, a secret.
    """

    certificate: pulumi.Output[str]
    key: pulumi.Output[str]

    def __init__(self, name: str, args: AuthorityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key"])
        super().__init__(
            AuthorityProvider(),
            name,
            {"name": args.name, "keeper": args.keeper.inputs(), "certificate": None, "key": None},
            pulumi.ResourceOptions.merge(opts, secret),
        )


class ServerCertificateProvider(Provider):
    """Issues and renews certificates of a server with an authority of its own. The authority's key is only in Pulumi's
    state: in the cluster nobody can create another certificate that clients would accept."""

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
            ServerCertificateProvider(self.subject, self.with_rsa),
            name,
            properties,
            pulumi.ResourceOptions.merge(opts, secret),
        )
