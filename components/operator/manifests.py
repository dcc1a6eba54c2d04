"""Adapts KubeRay's kustomize tree to the operator's settings. Pure functions."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence

from components.bodies import disruption_budget, restricted_namespace
from components.manifest_files import UnexpectedManifestError
from components.operator.settings import NAME, OperatorSettings
from core.body import Body
from core.versions import release_of
from kuberay.releases import FEATURE_GATES, RIGHTS_OF_GATES

CLUSTER_SCOPED_RESOURCES = frozenset({"ingressclasses", "namespaces", "nodes", "customresourcedefinitions"})
"""Resources that a Role cannot grant: their rules stay in a ClusterRole."""

POD_GROUP_RULES: dict[str, Body] = {
    "volcano": {
        "apiGroups": ["scheduling.volcano.sh"],
        "resources": ["podgroups"],
        "verbs": ["create", "delete", "get", "list", "update", "watch"],
    },
    "scheduler-plugins": {
        "apiGroups": ["scheduling.x-k8s.io"],
        "resources": ["podgroups"],
        "verbs": ["create", "get", "list", "watch"],
    },
}
"""Rules for a batch scheduler that the kustomize tree's ClusterRole lacks. KubeRay's Helm chart adds the same
(helm-chart/kuberay-operator/templates/_helpers.tpl). YuniKorn and KAI need none: they read labels and annotations."""

_LAST = frozenset({"Service", "Deployment"})
"""Created together, because a Service is ready only with ready pods."""


def operator_objects(tree: Sequence[Body], settings: OperatorSettings) -> tuple[list[Body], ...]:
    """The objects of the operator in three stages, each of which needs the one before it: namespace, access, Deployment
    and Service. CRDs are not among them: all stages need these.

    `tree`: the objects of KubeRay's `config/default`, as kustomize renders them; they are not changed.
    Raises UnexpectedManifestError if the tree has no operator, or one of another version.
    """
    check_version(tree, settings)
    gates = _gates(tree, settings)
    objects = [restricted_namespace(settings.namespace)]
    objects += [
        adapted
        for body in tree
        if body["kind"] != "CustomResourceDefinition"
        for adapted in _adapted(copy.deepcopy(body), settings, gates)
    ]
    first = [body for body in objects if body["kind"] == "Namespace"]
    last = [body for body in objects if body["kind"] in _LAST]
    return first, [body for body in objects if body["kind"] not in {"Namespace", *_LAST}], last


def check_version(tree: Iterable[Body], settings: OperatorSettings) -> None:
    """Raises UnexpectedManifestError if the tree's operator image does not have the desired version as its tag."""
    images = [container["image"] for body in tree if body["kind"] == "Deployment" for container in _containers(body)]
    tag = f":v{settings.version}"
    if not any(image.endswith(tag) for image in images):
        found = ", ".join(images) or "no Deployment"
        raise UnexpectedManifestError(
            f"the kustomize tree at {settings.tree} is not KubeRay v{settings.version}: it has {found}. "
            "Set operator.version to the tree's version, or operator.location to the tree of that version"
        )


def _adapted(body: Body, settings: OperatorSettings, gates: Mapping[str, bool]) -> list[Body]:
    if "namespace" in body["metadata"]:
        body["metadata"]["namespace"] = settings.namespace
    match body["kind"]:
        case "RoleBinding" | "ClusterRoleBinding":
            for subject in body["subjects"]:
                subject["namespace"] = settings.namespace
            return _narrowed_binding(body, settings) if body["kind"] == "ClusterRoleBinding" else [body]
        case "ClusterRole":
            body["rules"] = list(needed(body["rules"], gates))
            if rule := POD_GROUP_RULES.get(settings.batch_scheduler or ""):
                body["rules"].append(copy.deepcopy(rule))
            return _narrowed_role(body, settings)
        case "Service":
            # No other object needs it, and the Deployment is awaited. Pulumi waits until ten seconds after the last
            # change of a Service's endpoints (pulumi-kubernetes 4.32, provider/pkg/await/service.go).
            body["metadata"].setdefault("annotations", {})["pulumi.com/skipAwait"] = "true"
        case "Deployment":
            _adapt_deployment(body, settings)
            if settings.replicas > 1:
                labels = body["spec"]["selector"]["matchLabels"]
                return [body, disruption_budget(NAME, settings.namespace, labels)]
    return [body]


def needed(rules: Iterable[Body], gates: Mapping[str, bool]) -> Iterator[Body]:
    """The rules without the rights of feature gates that are off."""
    unused = {
        (group, resource): verbs
        for gate, rights in RIGHTS_OF_GATES.items()
        for group, resources, verbs in rights
        for resource in resources
        if not gates.get(gate)
    }
    for rule in rules:
        kept: dict[tuple[str, ...], list[str]] = {}
        for resource in rule["resources"]:
            verbs = tuple(rule["verbs"])
            if len(rule["apiGroups"]) == 1 and (gone := unused.get((rule["apiGroups"][0], resource))) is not None:
                verbs = tuple(verb for verb in verbs if gone and verb not in gone)
            kept.setdefault(verbs, []).append(resource)
        yield from ({**rule, "resources": each, "verbs": list(verbs)} for verbs, each in kept.items() if verbs)


