"""Rules for all objects of a stack, and for how Pulumi creates them."""

import re
from collections.abc import Iterator
from typing import Any

from core.pods import RAY_CLUSTERS, RAY_JOBS
from core.problems import Path
from core.secrets import is_secret, secret_in
from core.yaml_reader.document import DocumentError, documents

from ..rule import Severity, Violations, rule
from ..search import OBJECT, TEXT, inside, is_foreign
from ..values import Node, NotKnownYetError, Object, is_placeholder
from ..walk import Stack, containers

_DEPRECATION = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"

_REMOVED = {
    "extensions/v1beta1": "apps/v1 or networking.k8s.io/v1",
    "apps/v1beta1": "apps/v1",
    "apps/v1beta2": "apps/v1",
    "batch/v1beta1": "batch/v1",
    "policy/v1beta1": "policy/v1",
    "networking.k8s.io/v1beta1": "networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1": "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1beta1": "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1": "storage.k8s.io/v1",
    "autoscaling/v2beta1": "autoscaling/v2",
    "autoscaling/v2beta2": "autoscaling/v2",
    "apiextensions.k8s.io/v1beta1": "apiextensions.k8s.io/v1",
    "admissionregistration.k8s.io/v1beta1": "admissionregistration.k8s.io/v1",
}
"""API versions that are no longer served, each with its replacement."""

_OUTDATED = {"ray.io/v1alpha1": "ray.io/v1"}
"""API versions that are still served but drop newer fields: here authOptions and gcsFaultToleranceOptions."""

_PUBLIC = ("ca.crt", "tls.crt")
"""Keys of Secrets that are public: a server shows its certificates to every client."""

_ARGO_CDS_LABEL = "argocd.argoproj.io/secret-type"
_ARGO_CD = ("type", "url", "name", "project", "server", "insecure", "enableLfs", "enableOCI", "proxy", "noProxy")
"""Keys of Secrets of Argo CD that are no secrets (argo-cd.readthedocs.io, Declarative Setup)."""


@rule(
    "api-not-deprecated",
    Severity.HIGH,
    what="Objects have API versions that are served and that keep all fields.",
    why="Newer clusters do not serve other versions. KubeRay's v1alpha1 silently drops authOptions and other fields.",
    source=f"{_DEPRECATION}; kuberay ray-operator/apis/ray/v1alpha1",
    fix="Write the newer apiVersion, and check the fields that it has renamed.",
)
def api_not_deprecated(owner: Object) -> Violations:
    """Rejects versions that are no longer served and versions that drop fields."""
    api_version = owner.root.at("apiVersion")
    # CSIStorageCapacity and ValidatingAdmissionPolicy had later beta versions under the same names.
    if current := _OUTDATED.get(api_version.text or ""):
        yield api_version.wrong(f"{api_version.shown()} drops newer fields, such as authOptions: write {current}")
    elif (newer := _REMOVED.get(api_version.text or "")) and owner.kind not in (
        "CSIStorageCapacity",
        "ValidatingAdmissionPolicy",
    ):
        yield api_version.wrong(f"{api_version.shown()} is gone: write {newer}")


@rule(
    "explicit-names",
    Severity.MEDIUM,
    what="Objects have explicit names.",
    why="Pulumi generates others at random, which people, bindings and Services cannot refer to.",
    source="https://www.pulumi.com/docs/iac/concepts/resources/names/#autonaming",
    fix="Set metadata.name.",
)
def explicit_names(owner: Object) -> Violations:
    """Requires a name. A file may have `generateName` instead, which `kubectl create` accepts."""
    name = owner.root.at("metadata", "name")
    generated = owner.protected is None and owner.root.at("metadata", "generateName").is_set
    if not name.is_set and not generated and not owner.kind.endswith("List"):
        yield name.wrong("is not set")


