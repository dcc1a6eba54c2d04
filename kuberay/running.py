"""Why Ray would not run in the pods of a RayCluster that the API server and KubeRay accept, or undo what its spec says.
Pure functions."""

import re
from collections.abc import Iterator

from core.body import ReadOnlyBody
from core.problems import Path, Problem, shown
from core.types import IMAGE
from kuberay.rules import HEAD_GROUP, groups_of

HEAD_CONTAINER, WORKER_CONTAINER = "ray-head", "ray-worker"
"""Names of Ray's container in the samples and charts of KubeRay, and in the pods of a stack."""

LOGS, SHARED_MEMORY = "ray-logs", "shared-mem"
"""Volumes that KubeRay adds unless they exist, the first to a head with an autoscaler, the second to all of Ray's pods
(ray-operator/controllers/ray/common/pod.go: addEmptyDir)."""

PYTHON = "/home/ray/anaconda3"
"""Python with Ray in Ray's own images."""

PROGRAMS = ("/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr", "/usr/bin", "/usr/lib")
"""Folders of the image without which no program starts."""

_OVERWRITTEN = (
    "FQ_RAY_IP",
    "KUBERAY_GEN_RAY_START_CMD",
    "RAY_CLOUD_INSTANCE_ID",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_IP",
    "RAY_NODE_TYPE_NAME",
    "RAY_USAGE_STATS_EXTRA_TAGS",
)
"""Variables that KubeRay appends after those of the template, so that its own apply
(ray-operator/controllers/ray/common/pod.go: setContainerEnvVars)."""

_UNDOING = {
    "RAY_ADDRESS": "would connect Ray's processes in the pod to that cluster",
    "RAY_PORT": "would let Ray's processes in the pod look for the head at another port",
    "CUDA_VISIBLE_DEVICES": "would hide GPUs that Ray offers, and Ray sets it for each task",
    "NVIDIA_VISIBLE_DEVICES": "decides which GPUs of the node the container sees, also without a limit on them",
}
"""Variables that have an effect, and what it undoes."""

_HARMLESS = {"NVIDIA_VISIBLE_DEVICES": ("void", "none", ""), "CUDA_VISIBLE_DEVICES": ("",)}
"""Values that only hide GPUs."""

_SEARCHED = "PATH"
"""The variable with the folders of programs. Kubernetes replaces that of the image, and expands no `$(PATH)`."""

_LABELS = ("ray.io/cluster", "ray.io/group", "ray.io/node-type")
"""Labels of pods that KubeRay sets after those of the template (ray-operator/controllers/ray/common/pod.go:
labelPod)."""

_MODE = "RAY_AUTH_MODE"

OWN_COMMAND = "ray.io/overwrite-container-cmd"
"""Annotation of a RayCluster whose containers start Ray themselves (ray-operator/controllers/ray/common/pod.go)."""


def problems_of_running(
    spec: ReadOnlyBody, metadata: ReadOnlyBody | None = None, at: Path = ("spec",)
) -> Iterator[Problem]:
    """The problems of the groups of a spec at `at`. `metadata`: of the RayCluster, if it is one."""
    for path, group in groups_of(spec, at):
        ray, inside = group["template"]["spec"]["containers"][0], (*path, "template", "spec", "containers", 0)
        for index, variable in enumerate(ray.get("env") or ()):
            if message := _undoing(spec, variable) or _without_programs(ray, variable):
                yield Problem((*inside, "env", index, "name"), variable["name"], message, "env-undoes")
        yield from _not_first(group, path)
        yield from _not_pulled(group, path)
        yield from _not_started(metadata or {}, group, path)
        yield from _labelled(metadata or {}, group, path)
        yield from _numbered(group, path)
        yield from _hidden(ray, inside)
    yield from _two_pythons(spec, at)


def variable_of(path: Path, group: ReadOnlyBody, name: str) -> tuple[Path, str] | None:
    """The path of an environment variable in Ray's container of a group, and its value."""
    for index, variable in enumerate(group["template"]["spec"]["containers"][0].get("env") or ()):
        if variable["name"] == name:
            return (*path, "template", "spec", "containers", 0, "env", index), str(variable.get("value", ""))
    return None


def hides(mounted: str, folder: str) -> bool:
    """Whether a volume that is mounted there hides the folder of the image."""
    return f"{folder}/".startswith(f"{mounted.rstrip('/')}/")


_PYTHON_TAG = re.compile(r"-py3(\d+)(?![0-9])")
"""Part of the tags of Ray's images (docs.ray.io, Installing Ray: Docker images)."""


def _two_pythons(spec: ReadOnlyBody, at: Path) -> Iterator[Problem]:
    """Workers of another Python than the head, which Ray refuses (python/ray/_private/utils.py: check_version_info)."""
    head: str | None = None
    for path, group in groups_of(spec, at):
        image = group["template"]["spec"]["containers"][0].get("image") or ""
        found = _PYTHON_TAG.search(image)
        head = head or (found[1] if found and path[-1] == "headGroupSpec" else None)
        if head and found and found[1] != head:
            message = f"has Python 3.{found[1]}, and the head's image 3.{head}: Ray refuses such workers, so use one"
            yield Problem((*path, "template", "spec", "containers", 0, "image"), image, message, "image-version")


