"""Values of KubeRay's Helm chart ray-cluster, as the RayCluster that the chart renders of them.

Source of the defaults and the keys: kuberay helm-chart/ray-cluster, values.yaml and
templates/raycluster-cluster.yaml, of each release since 1.1.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from core.problems import Path
from core.strategic_merge import part_of
from core.versions import version_tuple
from kuberay import OperatorContext
from stacks.launcher_files.reader import RELEASE, Answers, Document, Note, RefusedError, parsed

CHART = "ray-cluster"

_NAME = "kuberay"
"""The chart's nameOverride, which ends the names of its releases."""

_CONTAINER = ("command", "args", "envFrom", "volumeMounts", "ports", "resources", "lifecycle", "securityContext")
"""Values of a group that are fields of Ray's container."""

_POD = (
    *("initContainers", "volumes", "dnsConfig", "nodeSelector", "affinity", "tolerations", "priorityClassName"),
    *("priority", "topologySpreadConstraints", "restartPolicy", "runtimeClassName", "serviceAccountName"),
    "resourceClaims",
)
"""Values of a group that are fields of its pods; `podSecurityContext` is another."""

_SINCE = {
    "restartPolicy": "1.2",
    "podSecurityContext": "1.2",
    "priorityClassName": "1.2",
    "priority": "1.2",
    "dnsConfig": "1.3",
    "topologySpreadConstraints": "1.3",
    "gcsFaultTolerance": "1.5",
    "runtimeClassName": "1.6",
    "resourceClaims": "1.6",
}
"""The chart's first release with a value; without an entry the first one that is known here."""