def _gates(tree: Iterable[Body], settings: OperatorSettings) -> dict[str, bool]:
    """The operator's feature gates: KubeRay's defaults, those of the tree, and those of the settings."""
    gates = dict(FEATURE_GATES.get(release_of(settings.version), {}))
    for body in tree:
        if body["kind"] == "Deployment":
            for container in _containers(body):
                gates |= feature_gates(arguments(container.get("args", [])))
    return gates | settings.feature_gates


def _narrowed_role(role: Body, settings: OperatorSettings) -> list[Body]:
    """With watched namespaces: a Role in each, and a ClusterRole for cluster-scoped resources."""
    if not settings.watch_namespaces:
        return [role]
    namespaced, cluster_wide = _split(role["rules"])
    roles = [
        {**role, "kind": "Role", "metadata": {**role["metadata"], "namespace": namespace}, "rules": namespaced}
        for namespace in settings.watch_namespaces
    ]
    return [*roles, {**role, "rules": cluster_wide}]


def _narrowed_binding(binding: Body, settings: OperatorSettings) -> list[Body]:
    bindings = [
        {
            **binding,
            "kind": "RoleBinding",
            "metadata": {**binding["metadata"], "namespace": namespace},
            "roleRef": {**binding["roleRef"], "kind": "Role"},
        }
        for namespace in settings.watch_namespaces
    ]
    return [*bindings, binding]


def _split(rules: list[Body]) -> tuple[list[Body], list[Body]]:
    """The rules for namespaced resources, and those for cluster-scoped ones."""
    namespaced: list[Body] = []
    cluster_wide: list[Body] = []
    for rule in rules:
        for part, chosen in ((namespaced, False), (cluster_wide, True)):
            resources = [each for each in rule["resources"] if (each in CLUSTER_SCOPED_RESOURCES) == chosen]
            if resources:
                part.append({**rule, "resources": resources})
    return namespaced, cluster_wide


def _adapt_deployment(deployment: Body, settings: OperatorSettings) -> None:
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    container = next(container for container in pod["containers"] if container["name"] == NAME)
    spec["replicas"] = settings.replicas
    if settings.replicas > 1:
        pod["topologySpreadConstraints"] = [_over_nodes(spec["selector"])]
    container["args"] = _arguments(container.get("args", []), settings)
    # Trees before 1.6 do not meet the level `restricted` of the namespace.
    container.setdefault("securityContext", {}).setdefault("capabilities", {"drop": ["ALL"]})
    if settings.image:
        container["image"] = settings.image
    if settings.resources:
        amounts = settings.resources.model_dump()
        container["resources"] = {"requests": amounts, "limits": dict(amounts)}
    if settings.env:
        kept = [variable for variable in container.get("env", []) if variable["name"] not in settings.env]
        container["env"] = [*kept, *({"name": name, "value": value} for name, value in settings.env.items())]
    if settings.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.node_selector:
        pod["nodeSelector"] = dict(settings.node_selector)
    if settings.tolerations:
        pod["tolerations"] = [each.model_dump(by_alias=True, exclude_none=True) for each in settings.tolerations]


def _over_nodes(selector: Body) -> Body:
    return {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        # Without another node two replicas on one node are better than one.
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector,
    }


def arguments(args: Iterable[str]) -> dict[str, str]:
    """The operator's arguments by their flags. The value of a flag without one is empty."""
    return dict(argument.removeprefix("--").partition("=")[::2] for argument in args)


def feature_gates(given: Mapping[str, str]) -> dict[str, bool]:
    gates = (gate.partition("=")[::2] for gate in given.get("feature-gates", "").split(",") if gate)
    return {gate: enabled.lower() == "true" for gate, enabled in gates}


def _arguments(args: Iterable[str], settings: OperatorSettings) -> list[str]:
    """The tree's arguments and those of the settings. The flags are those of KubeRay's ray-operator/main.go."""
    given = arguments(args)
    if gates := {**feature_gates(given), **settings.feature_gates}:
        given["feature-gates"] = ",".join(f"{gate}={str(enabled).lower()}" for gate, enabled in gates.items())
    if settings.replicas > 1:
        given["enable-leader-election"] = "true"
    if settings.watch_namespaces:
        given["watch-namespace"] = ",".join(settings.watch_namespaces)
    if settings.batch_scheduler:
        given["batch-scheduler"] = settings.batch_scheduler
    if settings.metrics:
        given["enable-metrics"] = "true"
    if settings.log_format != "json":
        given["log-stdout-encoder"] = settings.log_format
    return [f"--{flag}={value}" if value else f"--{flag}" for flag, value in given.items()]


def _containers(deployment: Body) -> list[Body]:
    containers: list[Body] = deployment["spec"]["template"]["spec"]["containers"]
    return containers