def _not_first(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Ray's container behind another one."""
    for index, container in enumerate(group["template"]["spec"]["containers"]):
        name = container.get("name")
        if index and name in (HEAD_CONTAINER, WORKER_CONTAINER):
            message = f"KubeRay starts Ray in the first container of a pod: move {name!r} to the beginning"
            yield Problem((*path, "template", "spec", "containers", index, "name"), name, message, "ray-container")


def _not_pulled(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Images that no kubelet pulls (InvalidImageName)."""
    pod = group["template"]["spec"]
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(kind) or ()):
            image = container.get("image") or ""
            if image.strip() and not re.fullmatch(IMAGE, image.strip()):
                message = (
                    f"{shown(image)} is not an image reference, so that no node pulls it: write for example "
                    "rayproject/ray:2.60.0, a name of small letters with one tag"
                )
                yield Problem((*path, "template", "spec", kind, index, "image"), image, message, "image-reference")


def _not_started(of_cluster: ReadOnlyBody, group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Ray's container whose command KubeRay leaves to the pod template, which has none."""
    ray = group["template"]["spec"]["containers"][0]
    places = {("metadata",): of_cluster, (*path, "template", "metadata"): group["template"].get("metadata") or {}}
    for at, metadata in places.items() if not ray.keys() & {"command", "args"} else ():
        if (metadata.get("annotations") or {}).get(OWN_COMMAND) == "true":
            message = (
                "KubeRay does not start Ray then, and nothing else does: remove it, or give all containers a command"
            )
            yield Problem((*at, "annotations", OWN_COMMAND), "true", message, "own-command")
            return


def _labelled(of_cluster: ReadOnlyBody, group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Labels that the pods would not have."""
    head = path[-1] == "headGroupSpec"
    own = ("head", HEAD_GROUP) if head else ("worker", group.get("groupName"))
    expected = dict(zip(_LABELS, (of_cluster.get("name"), own[1], own[0]), strict=True))
    places = {("template", "metadata", "labels"): group["template"].get("metadata") or {}, ("labels",): group}
    for at, holder in places.items():
        for label, value in (holder.get("labels") or {}).items():
            if label in expected and value != expected[label]:
                message = f"KubeRay sets {label} itself, and its value applies: remove it"
                yield Problem((*path, *at, label), value, message, "reserved-label")


def _without_programs(ray: ReadOnlyBody, variable: ReadOnlyBody) -> str | None:
    folders = str(variable.get("value", "")).split(":")
    if variable["name"] == _SEARCHED and "rayproject/" in str(ray.get("image", "")) and f"{PYTHON}/bin" not in folders:
        return f"{_SEARCHED} replaces the image's, and Ray would not be found: remove it, or include {PYTHON}/bin"
    return None


_ENCRYPTS, _CERTIFICATE = "RAY_USE_TLS", "RAY_TLS_SERVER_CERT"


def without_certificates(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Ray that is told to encrypt, and ends without a certificate (python/ray/_private/tls_utils.py)."""
    found = variable_of(path, group, _ENCRYPTS)
    if found and found[1].lower() in ("1", "true") and not variable_of(path, group, _CERTIFICATE):
        message = (
            f"with {_ENCRYPTS} Ray does not start without {_CERTIFICATE}: remove it, and set tls of the cluster if "
            "that is meant"
        )
        yield Problem((*found[0], "name"), _ENCRYPTS, message, "env-undoes")


def _hidden(ray: ReadOnlyBody, at: Path) -> Iterator[Problem]:
    """Volumes over the folders that Ray's container starts from."""
    for index, mount in enumerate(ray.get("volumeMounts") or ()):
        place = mount.get("mountPath", "").rstrip("/") or "/"
        of_ray = "rayproject/" in str(ray.get("image", "")) and hides(place, PYTHON)
        if (of_ray or place in ("/", "/proc", "/sys", *PROGRAMS)) and "subPath" not in mount:
            message = f"the volume would hide {place} of the image, and Ray would not start: mount it elsewhere"
            yield Problem((*at, "volumeMounts", index, "mountPath"), mount["mountPath"], message, "hidden-folder")


def _numbered(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """A priority without its class (plugin Priority)."""
    number = group["template"]["spec"].get("priority")
    if number is not None:
        message = (
            f"the API server sets priority from the class, and refuses pods with {number}: remove it, set a "
            "priorityClassName"
        )
        yield Problem((*path, "template", "spec", "priority"), number, message, "priority-name")


def _undoing(spec: ReadOnlyBody, variable: ReadOnlyBody) -> str | None:
    name, value = variable["name"], variable.get("value", "")
    if name in _OVERWRITTEN:
        return f"KubeRay sets {name} itself, and its value applies: remove it"
    if name == _MODE and (mode := (spec.get("authOptions") or {}).get("mode")) not in (None, value):
        return f"{_MODE} {value!r} would undo authOptions, whose mode is {mode}: remove it, or change authOptions.mode"
    if name in _UNDOING and ("valueFrom" in variable or value not in _HARMLESS.get(name, ())):
        return f"{name} {_UNDOING[name]}: remove it"
    return None
