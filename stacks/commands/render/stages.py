"""The objects of a stack in the order in which they are applied, and what of it is not a plain object. Pure functions.

The objects are those of `render`, and those of KubeRay's own manifests, as the component of the operator adapts them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.crds.definitions import whole
from components.operator.manifests import operator_objects
from components.ray_cluster.request import scales
from components.tenant.settings import COUNTS
from core.body import Body
from core.images import with_mirrors
from core.problems import few
from core.values import inside
from stacks.objects.stack import Objects, render_as
from stacks.settings import StackSettings

WAVE = "argocd.argoproj.io/sync-wave"
"""Annotation for Argo CD: it applies waves in ascending order, and deletes them in descending order."""

KEPT = {
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
"""Annotations of objects that Argo CD and Flux never delete: `pulumi up` has a guard for them."""

KEPT_KINDS = frozenset(
    {
        "CustomResourceDefinition",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Queue",
        "ClusterQueue",
    }
)

CREATED_ONCE = {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}
"""Annotation of a RayCluster that scales: Flux would revert the numbers of its autoscaler, which writes into the list
of worker groups (components/ray_cluster/request.py)."""

_OF_PULUMI = "pulumi.com/"
"""Prefix of annotations that only Pulumi's provider reads."""

DEFINITIONS, NAMESPACES, RULES, OPERATOR, PLATFORM, TENANTS, LIMITS = STAGES = (
    "10-definitions",
    "20-namespaces",
    "30-rules",
    "40-operator",
    "50-platform",
    "60-tenants",
    "70-limits",
)
"""The stages: each needs those before it."""

_RULES = frozenset(
    {
        *("ClusterRole", "ClusterRoleBinding", "ConfigMap", "LimitRange", "NetworkPolicy", "PersistentVolume"),
        *("PersistentVolumeClaim", "PriorityClass", "ResourceQuota", "Role", "RoleBinding", "ServiceAccount"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    }
)
"""Kinds of rights, limits and rules, which have to exist before pods do."""

_RUN_ONCE = frozenset({"Job", "RayJob"})
"""Kinds that run when they are created, and are deleted afterwards: Argo CD and Flux would start them again."""

_SHOWN = 3
"""Names of a list in a message."""

Stages = Mapping[str, Sequence[Body]]


@dataclass(frozen=True)
class Omission:
    """A part of a stack that is not a plain manifest."""

    what: str
    why: str
    """The reason, and what to do instead."""


@dataclass(frozen=True)
class SecretReference:
    """A Secret that objects refer to, and that is not rendered."""

    namespace: str
    name: str
    users: tuple[str, ...]
    """The objects with a reference: `RayCluster training`."""


@dataclass(frozen=True)
class Rendered:
    stages: Stages
    """The objects of each stage, in a stable order."""

    left: tuple[Omission, ...]
    secrets: tuple[SecretReference, ...]


def rendered_stack(stack: StackSettings, name: str, operator_tree: Sequence[Body]) -> Rendered:
    """A stack as plain manifests.

    `name`: of the Pulumi stack, or of the environment. `operator_tree`: the objects of KubeRay's `config/default`;
    empty if the stack does not install the operator. Raises UnexpectedManifestError and MissingDefinitionError.
    """
    found: dict[str, list[Body]] = {stage: [] for stage in STAGES}
    for stage, body in (*_operator(stack, operator_tree), *_others(render_as(stack, name))):
        found[stage].append(_annotated(body, stage))
    stages = {stage: sorted(bodies, key=_order) for stage, bodies in found.items() if bodies}
    bodies = [body for each in stages.values() for body in each]
    return Rendered(stages, tuple(_left(stack, bodies)), tuple(_secrets(bodies)))


def _operator(stack: StackSettings, tree: Sequence[Body]) -> Iterator[tuple[str, Body]]:
    if not tree:
        return
    for body in whole(tree):
        if body["kind"] == "CustomResourceDefinition":
            yield DEFINITIONS, body
    first, access, last = operator_objects(tree, stack.operator_in_force)
    for stage, bodies in ((NAMESPACES, first), (RULES, access), (OPERATOR, last)):
        for body in bodies:
            # A PodDisruptionBudget of several replicas stands beside the Deployment.
            placed = OPERATOR if body["kind"] == "PodDisruptionBudget" else stage
            yield placed, with_mirrors(body, stack.images.mirrors)


def _others(manifests: Objects) -> Iterator[tuple[str, Body]]:
    for each in manifests.values():
        kind = each.body["kind"]
        if kind in _RUN_ONCE:
            continue
        if kind == "Namespace":
            stage = NAMESPACES
        elif each.body["metadata"]["name"] == COUNTS:
            stage = LIMITS
        elif kind in _RULES:
            stage = RULES
        else:
            stage = TENANTS if each.place[0] == "tenants" and kind != "Queue" else PLATFORM
        yield stage, dict(each.body)


def _annotated(body: Body, stage: str) -> Body:
    """The object without annotations for Pulumi, and with those for Argo CD and Flux."""
    metadata = body["metadata"]
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if not key.startswith(_OF_PULUMI)
    }
    annotations[WAVE] = stage.partition("-")[0]
    if body["kind"] in KEPT_KINDS:
        annotations |= KEPT
    if body["kind"] == "RayCluster" and scales(body):
        annotations |= CREATED_ONCE
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _order(body: Body) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return metadata.get("namespace", ""), body["kind"], metadata["name"]


