"""The whole stack file. Read from the running stack's configuration or from a file; nothing here knows Pulumi."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from components.access.settings import RayDeployerSettings
from components.nodes import NodePool
from components.operator.settings import OperatorSettings
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.settings import RayClusterSettings
from components.types import DnsLabel, Settings, dns_1035_label

from .messages import explain

__all__ = [
    "LARGEST_FILE",
    "PROJECT",
    "KubernetesSettings",
    "NodePool",
    "StackFileError",
    "StackSettings",
    "TenantSettings",
    "load",
    "parse",
]

PROJECT = "ray-platform"
"""Namespace of the program's keys in a stack file: `ray-platform:nodes`."""

LARGEST_FILE = 2**20
"""Bytes. A stack file is read by people; one greater than this was given by mistake."""


class StackFileError(Exception):
    """A stack file cannot be used. The text says for each fault where it is, what is there and what may be there."""


class KubernetesSettings(Settings):
    """Which cluster the stack is for."""

    context: str | None = Field(default=None, min_length=1)
    """Context of the kubeconfig. Default: its current one."""


class TenantSettings(Settings):
    """A team: a namespace of its own, with its RayClusters in it."""

    name: Annotated[str, dns_1035_label(40)]
    """Name of the tenant, and of its namespace where none is set."""

    namespace: DnsLabel | None = None
    """Namespace that is made for the tenant. Default: its name."""

    create_namespace: bool = True
    """False: the namespace is there already. The stack uses it, and leaves it there when it is destroyed."""

    ray_deployer: RayDeployerSettings = RayDeployerSettings()
    """The account that the tenant's clusters run as."""

    clusters: tuple[RayClusterSettings, ...] = ()
    """The tenant's RayClusters."""

    @property
    def namespace_name(self) -> str:
        """The namespace's name."""
        return self.namespace or self.name


class StackSettings(Settings):
    """All that a stack file may say under `ray-platform:`."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    operator: OperatorSettings = OperatorSettings()

    nodes: tuple[NodePool, ...] = ()
    """Pools of nodes that the cluster has. Workers are cut to them; a rehearsal simulates them."""

    tenants: tuple[TenantSettings, ...] = ()
    """The teams."""

    @model_validator(mode="after")
    def _names_are_used_once(self) -> Self:
        _used_once("nodes: pool", [pool.pool for pool in self.nodes])
        _used_once("tenants: name", [tenant.name for tenant in self.tenants])
        _used_once("tenants: namespace", [tenant.namespace_name for tenant in self.tenants])
        for tenant in self.tenants:
            _used_once(f"tenant {tenant.name!r}: cluster", [cluster.name for cluster in tenant.clusters])
        return self

    @model_validator(mode="after")
    def _namespaces_are_the_tenants(self) -> Self:
        for tenant in self.tenants:
            own = f"tenant {tenant.name!r}: namespace {tenant.namespace_name!r}"
            if tenant.namespace_name == self.operator.namespace or tenant.namespace_name.startswith("kube-"):
                raise ValueError(f"{own} is the operator's or Kubernetes' own: set another namespace")
            watched = self.operator.watch_namespaces
            if watched and tenant.namespace_name not in watched:
                raise ValueError(f"{own} is not in operator.watchNamespaces ({', '.join(watched)}): add it there")
        return self

    @model_validator(mode="after")
    def _clusters_can_be_made(self) -> Self:
        for tenant in self.tenants:
            for cluster in tenant.clusters:
                try:
                    ray_cluster(cluster, self.nodes)
                except ValueError as error:
                    raise ValueError(f"tenant {tenant.name!r}, cluster {cluster.name!r}: {error}") from error
        return self


def _used_once(what: str, names: list[str]) -> None:
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{what} {', '.join(repeated)} is used more than once: give each a name of its own")


def parse(values: Mapping[str, Any]) -> StackSettings:
    """The settings from the values under `ray-platform:`, by key without that prefix.

    Raises StackFileError.
    """
    try:
        return StackSettings.model_validate(dict(values), by_alias=True, by_name=False)
    except ValidationError as error:
        raise StackFileError(explain(error, StackSettings, PROJECT)) from error


def load(path: Path) -> StackSettings:
    """The settings in a stack file such as Pulumi.dev.yaml; keys of other namespaces (`kubernetes:`) are passed over.

    Raises StackFileError where it cannot be read, is no stack file, or says what may not be said.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise StackFileError(f"{path} is greater than {LARGEST_FILE} bytes: is it a stack file?")
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StackFileError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise StackFileError(f"{path} is not YAML: {error}") from error
    config = document.get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict):
        raise StackFileError(f"{path} is no stack file: it has no mapping under `config:`")
    prefix = f"{PROJECT}:"
    return parse({key.removeprefix(prefix): value for key, value in config.items() if str(key).startswith(prefix)})
