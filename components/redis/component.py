"""How Redis is provisioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from ..kubernetes import KubernetesObject, in_namespace
from ..network.component import NetworkPolicies, NetworkPoliciesArgs
from .manifests import Body, objects, secret, stateful_set, tenant_secret, users_files, users_secret
from .password import Password
from .settings import RedisSettings
from .users import EXPORTER_USER, NODES_USER


@dataclass(frozen=True)
class RedisHaArgs:
    """What a RedisHa is made from."""

    settings: RedisSettings

    namespace: pulumi.Input[str]
    """Its output makes everything wait for it."""

    namespace_name: str
    """The namespace's name, which is part of the nodes' names."""

    tenants: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces of the tenants that use it, by name: each has a user and a Secret."""

    clusters: int = 0
    """How many RayClusters use it."""

    priority_class: str | None = None

    policies: Sequence[Body] = ()
    """NetworkPolicies of its namespace."""


class RedisHa(pulumi.ComponentResource):
    """A Redis for the tables of RayClusters: three nodes with a Sentinel each, or one node.

    RayClusters depend on this component, so that they are there after it and gone before it: without Redis their keys
    could not be deleted. Its data outlive it as PersistentVolumeClaims, until their namespace goes.

    Outputs:
        secrets: names of the Secrets in the tenants' namespaces, by namespace, each known once it is there.
    """

    secrets: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: RedisHaArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RedisHa", name, None, opts)
        settings = args.settings
        own = pulumi.ResourceOptions(parent=self)
        exporter = [EXPORTER_USER] if settings.exporter else []
        passwords = {
            user: self._passwords(name, user, settings.password_generations)
            for user in (NODES_USER, *exporter, *sorted(args.tenants))
        }

        def here(part: str, body: Body) -> KubernetesObject:
            return KubernetesObject(f"{name}-{part}", in_namespace(body, args.namespace), own)

        needed: list[pulumi.Resource] = [
            here("users", users_secret(pulumi.Output.all(**passwords).apply(users_files))),
            NetworkPolicies(f"{name}-network", NetworkPoliciesArgs(args.policies, args.namespace), own),
            *(here(f"{body['kind'].lower()}-{body['metadata']['name']}", body) for body in objects(settings)),
        ]
        KubernetesObject(
            f"{name}-stateful-set",
            in_namespace(
                stateful_set(settings, args.namespace_name, args.clusters, args.priority_class), args.namespace
            ),
            pulumi.ResourceOptions(parent=self, depends_on=needed),
        )
        self.secrets = {
            tenant: _copy(f"{name}-secret-{tenant}", tenant, namespace, passwords[tenant], own)
            for tenant, namespace in args.tenants.items()
        }
        self.register_outputs({"secrets": self.secrets})

    def _passwords(self, name: str, user: str, generations: Sequence[int]) -> pulumi.Output[list[str]]:
        """The user's passwords, the oldest first."""
        made = [
            Password(
                f"{name}-password-{user}-{generation}", f"user {user} of Redis", pulumi.ResourceOptions(parent=self)
            ).password
            for generation in generations
        ]
        return pulumi.Output.all(*made)


def _copy(
    name: str,
    tenant: str,
    namespace: pulumi.Input[str],
    passwords: pulumi.Output[list[str]],
    opts: pulumi.ResourceOptions,
) -> pulumi.Output[str]:
    """The Secret in a tenant's namespace."""
    texts: pulumi.Output[dict[str, Any]] = passwords.apply(lambda known: tenant_secret(tenant, known))
    body = secret(texts)
    made = KubernetesObject(name, in_namespace(body, namespace), opts)
    return made.id.apply(lambda _: str(body["metadata"]["name"]))