def _secrets(bodies: Sequence[Body]) -> Iterator[SecretReference]:
    made = {
        (body["metadata"]["namespace"], body["spec"]["secretName"]) for body in bodies if body["kind"] == "Certificate"
    }
    users: dict[tuple[str, str], dict[str, None]] = {}
    for body in bodies:
        namespace = body["metadata"].get("namespace")
        for name in _references(body) if namespace else ():
            users.setdefault((str(namespace), name), {})[f"{body['kind']} {body['metadata']['name']}"] = None
    for (namespace, name), found in sorted(users.items()):
        if (namespace, name) not in made:
            yield SecretReference(namespace, name, tuple(found))


_OF_SECRETS = ("secretKeyRef", "secretRef", "nodePublishSecretRef", "imagePullSecrets", "redisPassword", "secret")
"""Fields with the name of a Secret; `secret` of a projected volume."""


def _references(body: Body) -> Iterator[str]:
    """The names of Secrets in the pods of an object, and in its own fields that name one."""
    for path, name in inside(body):
        if isinstance(name, str) and "metadata" not in path:
            match [step for step in path if isinstance(step, str)]:
                case [*_, "secretName"]:
                    yield name
                case [*_, key, "name"] if key in _OF_SECRETS:
                    yield name


def _left(stack: StackSettings, bodies: Sequence[Body]) -> Iterator[Omission]:
    if stack.scheduler and (program := stack.scheduler.configured).install == "manifests":
        why = "`up` generates the certificate of its webhook: install it before stage 30-rules"
        yield Omission(f"{stack.scheduler.backend.capitalize()} {program.version}", why)
    if jobs := [f"{tenant.namespace_name}/{job.name}" for tenant in stack.tenants for job in tenant.jobs]:
        why = "a job runs once, when it is created; Argo CD and Flux would start it again: submit it yourself"
        yield Omission(f"Jobs {shown_names(jobs)}", why)
    if stack.jobs:
        why = "`up` submits them from its own machine: use `ray job submit`"
        yield Omission(f"Jobs {shown_names([each.name for each in stack.jobs])} outside Kubernetes", why)
    if names := [f"{each.namespace_name}/{one.name}" for each in stack.tenants for one in each.external_clusters]:
        yield Omission(f"Checks of external clusters {shown_names(names)}", "they are Jobs, which run once")
    if names := _named(bodies, scaling=True):
        why = (
            "the autoscaler writes `replicas` into the same list that the manifest owns. Never apply it with "
            "--force-conflicts; Argo CD needs the ignoreDifferences of argocd.yaml; Flux only creates it, so edits are "
            "up to you"
        )
        yield Omission(f"Numbers of workers of {shown_names(names)}", why)
    if names := _named(bodies):
        why = "KubeRay does not replace pods for most edits: `up` does, or deletes groups only once they are idle"
        yield Omission(f"Rollout of edits of {shown_names(names)}", why)
    if any(cluster.fault_tolerance for tenant in stack.tenants for cluster in tenant.all_clusters):
        why = "`up` generates it, and removes its keys from Redis; without it KubeRay uses the UID of the RayCluster"
        yield Omission("The storage namespace in Redis", why)
    if stack.platform is None:
        why = (
            "`up` refuses to delete definitions, queues and tenants that are in use. Here they are kept: delete them "
            "by hand, tenants first, definitions last"
        )
        yield Omission("Guards", why)
    why = "checks against the live cluster (upgrades of the operator, storage classes, its identity) and waiting"
    yield Omission("What a preview does", f"{why}: `kubectl wait`")


def shown_names(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    return few(names, _SHOWN)


def _named(bodies: Sequence[Body], *, scaling: bool = False) -> list[str]:
    return [
        f"{body['metadata']['namespace']}/{body['metadata']['name']}"
        for body in bodies
        if body["kind"] == "RayCluster" and (scales(body) or not scaling)
    ]