_OF_A_GROUP = {
    *_CONTAINER,
    *_POD,
    *(
        "podSecurityContext",
        "image",
        "containerEnv",
        "sidecarContainers",
        "labels",
        "annotations",
        "rayStartParams",
        "initArgs",
    ),
}
_OF_A_HEAD = {*_OF_A_GROUP, "rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "headService"}
_OF_WORKERS = {*_OF_A_GROUP, "disabled", "groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts"}
_OF_THE_CHART = {
    *("image", "nameOverride", "fullnameOverride", "imagePullSecrets", "gcsFaultTolerance", "common", "head", "worker"),
    *("additionalWorkerGroups", "service", "annotations"),
}

_UNBOUNDED = 2147483647
"""The chart's maxReplicas of a group without one."""


def _has_head(document: Any) -> bool:
    """Whether a document is values of the chart, by what they have for the head."""
    if not isinstance(document, Mapping) or "kind" in document:
        return False
    head = document.get("head")
    return isinstance(head, Mapping) and (len(_OF_THE_CHART & set(document)) > 1 or bool(_OF_A_HEAD & set(head)))


@dataclass(frozen=True)
class Release:
    """A release of Helm. Fields: `values`; `path`: where its document has them; `name` and `namespace` of the release;
    `chart`: the chart's version, as a release of KubeRay."""

    values: Mapping[str, Any]
    path: Path
    chart: str
    name: str | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class Rendered(Document):
    """A document with a release of the chart. Its value is the RayCluster that the chart renders."""

    release: Release = field(kw_only=True)

    @property
    def value(self) -> Any:
        return _ray_cluster(self.release)

    def origin(self, path: Path) -> Path:
        return (*self.release.path, *_origin(path, self.release))

    @property
    def notes(self) -> list[Note]:
        return list(_notes(self.release))


def rendered(document: Document, answers: Answers) -> Document:
    """The document, or if it has values of the chart what the chart renders of them."""
    release = _release(document.value, answers)
    return Rendered(document.yaml, document.first_line, release=release) if release else document


def _release(body: Any, answers: Answers) -> Release | None:
    """The release that a document is for: values of the chart or of one that depends on it, an Application of Argo CD,
    or a HelmRelease of Flux."""
    if not isinstance(body, Mapping) or "available_node_types" in body:  # of a launcher file, one may be named head
        return None
    chart = answers.chart_version or answers.operator_version or OperatorContext().version
    if _has_head(body) or (body and set(body) <= _OF_THE_CHART):
        return Release(body, (), chart)
    below = [key for key, value in body.items() if "kind" not in body and _has_head(value)]
    if len(below) == 1:
        return Release(body[below[0]], (below[0],), chart)
    found = {"Application": _application, "HelmRelease": _helm_release}.get(str(body.get("kind")), lambda _: None)(body)
    if found is None:
        return None
    version = str(found.chart).removeprefix("v")
    exact = version if RELEASE.fullmatch(version) else chart
    name = found.name or part_of(body, "metadata", "name")
    return replace(found, chart=answers.chart_version or exact, name=name)


def _application(body: Mapping[str, Any]) -> Release | None:
    """Of Argo CD (argoproj.github.io, Helm): values as text or as an object, and single parameters."""
    several = part_of(body, "spec", "sources")
    count = len(several) if isinstance(several, list) else 0
    sources: list[Path] = [("spec", "source"), *(("spec", "sources", at) for at in range(count))]
    source = next((each for each in sources if part_of(body, *each, "chart") == CHART), None)
    if source is None:
        return None
    text = part_of(body, *source, "helm", "values")
    path = (*source, "helm", "values" if text else "valuesObject")
    values = _mapping(_parsed(text, path) if text else part_of(body, *path))
    parameters = part_of(body, *source, "helm", "parameters")
    for at, each in enumerate(parameters if isinstance(parameters, list) else ()):
        *steps, last = str(part_of(each, "name")).split(".")
        place = (*source, "helm", "parameters", at, "value")
        given: dict[str, Any] = {last: _parsed(part_of(body, *place), place)}
        for step in reversed(steps):
            given = {step: given}
        values = _merged(values, given)
    return Release(
        values,
        path,
        str(part_of(body, *source, "targetRevision")),
        part_of(body, *source, "helm", "releaseName"),
        part_of(body, "spec", "destination", "namespace"),
    )


def _helm_release(body: Mapping[str, Any]) -> Release | None:
    """Of Flux (fluxcd.io, HelmReleases)."""
    if part_of(body, "spec", "chart", "spec", "chart") != CHART:
        return None
    return Release(
        _mapping(part_of(body, "spec", "values")),
        ("spec", "values"),
        str(part_of(body, "spec", "chart", "spec", "version")),
        part_of(body, "spec", "releaseName"),
        part_of(body, "spec", "targetNamespace") or part_of(body, "metadata", "namespace"),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _parsed(text: Any, path: Path) -> Any:
    found = parsed(str(text), path)
    return found.value if found else {}


def _defaults(chart: str) -> dict[str, Any]:
    """What the chart's values.yaml sets, apart from what is empty there."""
    release = version_tuple(chart)
    tags = {
        (1, 6): "2.52.0",
        (1, 4): "2.46.0",
        (1, 3): "2.41.0",
        (1, 2, 2): "2.9.0",
        (1, 2): "2.34.0",
        (0,): "2.9.0",
    }
    newest = release >= (1, 6)
    group = {
        "volumes": [{"name": "log-volume", "emptyDir": {}}],
        "volumeMounts": [{"mountPath": "/tmp/ray", "name": "log-volume"}],  # noqa: S108 - the chart's
    }
    head, worker = ({"cpu": "1", "memory": memory} for memory in (("5Gi", "1Gi") if newest else ("2G", "1G")))
    return {
        "image": {
            "repository": "rayproject/ray",
            "tag": next(tag for first, tag in tags.items() if release >= first),
            "pullPolicy": "IfNotPresent",
        },
        "nameOverride": _NAME,
        "head": {
            **deepcopy(group),
            "resources": {"limits": head, "requests": dict(head)},
            "rayStartParams": {} if release >= (1, 3) else {"dashboard-host": "0.0.0.0"},  # noqa: S104 - the chart's
        },
        "worker": {
            **deepcopy(group),
            "groupName": "workergroup",
            "replicas": 1,
            "minReplicas": 1,
            "maxReplicas": 5 if newest else 3,
            "resources": {"limits": worker, "requests": dict(worker)},
        },
        "additionalWorkerGroups": {
            "smallGroup": {
                **deepcopy(group),
                "disabled": True,
                "replicas": 0,
                "minReplicas": 0,
                "maxReplicas": 5 if newest else 3,
                "resources": {"limits": {**worker, "cpu": 1}, "requests": {**worker, "cpu": 1}},
            }
        },
        "service": {"type": "ClusterIP"},
    }


def _merged(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """As Helm merges: mappings key by key, and null removes a default."""
    found = dict(defaults)
    for key, value in values.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(found.get(key), Mapping):
            found[key] = _merged(found[key], value)
        else:
            found[key] = value
    return found


def _supported(values: Mapping[str, Any], chart: str) -> dict[str, Any]:
    """Those that the chart had in this release."""
    release = version_tuple(chart)
    return {key: each for key, each in values.items() if release >= version_tuple(_SINCE.get(key, "0"))}


def _groups(values: Mapping[str, Any], chart: str) -> list[tuple[Path, Mapping[str, Any]]]:
    """The groups of workers that the chart renders, in its order, each with the path of its values."""
    groups = values.get("additionalWorkerGroups") or {}
    additional: list[tuple[Path, Any]] = [(("additionalWorkerGroups", name), groups[name]) for name in sorted(groups)]
    worker: tuple[Path, Any] = (("worker",), values.get("worker") or {})
    every = [worker, *additional] if version_tuple(chart) >= (1, 4) else [*additional, worker]
    return [(path, group or {}) for path, group in every if not (group or {}).get("disabled")]


def _ray_cluster(release: Release) -> dict[str, Any]:
    """Raises RefusedError if the chart would render no RayCluster of the values."""
    for path, kind in _kinds(release.values):
        found = part_of(release.values, *path)
        # The chart reads into these, and leaves the others out if they are empty.
        read = path[-1] not in _OF_A_GROUP and path[-1] != "containerEnv"
        if found is not None and (found or read) and not isinstance(found, kind):
            allowed = "a mapping" if kind is Mapping else "a list"
            raise RefusedError(Note(path, f"{found!r} is not {allowed}", "correct it"))
    for path, group in ((("head",), release.values.get("head") or {}), *_groups(release.values, release.chart)):
        if (image := group.get("image")) and (missing := {"repository", "tag"} - set(image)):
            without = " and no ".join(sorted(missing))
            raise RefusedError(
                Note((*path, "image"), f"it has no {without}, and the chart takes none from `image`", "set both")
            )
    if "head" in release.values and release.values["head"] is None:
        raise RefusedError(Note(("head",), "the chart renders nothing without a head", "remove the null"))
    values = _supported(_merged(_defaults(release.chart), release.values), release.chart)
    head = _supported(values["head"], release.chart)
    service = {"serviceType": (values.get("service") or {}).get("type"), "headService": head.get("headService")}
    spec = {
        **{key: head.get(key) for key in ("rayVersion", "enableInTreeAutoscaling", "autoscalerOptions")},
        "gcsFaultToleranceOptions": _fault_tolerance(values),
        "headGroupSpec": {**_filled(service), **_group(head, values, "ray-head")},
    }
    groups = [
        _workers(path, _supported(group, release.chart), values, release.chart)
        for path, group in _groups(values, release.chart)
    ]
    metadata = {
        "name": _name(release, values),
        "namespace": release.namespace,
        "annotations": values.get("annotations"),
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": _filled(metadata),
        "spec": {**_filled(spec), "workerGroupSpecs": groups},
    }


def _kinds(values: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The values that this module reads into, with their types."""
    for key in ("image", "gcsFaultTolerance", "common", "head", "worker", "additionalWorkerGroups", "service"):
        yield (key,), Mapping
    yield ("common", "containerEnv"), list
    additional = values.get("additionalWorkerGroups")
    names = list(additional) if isinstance(additional, Mapping) else []
    for path in (("head",), ("worker",), *(("additionalWorkerGroups", name) for name in names)):
        yield path, Mapping
        for key in ("image", "rayStartParams", "initArgs", "labels", "annotations"):
            yield (*path, key), Mapping
        for key in ("containerEnv", "sidecarContainers"):
            yield (*path, key), list


def _name(release: Release, values: Mapping[str, Any]) -> str:
    """As the template ray-cluster.fullname; KubeRay's guides call the release `raycluster`."""
    name, own = str(release.name or "raycluster"), str(values.get("nameOverride") or CHART)
    whole = values.get("fullnameOverride") or (name if own in name else f"{name}-{own}")
    return str(whole)[:63].removesuffix("-")


def _fault_tolerance(values: Mapping[str, Any]) -> dict[str, Any] | None:
    found = values.get("gcsFaultTolerance") or {}
    if not found.get("enabled"):
        return None
    keys = ("redisAddress", "externalStorageNamespace", "redisPassword", "redisUsername")
    return _filled({key: found.get(key) for key in keys})


def _workers(path: Path, group: Mapping[str, Any], values: Mapping[str, Any], chart: str) -> dict[str, Any]:
    if path != ("worker",) and not group.get("resources") and version_tuple(chart) >= (1, 6):
        small = {"cpu": "1", "memory": "1Gi"}
        group = {**group, "resources": {"limits": small, "requests": dict(small)}}
    replicas = group.get("replicas")
    return {
        "groupName": group.get("groupName") if path == ("worker",) else path[-1],
        **({} if replicas is None else {"replicas": replicas}),
        "minReplicas": group.get("minReplicas") or 0,
        "maxReplicas": group.get("maxReplicas") or _UNBOUNDED,
        "numOfHosts": group.get("numOfHosts") or 1,
        **_group(group, values, "ray-worker"),
    }


def _group(group: Mapping[str, Any], values: Mapping[str, Any], container: str) -> dict[str, Any]:
    image = group.get("image") or values.get("image") or {}
    parameters = {**(group.get("rayStartParams") or {}), **(group.get("initArgs") or {})}
    ray = {
        "name": container,
        "image": f"{image.get('repository') or ''}:{image.get('tag') or ''}",
        "imagePullPolicy": image.get("pullPolicy"),
        "env": [*((values.get("common") or {}).get("containerEnv") or []), *(group.get("containerEnv") or [])],
        **{field: group.get(field) for field in _CONTAINER},
    }
    pod = {
        "containers": [_filled(ray), *(group.get("sidecarContainers") or [])],
        "imagePullSecrets": values.get("imagePullSecrets"),
        **{field: group.get(field) for field in _POD},
        "securityContext": group.get("podSecurityContext"),
    }
    metadata = _filled({key: group.get(key) for key in ("labels", "annotations")})
    return {
        "rayStartParams": {key: _quoted(value) for key, value in parameters.items() if value is not None},
        "template": _filled({"metadata": metadata, "spec": _filled(pod)}),
    }


def _quoted(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _filled(body: Mapping[str, Any]) -> dict[str, Any]:
    """What the chart writes: nothing for an empty value."""
    return {key: value for key, value in body.items() if value}


def _origin(path: Path, release: Release) -> Path:
    """The place among the values from which a part of the RayCluster comes."""
    values = release.values
    match path:
        case ("spec",):
            return ()
        case ("metadata", "name"):
            return ("fullnameOverride",)
        case ("metadata", *rest):
            return tuple(rest)
        case ("spec", "gcsFaultToleranceOptions", *rest):
            return ("gcsFaultTolerance", *rest)
        case ("spec", "headGroupSpec", "serviceType"):
            return ("service", "type")
        case ("spec", "headGroupSpec", *rest):
            return _origin_in_group(("head",), tuple(rest), values)
        case ("spec", "workerGroupSpecs", int(at), *rest):
            groups = _groups(values, release.chart)
            group = groups[at][0] if at < len(groups) else ("worker",)
            return _origin_in_group(group, tuple(rest), values)
        case ("spec", str(key), *rest):
            return ("head", key, *rest)
    return path


def _origin_in_group(group: Path, path: Path, values: Mapping[str, Any]) -> Path:
    match path:
        case ("groupName",) if group != ("worker",):
            return group
        case ("template", "metadata", *rest):
            return (*group, *rest)
        case ("template", "spec", "imagePullSecrets", *rest):
            return ("imagePullSecrets", *rest)
        case ("template", "spec", "containers", 0, "image" | "imagePullPolicy"):
            return (*group, "image") if part_of(values, *group, "image") else ("image",)
        case ("template", "spec", "containers", 0, "env", int(at), *rest):
            common = len(part_of(values, "common", "containerEnv") or ())
            return (
                ("common", "containerEnv", at, *rest) if at < common else (*group, "containerEnv", at - common, *rest)
            )
        case ("template", "spec", "containers", 0, *rest):
            return (*group, *rest)
        case ("template", "spec", "containers", int(at), *rest):
            return (*group, "sidecarContainers", at - 1, *rest)
        case ("template", "spec", "securityContext", *rest):
            return (*group, "podSecurityContext", *rest)
        case ("template", "spec", *rest):
            return (*group, *rest)
    return (*group, *path)


def _notes(release: Release) -> Iterator[Note]:
    values = release.values
    what = f"these are values of KubeRay's Helm chart {CHART}; what they do not set is its default of {release.chart}"
    yield Note((), what, "--chart-version sets another")
    if not release.name and not values.get("fullnameOverride"):
        name = _name(release, _merged(_defaults(release.chart), values))
        yield Note((), f"the RayCluster is named {name}, as by `helm install raycluster`", "--name sets another")
    yield from _unknown((), values, _OF_THE_CHART, release.chart)
    yield from _unknown(("head",), values.get("head") or {}, _OF_A_HEAD, release.chart)
    for path, group in _groups(values, release.chart):
        known = _OF_WORKERS if path == ("worker",) else _OF_WORKERS - {"groupName"}
        yield from _unknown(path, group, known, release.chart)


def _unknown(path: Path, values: Mapping[str, Any], known: set[str], chart: str) -> Iterator[Note]:
    for key, value in values.items():
        first = _SINCE.get(key) if key in known else None
        if key not in known and value not in (None, "", {}, []):
            yield Note((*path, key), "the chart has no such value, and ignores it", "remove it")
        elif first and version_tuple(chart) < version_tuple(first):
            yield Note((*path, key), f"the chart has it from {first} on, and {chart} ignores it", "remove it")
