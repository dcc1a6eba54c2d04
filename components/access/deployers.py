"""The admission policy for what code on Ray creates with the account of `rayDeployer`, in CEL. Pure functions.

NetworkPolicies open the ports of pods with one label. So the policy demands it of the account's pods and Deployments,
refuses it to everybody else and in all objects of KubeRay, and refuses the account's pods any other label by which a
NetworkPolicy of the tenant opens more. The pods of a Deployment are created by Kubernetes' controllers, so its template
is judged. PersistentVolumeClaims of the account may only ask for new volumes of the StorageClasses in the stack file.
It may delete claims with the label: it changes no claim, so the tenant's storage has none.

Violations from before the setting stay, and an update adds none (components/access/findings.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from components.access.findings import Listed, defined
from components.access.neighbours import NO_CONTROLLER, RAY_LABELS, harmless
from components.access.personas import ALL_RAY_KINDS, RAY_GROUP
from components.access.restricted import Deployer, by_namespace
from components.network.manifests import DEPLOYED, JOB_LABEL
from core.body import Body
from core.pods import POD_TEMPLATES, VOLCANO_JOB
from policies.cel import by_kind, listed, resource_rules, text, under

_KEY, _VALUE = next(iter(DEPLOYED.items()))

OPENING = ("ray.io/", "ray-platform/", JOB_LABEL)
"""Prefixes of the labels by which NetworkPolicies of a tenant select pods."""

_DELETED = "request.operation == 'DELETE'"
"""A deletion has no new object, so the rules about it do not apply."""

_ASKED = ("accessModes", "resources", "storageClassName", "volumeMode")
"""Fields of a claim for a new volume: none that names a volume or data of others."""

_PROTECTION = "kubernetes.io/pvc-protection"
"""Finalizer that the API server adds to each claim (plugin/pkg/admission/storage/storageobjectinuseprotection)."""

_OF_THE_TENANT = {
    "name": "not-in-all-namespaces",
    "expression": "!authorizer.group(request.resource.group).resource(request.resource.resource).check('create')"
    ".allowed()",
}
"""Kubernetes' controllers, Volcano's, and administrators may create such objects in all namespaces."""

_METADATA = by_kind(
    {
        **{kind: f"[{under('object', (*path, 'metadata'))}.orValue({{}})]" for kind, path in POD_TEMPLATES.items()},
        VOLCANO_JOB: "object.?spec.?tasks.orValue([]).map(task, task.?template.?metadata.orValue({}))",
    }
)
_MADE = f"{_METADATA}.map(metadata, metadata.?labels.orValue({{}}))"
"""Labels of the pods that an object becomes, which is no object of KubeRay."""


def deployers(of: Mapping[str, Deployer]) -> Body:
    """The spec of the policy. `of`: the accounts by their namespaces."""
    rules = [replace(rule, unless=_DELETED) for rule in (*_labels(of), _claims(of))]
    claims = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"]}
    kinds = {"apiGroups": [RAY_GROUP], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"]}
    return {
        "matchConstraints": {
            "resourceRules": [
                *resource_rules([*POD_TEMPLATES, VOLCANO_JOB]),
                {**claims, "resources": ["persistentvolumeclaims"]},
                {**kinds, "resources": list(ALL_RAY_KINDS)},
            ]
        },
        "matchConditions": [NO_CONTROLLER, _OF_THE_TENANT],
        "variables": defined(rules),
        "validations": [*(rule.validation for rule in rules), _deletions(of)],
    }


def _labels(of: Mapping[str, Deployer]) -> Iterable[Listed]:
    by_it = f"request.userInfo.username in {by_namespace({at: [_user(at, each)] for at, each in of.items()})}"
    networked = f"request.namespace in {listed(at for at, each in of.items() if each.networked)}"
    own = f"({networked} && {by_it} ? {_MADE} : [])"
    others = f"({networked} ? {RAY_LABELS} + ({by_it} ? [] : {_MADE}) : [])"
    chosen = ", ".join(
        f"{text(at)}: [{', '.join(map(_mapping, each.selected))}]" for at, each in of.items() if each.selected
    )
    selected = f"{{{chosen}}}[?request.namespace].orValue([])" if chosen else "[]"
    prefixed = f"{listed(OPENING)}.exists(prefix, key.startsWith(prefix))"
    # The mark of a pod without the label keeps an update from adding it to a pod that NetworkPolicies select already.
    mark = f"(it[?'{_KEY}'].orValue('') == '{_VALUE}' ? '' : ' ')"
    return (
        Listed(
            "unlabelled",
            own,
            f"it[?'{_KEY}'].orValue('') == '{_VALUE}' ? [] : ['label {_KEY}: {_VALUE}']",
            "item",
            " is missing, by which NetworkPolicies open the ports of pods that this account creates: add it to "
            "metadata.labels of a pod, or to spec.template.metadata.labels of a Deployment",
        ),
        Listed(
            "opening",
            own,
            f"it.filter(key, key != '{_KEY}' && {prefixed}).map(key, 'label ' + key + '=' + string(it[key]) + {mark})"
            f" + {selected}.filter(labels, labels.all(key, key in it && it[key] == labels[key]))"
            f".map(labels, 'labels ' + labels.map(key, key + '=' + labels[key]).join(', ') + {mark})",
            "item.trim()",
            " would give the pod the connections of others, by a NetworkPolicy: remove it",
        ),
        Listed(
            "taken",
            others,
            f"it.filter(key, key == '{_KEY}').map(key, 'label ' + key + '=' + string(it[key]))",
            "item",
            " is only for pods and Deployments that the account of rayDeployer creates: remove it",
        ),
    )


def _claims(of: Mapping[str, Deployer]) -> Listed:
    classes = by_namespace({at: each.classes for at, each in of.items()})
    named = "it.?spec.?storageClassName.orValue('')"
    return Listed(
        "claimed",
        f"(request.kind.kind == 'PersistentVolumeClaim' && {_by_claimer(of)} ? [dyn(object)] : [])",
        f"it.?spec.orValue({{}}).filter(key, !(key in {listed(_ASKED)})).map(key, [dyn(key), dyn(it.spec[key])])"
        f" + [{named}].filter(each, !(each in {classes})).map(each, [dyn('StorageClass ' + each), dyn('')])"
        f" + it.metadata.?annotations.orValue({{}}).filter(key, !{harmless('key')})"
        ".map(key, [dyn('annotation ' + key), dyn(it.metadata.annotations[key])])"
        f" + it.metadata.?finalizers.orValue([]).filter(each, each != '{_PROTECTION}')"
        ".map(each, [dyn('finalizer ' + each), dyn('')])",
        "string(item[0])",
        f" is not for claims of this account, which ask for new volumes: set only {', '.join(_ASKED)}. The stack file "
        "allows the storageClassName ",
        f"{classes}.join(', ')",
    )


def _deletions(of: Mapping[str, Deployer]) -> Body:
    labelled = f"oldObject.metadata.?labels[?'{_KEY}'].orValue('') == '{_VALUE}'"
    return {
        "expression": f"!({_DELETED}) || !({_by_claimer(of)}) || {labelled}",
        "message": "this claim may be storage of the tenant: this account may only delete claims that it has created "
        f"with the label {_KEY}: {_VALUE}",
    }


def _by_claimer(of: Mapping[str, Deployer]) -> str:
    claiming = {at: [_user(at, each)] for at, each in of.items() if each.classes}
    return f"request.userInfo.username in {by_namespace(claiming)}"


def _user(namespace: str, deployer: Deployer) -> str:
    return f"system:serviceaccount:{namespace}:{deployer.account}"


def _mapping(labels: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{text(key)}: {text(value)}' for key, value in labels.items())}}}"
