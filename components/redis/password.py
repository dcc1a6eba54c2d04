"""A password that is made once and kept: a secret of Pulumi.

Pulumi's own provider for this, pulumi-random, would be one more plugin to download for a few letters.
"""

import secrets
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from ..dynamic import Resource

_BYTES = 32


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("password", {**props, "password": new_password()})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)


class Password(Resource, module="ray-platform", name="Password"):
    """A password of letters, digits, hyphens and underscores. It stays as it is until the resource is deleted.

    Outputs:
        password: a secret.
    """

    password: pulumi.Output[str]

    def __init__(self, name: str, args: str, opts: pulumi.ResourceOptions | None = None) -> None:
        """`args`: what it is for, kept in the state for who reads that."""
        secret = pulumi.ResourceOptions(additional_secret_outputs=["password"])
        super().__init__(
            _Provider(), name, {"purpose": args, "password": None}, pulumi.ResourceOptions.merge(opts, secret)
        )


def new_password() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(_BYTES)
