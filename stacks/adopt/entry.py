"""What a stack file says of a RayCluster that runs already, so that it stays exactly as it is. Pure functions."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from components.ray_cluster.rules import sound
from components.ray_cluster.scheduling import SETTINGS_BY_LABEL, said_by
from core.images import with_mirrors
from core.problems import dotted
from core.strategic_merge import difference

from ..importing.manifests import from_manifest
from ..importing.notes import RefusedError
from ..queues import queue_of, scheduling_of
from ..rendered import as_tenant_gives
from ..settings import LONGEST_TENANT_NAME, StackSettings, TenantSettings
from .live import Body, CannotAdoptError

_NOT_OURS = "kubectl.kubernetes.io/last-applied-configuration"
"""What `kubectl apply` remembers; once the stack has the object it is of no use."""


@dataclass(frozen=True)
class Entry:
    """Lines of a stack file, and what people should know of them."""

    tenant: dict[str, Any]
    """The tenant for the cluster's namespace, without clusters, for a stack that has none."""

    cluster: dict[str, Any]

    notes: tuple[str, ...]


def entry(body: Body, stack: StackSettings) -> Entry:
    """The cluster as an entry of this stack.

    What has a setting is said by it, the rest by `overrides`, so that the stack renders the very spec that is there.
    Raises CannotAdoptError where the stack has the cluster already, or cannot say it.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    tenant = next((each for each in stack.tenants if each.namespace_name == namespace), None)
    if tenant and name in [cluster.name for cluster in tenant.clusters]:
        raise CannotAdoptError(f"the stack has RayCluster {name!r} of tenant {tenant.name!r} already: nothing to adopt")
    new: dict[str, Any] = {"name": tenant_name(namespace), "namespace": namespace, "createNamespace": False}
    if stack.platform is None:
        new["network"] = {"policies": False}  # nobody may be cut off by what was meant to change nothing
    if new["name"] == namespace:
        del new["namespace"]
    try:
        imported = from_manifest(_as_applied(body))
    except RefusedError as error:
        raise CannotAdoptError(f"RayCluster {namespace}/{name}: {error}") from error
    owner = tenant or TenantSettings(name=str(new["name"]))
    said = _scheduled(imported.cluster) if stack.scheduler else imported.cluster
    try:
        cluster = _exact({"name": name, "adopt": True, **said}, body, owner, stack)
    except ValidationError as error:
        faults = "; ".join(f"{dotted(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False))
        raise CannotAdoptError(f"RayCluster {namespace}/{name} cannot be said by a stack file: {faults}") from error
    notes = [str(note) for note in imported.notes]
    if stack.scheduler and "queue" not in said and (queue := queue_of(owner)):
        notes.append(f"it waits in queue {queue}, its tenant's, from then on")
    return Entry(new, cluster, tuple(notes))


def _scheduled(cluster: dict[str, Any]) -> dict[str, Any]:
    """The cluster with its scheduler's labels as the settings that they follow from."""
    labels = cluster.get("labels") or {}
    others = {key: value for key, value in labels.items() if key not in SETTINGS_BY_LABEL}
    without = {key: value for key, value in cluster.items() if key != "labels"}
    return {**without, **({"labels": others} if others else {}), **said_by(labels)}


def _as_applied(body: Body) -> Body:
    """The object without what only the API server, the operator and kubectl write."""
    metadata = {key: value for key, value in body["metadata"].items() if key in ("name", "namespace", "labels")}
    if annotations := _annotations(body):
        metadata["annotations"] = annotations
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "spec": body["spec"]}


def _annotations(body: Body) -> dict[str, str]:
    return {key: value for key, value in (body["metadata"].get("annotations") or {}).items() if key != _NOT_OURS}


def tenant_name(namespace: str) -> str:
    """A name for the tenant of a namespace; a tenant's name begins with a letter and is shorter."""
    name = namespace if namespace[0].isalpha() else f"team-{namespace}"
    return name[:LONGEST_TENANT_NAME].rstrip("-")


def _exact(cluster: dict[str, Any], body: Body, tenant: TenantSettings, stack: StackSettings) -> dict[str, Any]:
    """The entry with the overrides that make its spec the one that runs, with all that the tenant gives."""
    bare = {key: value for key, value in cluster.items() if key != "overrides"}
    overrides = difference(_rendered(bare, tenant, stack)["spec"], body["spec"])
    exact = {**bare, **({"overrides": overrides} if overrides else {})}
    rendered = _rendered(exact, tenant, stack)
    lost = [f"spec.{key}" for key, value in body["spec"].items() if rendered["spec"].get(key) != value]
    lost += [f"spec.{key}" for key in rendered["spec"].keys() - body["spec"].keys()]
    lost += [
        f"metadata.{part}[{key!r}]"
        for part, said in (("labels", body["metadata"].get("labels") or {}), ("annotations", _annotations(body)))
        for key, value in said.items()
        if (rendered["metadata"].get(part) or {}).get(key) != value
    ]
    if lost:
        raise CannotAdoptError(
            f"RayCluster {cluster['name']!r} cannot be said exactly by a stack file, because of {', '.join(lost)}: "
            "change that in the cluster first"
        )
    return exact


def _rendered(cluster: dict[str, Any], tenant: TenantSettings, stack: StackSettings) -> Body:
    settings = sound(cluster)
    scheduling = scheduling_of(stack, tenant, settings)
    return with_mirrors(as_tenant_gives(tenant, settings, scheduling=scheduling), stack.images.mirrors)
