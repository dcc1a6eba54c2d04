"""How Redis is provisioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pulumi

from components.bodies import in_namespace
from components.cluster import AMBIENT, Cluster, Connection
from components.dynamic.generated import GENERATIONS_KEY, Keeper, Password, PasswordArgs, ServerCertificate
from components.kubernetes import KubernetesObject, below, create
from components.kubernetes_cluster import KubernetesCluster
from components.objects import Object
from components.pulumi_internals import unknown
from components.redis.connection import (
    CA_KEY,
    CERTIFICATE_SECRET,
    EXPORTER_USER,
    NAME,
    NODES_USER,
    PASSWORD_KEY,
    PASSWORDS_KEY,
    SECRET,
    USERNAME_KEY,
    USERS_SECRET,
    names_of_nodes,
    newest_first,
)
from components.redis.existing import Seen, UnfitError, see
from components.redis.existing_server import ExternalSettings
from components.redis.manifests import (
    STATEFUL_SET,
    USERS_KEYS,
    secret,
    tenant_secret,
    users_files,
)
from components.redis.settings import RedisSettings
from core.body import Body


@dataclass(frozen=True)
class RedisHaArgs:
    settings: RedisSettings

    objects: Sequence[Object]
    """All objects but the Secrets (objects.redis_objects)."""

    namespace: pulumi.Input[str]
    """All objects wait for this Output."""

    namespace_name: str
    """The namespace's name, which is part of the nodes' names."""

    tenants: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces of the tenants that use it, by name: each has a user and a Secret."""

    connection: Connection = AMBIENT


class RedisHa(pulumi.ComponentResource):
    """A Redis for the tables of RayClusters: three nodes with a Sentinel each, or one node.

    Its objects depend on everything that the component depends on (`depends_on`), such as the operator, whose namespace
    it shares. RayClusters depend on this component, so they are created after it and deleted before it: without Redis
    their keys could not be deleted. Its data stay in PersistentVolumeClaims until their namespace is deleted.

    Outputs:
        secrets: names of the Secrets in the tenants' namespaces, by namespace, each known once the Secret exists.
    """

    secrets: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: RedisHaArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RedisHa", name, None, opts)
        settings = args.settings
        self._below = below(self, opts)
        exporter = [EXPORTER_USER] if settings.exporter else []
        passwords = {user: self._passwords(name, user, args) for user in (NODES_USER, *exporter, *sorted(args.tenants))}
        self._generations = {GENERATIONS_KEY: newest_first([str(each) for each in settings.password_generations])}
        texts = pulumi.Output.all(**passwords).apply(lambda known: {**users_files(known), **self._generations})
        authority, certificates = self._certificates(name, args)
        secrets = [self._secret_of_nodes(name, body, args) for body in (secret(USERS_SECRET, texts), *certificates)]
        inside = [replace(each, body=in_namespace(each.body, args.namespace)) for each in args.objects]
        made = create(name, [each for each in inside if each.name != STATEFUL_SET], self._below)
        # Pods of Redis mount the Secrets.
        mounting = pulumi.ResourceOptions.merge(self._below, pulumi.ResourceOptions(depends_on=secrets))
        create(name, [each for each in inside if each.name == STATEFUL_SET], mounting, made=made)
        self.secrets = {
            tenant: self._secret(name, tenant, target, passwords[tenant], authority)
            for tenant, target in args.tenants.items()
        }
        self.register_outputs({"secrets": self.secrets})

    def _secret_of_nodes(self, name: str, body: Body, args: RedisHaArgs) -> pulumi.Resource:
        part = body["metadata"]["name"].removeprefix(NAME)
        return KubernetesObject(f"{name}-secret{part}", in_namespace(body, args.namespace), self._below)

    def _passwords(self, name: str, user: str, args: RedisHaArgs) -> pulumi.Output[list[str]]:
        """The user's passwords, the oldest first."""
        if user in args.tenants:
            keeper, key = Keeper(args.tenants[user], SECRET, args.connection), PASSWORDS_KEY
        else:
            keeper, key = Keeper(args.namespace, USERS_SECRET, args.connection), USERS_KEYS[user]
        made = [
            Password(
                f"{name}-password-{user}-{generation}",
                PasswordArgs(f"user {user} of Redis", keeper, key, generation),
                self._below,
            ).password
            for generation in args.settings.password_generations
        ]
        return pulumi.Output.all(*made)

    def _certificates(self, name: str, args: RedisHaArgs) -> tuple[pulumi.Input[str | None], list[Body]]:
        """The certificate authority for clients, None without TLS; and the Secret of the nodes if the stack creates
        their certificate."""
        settings = args.settings
        if settings.tls is None:
            return None, []
        if settings.tls.issuer:
            return settings.tls.authority, []
        names = names_of_nodes(args.namespace_name, settings.nodes, settings.cluster_domain)
        keeper = Keeper(args.namespace, CERTIFICATE_SECRET, args.connection)
        made = NodesCertificate(f"{name}-certificate", names, self._below, keeper)
        texts = {"ca.crt": made.authority, "tls.crt": made.certificate, "tls.key": made.key}
        return made.authority, [secret(CERTIFICATE_SECRET, texts)]

    def _secret(
        self,
        name: str,
        tenant: str,
        namespace: pulumi.Input[str],
        passwords: pulumi.Output[list[str]],
        authority: pulumi.Input[str | None],
    ) -> pulumi.Output[str]:
        texts: pulumi.Output[dict[str, Any]] = pulumi.Output.all(passwords, authority).apply(
            lambda known: {**tenant_secret(tenant, known[0], known[1]), **self._generations}
        )
        body = secret(SECRET, texts)
        made = KubernetesObject(f"{name}-secret-{tenant}", in_namespace(body, namespace), self._below)
        return made.id.apply(lambda _: str(body["metadata"]["name"]))


