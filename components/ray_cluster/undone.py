"""Settings that environment variables, pod templates or overrides would undo. Pure functions."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.ray_cluster.settings import RayClusterSettings
from core.problems import Path, Problem
from core.versions import image_version

Body = Mapping[str, Any]

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
    "RAY_ADDRESS": "Ray's processes in the pod would connect to that cluster",
    "RAY_PORT": "Ray's processes in the pod would look for the head at another port",
    "CUDA_VISIBLE_DEVICES": "Ray sets it for each task, and would hide GPUs that it offers",
    "NVIDIA_VISIBLE_DEVICES": "it decides which GPUs of the node the container sees, also without a limit on them",
}
"""Variables that have an effect, and what it undoes."""

_HARMLESS = {"NVIDIA_VISIBLE_DEVICES": ("void", "none", ""), "CUDA_VISIBLE_DEVICES": ("",)}
"""Values that only hide GPUs."""

_MODE = "RAY_AUTH_MODE"


def undone(settings: RayClusterSettings, body: Body) -> Iterator[Problem]:
    """Variables and images of a rendered RayCluster that contradict its settings; paths in its body."""
    spec = body["spec"]
    groups: list[tuple[Path, Body]] = [(("spec", "headGroupSpec"), spec["headGroupSpec"])]
    groups += [(("spec", "workerGroupSpecs", at), each) for at, each in enumerate(spec.get("workerGroupSpecs") or ())]
    for path, group in groups:
        ray, at = group["template"]["spec"]["containers"][0], (*path, "template", "spec", "containers", 0)
        for index, variable in enumerate(ray.get("env") or ()):
            if message := _variable(spec, variable):
                yield Problem((*at, "env", index, "name"), variable["name"], message, "env-undoes")
        yield from _image(settings, ray, at)
    if options := spec.get("autoscalerOptions"):
        yield from _image(settings, options, ("spec", "autoscalerOptions"))


def _variable(spec: Body, variable: Body) -> str | None:
    name, value = variable["name"], variable.get("value", "")
    if name in _OVERWRITTEN:
        return f"KubeRay sets {name} itself, and its value applies: remove it"
    if name == _MODE and (mode := (spec.get("authOptions") or {}).get("mode")) not in (None, value):
        return f"{_MODE} {value!r} would undo authOptions, whose mode is {mode}: remove it, or change authOptions.mode"
    if name in _UNDOING and ("valueFrom" in variable or value not in _HARMLESS.get(name, ())):
        return f"{_UNDOING[name]}: remove it"
    return None


def _image(settings: RayClusterSettings, container: Body, path: Path) -> Iterator[Problem]:
    image = container.get("image") or ""
    tagged = image_version(image)
    if settings.verify_image_tag and tagged not in (None, settings.ray_version):
        message = (
            f"rayVersion is {settings.ray_version!r} and image {image!r} has Ray {tagged}: use the image of "
            f"{settings.ray_version}, or set verifyImageTag to false if it does have that Ray"
        )
        yield Problem((*path, "image"), image, message, "image-version")
