"""A password that is created once and kept: a secret of Pulumi.

Pulumi's own provider for this, pulumi-random, would be one more plugin to download for a single value.
"""

import secrets
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from components.dynamic import Keeper, Resource, kept

_BYTES = 32

GENERATIONS_KEY = "generations"
"""Key of the Secret with the generations of its passwords, in the order of the passwords."""


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        secret = kept(props["keeper"])
        known = zip(secret.get(GENERATIONS_KEY, "").split(), secret.get(props["key"], "").split(), strict=False)
        found = dict(known).get(str(int(props["generation"])))
        return CreateResult("password", {**props, "password": found or new_password()})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)


@dataclass(frozen=True)
class PasswordArgs:
    """Arguments of Password."""

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
        super().__init__(_Provider(), name, {**inputs, "password": None}, pulumi.ResourceOptions.merge(opts, secret))


def new_password() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(_BYTES)