@rule(
    "unique-objects",
    Severity.HIGH,
    what="No object is defined twice.",
    why="The second overwrites the first, or the update ends with AlreadyExists.",
    source="https://kubernetes.io/docs/concepts/overview/working-with-objects/names/",
    fix="Remove one, or give it another name or namespace.",
)
def unique_objects(stack: Stack) -> Violations:
    """No two objects have the same group, kind, namespace and name."""
    seen: dict[tuple[str | None, ...], Object] = {}
    for owner in stack.objects:
        if not owner.root.at("metadata", "name").is_set:
            continue
        other = seen.setdefault((owner.group, owner.kind, owner.namespace, owner.name), owner)
        if other is not owner:
            yield owner.root.at("metadata", "name").wrong(f"{owner} is defined twice")


@rule(
    "secrets-encrypted",
    Severity.CRITICAL,
    what="The values of Secrets are secrets of Pulumi.",
    why="Otherwise they are in plain text in the state and in every preview.",
    source="https://www.pulumi.com/docs/iac/concepts/secrets/",
    fix="Wrap the values in pulumi.Output.secret, or take them from config with require_secret.",
    kinds=("Secret",),
)
def secrets_encrypted(owner: Object) -> Violations:
    """All values except certificates are secrets of Pulumi, in objects that Pulumi creates. Messages show no value."""
    if owner.protected is None:
        return
    for key in ("data", "stringData"):
        values = owner.root.at(key)
        if not values.secret:
            plain = (value for name, value in values.entries() if not value.secret and name not in _PUBLIC)
            yield from (value.wrong("is not encrypted") for value in plain if value.is_set)


@rule(
    "no-plain-secrets",
    Severity.CRITICAL,
    what="No file contains a Secret with its values, and no object a secret in plain text.",
    why="Base64 hides nothing: whoever may read the repository, or the object, reads it.",
    source="https://kubernetes.io/docs/concepts/security/secrets-good-practices/",
    fix="Use sealed or external secrets, or Pulumi's. Then replace the values: they have been seen.",
)
def no_plain_secrets(owner: Object) -> Violations:
    """Rejects the values of Secrets in files, except certificates and placeholders; and in all other objects texts that
    look like secrets, and runtime environments and ConfigMaps with variables that are named so. Shows no value."""
    if owner.kind == "Secret":
        yield from _in_secret(owner)
    elif owner.kind != "CustomResourceDefinition":
        judged = {(*each.node.path, key) for each in containers(owner) for key in ("env", "command", "args")}
        judged |= {node.path for what, node in inside(owner) if what in (OBJECT, TEXT)}
        yield from _in_texts(owner.root, judged, owner.kind in _WITH_TEXTS)
        yield from _named(owner)


_WITH_TEXTS = ("ConfigMap", *RAY_CLUSTERS)
"""Kinds whose texts must be known. Those of others are rarely more than names."""

_ENVIRONMENTS: dict[str, tuple[Path, ...]] = {
    **{kind: ((*path, "runtimeEnvYAML"), (*path, "entrypoint")) for kind, path in RAY_JOBS.items()},
    "RayService": (("spec", "serveConfigV2"),),
}
"""Texts of KubeRay's kinds with variables of Ray's jobs and applications."""

_ASSIGNMENT = re.compile(r"(?:^|\s)([A-Z][A-Z0-9_]*)=(\"[^\"]*\"|'[^']*'|\S+)")


def _in_secret(owner: Object) -> Violations:
    # Argo CD keeps the addresses of repositories and clusters in Secrets, also of public ones.
    public = (*_PUBLIC, *(_ARGO_CD if owner.label(_ARGO_CDS_LABEL).is_set else ()))
    for key in ("data", "stringData") if owner.protected is None else ():
        for name, value in owner.root.at(key).entries():
            text = value.text or ""
            if name in public and not secret_in(text):
                continue
            if text and not is_placeholder(text):
                yield value.wrong("is in a file")


def _in_texts(node: Node, judged: set[Path], needed: bool) -> Violations:
    if node.path in judged:
        return
    try:
        values = [each for _, each in node.entries()] + list(node.items())
        kind = secret_in(node.text or "")
    except NotKnownYetError:
        if needed:
            raise
        return
    if kind:
        yield node.wrong(f"has {kind}")
    for each in values:
        yield from _in_texts(each, judged, needed)


