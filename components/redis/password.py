"""A password that is made once and kept: a secret of Pulumi.

Pulumi's own provider for this, pulumi-random, would be one more plugin to download for a few letters.
"""

import secrets
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from ..dynamic import Resource
from ..kept import Keeper, kept

_BYTES = 32


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        there = kept(props.get("keeper")).get(props.get("key", ""), "").split()
        there.reverse()
        place = int(props.get("place", 0))
        password = there[place] if place < len(there) else new_password()
        return CreateResult("password", {**props, "password": password})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)


@dataclass(frozen=True)
class PasswordArgs:
    """What a Password is made from."""

    purpose: str
    """Kept in the state for who reads that."""

    keeper: Keeper
    """Where it is put."""

    key: str
    """Of the Secret: passwords, a line each, the newest first."""

    place: int
    """Among these, 0 for the oldest."""


class Password(Resource, module="ray-platform", name="Password"):
    """A password of letters, digits, hyphens and underscores. It stays as it is until the resource is deleted.

    Outputs:
        password: a secret.
    """

    password: pulumi.Output[str]

    def __init__(self, name: str, args: PasswordArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        secret = pulumi.ResourceOptions(additional_secret_outputs=["password"])
        inputs = {"purpose": args.purpose, "keeper": args.keeper.inputs(), "key": args.key, "place": args.place}
        super().__init__(_Provider(), name, {**inputs, "password": None}, pulumi.ResourceOptions.merge(opts, secret))


def new_password() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(_BYTES)