@dataclass(frozen=True)
class ExternalRedisArgs:
    settings: ExternalSettings

    tenants: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces of the tenants that use it, by name."""

    cluster: Cluster = field(default_factory=KubernetesCluster)

    seen: Seen | None = None
    """The result of `look`. Default: the component looks at it while it is constructed."""


def look(settings: ExternalSettings, cluster: Cluster, namespace: str) -> Seen:
    """Checks an external Redis (existing.see). Raises pulumi.RunError."""
    try:
        return see(settings, cluster, namespace)
    except UnfitError as error:
        raise pulumi.RunError(f"redis.external: the Redis there {error}") from error


class ExternalRedis(pulumi.ComponentResource):
    """An external Redis. It is checked, in previews too. If it cannot be reached from here, there is a warning.

    If its Secret is in one namespace, each `up` copies the Secret into the tenants' namespaces.

    Raises pulumi.RunError if the Redis refuses the credentials, is a Redis Cluster, is not a master, or evicts keys.
    """

    def __init__(self, name: str, args: ExternalRedisArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:ExternalRedis", name, None, opts)
        seen = args.seen or look(args.settings, args.cluster, next(iter(args.tenants), ""))
        if seen.warning:
            needs = "It must admit RayClusters, and must never evict keys (maxmemory-policy noeviction)"
            pulumi.log.warn(f"redis.external could not be checked: {seen.warning}. {needs}", resource=self)
        if args.settings.secret_namespace:
            texts: pulumi.Input[Mapping[str, str]] = unknown()
            if known := seen.secret:
                texts = tenant_secret(known[USERNAME_KEY], [known[PASSWORD_KEY]], known.get(CA_KEY))
            for tenant, namespace in args.tenants.items():
                KubernetesObject(
                    f"{name}-secret-{tenant}",
                    in_namespace(secret(SECRET, pulumi.Output.secret(texts)), namespace),
                    pulumi.ResourceOptions(parent=self),
                )


class NodesCertificate(ServerCertificate, module="ray-platform", name="NodesCertificate"):
    """A certificate for all nodes of a Redis, as servers and as each other's clients."""

    subject: ClassVar[str] = "ray-redis"