def _named(owner: Object) -> Violations:
    """Variables that are secrets by their names, where their values do not look like one."""
    if owner.kind == "ConfigMap":
        for key, value in owner.root.at("data").entries():
            if _is_secret(key.replace("-", "_"), value.text):
                yield value.wrong(f"{key!r} looks like a secret")
    for path in _ENVIRONMENTS.get(owner.kind, ()):
        node = owner.root.at(*path)
        text = node.text or ""
        found = _ASSIGNMENT.findall(text) if path[-1] == "entrypoint" else _variables(_parsed(text))
        for name in dict.fromkeys(name for name, value in found if _is_secret(name, str(value).strip("\"'"))):
            yield node.wrong(f"{name!r} looks like a secret")


def _is_secret(name: str, value: str | None) -> bool:
    """Without those that look like one: they are found as texts."""
    plain = value and not is_placeholder(value) and not value.startswith("$") and not secret_in(value)
    return bool(plain) and is_secret(name, str(value))


def _parsed(text: str) -> Any:
    try:
        return [each.value for each in documents(text)]
    except DocumentError:
        return None


def _variables(value: Any) -> Iterator[tuple[str, Any]]:
    """The variables in all `env_vars` of a runtime environment or a Serve config."""
    for key, each in value.items() if isinstance(value, dict) else ():
        yield from each.items() if key == "env_vars" and isinstance(each, dict) else _variables(each)
    for each in value if isinstance(value, list) else ():
        yield from _variables(each)


@rule(
    "kind-judged",
    Severity.LOW,
    what="Rules look into the objects of every kind.",
    why="What an operator makes of other objects is not judged before it runs: pods, and clusters of Ray.",
    source="policies/search.py",
    fix="Judge what the operator creates, or enforce rules in the cluster; except the kind if it creates no pods.",
)
def kind_judged(stack: Stack) -> Violations:
    """Reports kinds, other than Kubernetes', KubeRay's, Volcano's and Kueue's own, in which there is no object, no
    RayCluster and no pod that a rule could look into. Each kind once."""
    seen: dict[tuple[str, str], list[Object]] = {}
    for owner in stack.objects:
        if is_foreign(owner) and not any(inside(owner)):
            seen.setdefault((owner.group, owner.kind), []).append(owner)
    for (group, kind), owners in seen.items():
        count = f"{len(owners)} objects" if len(owners) > 1 else "the object"
        yield owners[0].root.at("kind").wrong(f"no rule looks into {kind.partition('.')[0]} of {group}: {count}")


@rule(
    "protect-stateful",
    Severity.LOW,
    what="Pulumi refuses to delete objects with data.",
    why="A renamed resource is deleted and recreated, and its volume with it.",
    source="https://www.pulumi.com/docs/iac/concepts/resources/options/protect/",
    fix="Set protect=True on PersistentVolumeClaims; a StatefulSet keeps its claims with whenDeleted: Retain.",
    kinds=("PersistentVolumeClaim", "StatefulSet"),
)
def protect_stateful(owner: Object) -> Violations:
    """Requires `protect`, or a retention policy that keeps the claims."""
    kept = owner.root.at("spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted").text != "Delete"
    if owner.protected is False and (owner.kind == "PersistentVolumeClaim" or not kept):
        yield owner.root.at("metadata", "name").wrong("may be deleted with its data")


@rule(
    "pdb-lets-drain",
    Severity.MEDIUM,
    what="PodDisruptionBudgets allow nodes to be drained.",
    why="A budget that allows no disruption of several pods blocks every upgrade of nodes.",
    source="https://kubernetes.io/docs/tasks/run-application/configure-pdb/",
    fix="Set maxUnavailable: 1. A budget for the one head of a RayCluster may keep it.",
    kinds=("PodDisruptionBudget",),
)
def lets_drain(owner: Object) -> Violations:
    """Rejects budgets that allow no disruption, in numbers or percent. The rule skips budgets for heads."""
    spec = owner.root.at("spec")
    if spec.at("selector", "matchLabels", "ray.io/node-type").text == "head":
        return
    for key, stuck in (("maxUnavailable", ("0", "0%")), ("minAvailable", ("100%",))):
        if spec.at(key).text in stuck:
            yield spec.at(key).wrong(f"is {spec.at(key).shown()}: no pod may be evicted")
