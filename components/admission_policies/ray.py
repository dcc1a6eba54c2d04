"""The rules about RayClusters, wherever they stand, in CEL (policies/rules/ray.py, ray_scaling.py, tolerance.py)."""

from .cel import quantity
from .rule import Options, of_ray
from .subjects import SCALES

HEAD = "ray.?headGroupSpec"
HEAD_RAY = f"{HEAD}.?template.?spec.?containers[?0]"
GROUPS = "ray.?workerGroupSpecs.orValue([])"

_RELEASE = "[0-9]+[.][0-9]+[.][0-9]+"
_ALONE = f"{GROUPS}.size() == 0"
"""Whether the head is all that a cluster has, and does the work."""

_OUTSIDE = "['NodePort', 'LoadBalancer']"
_TOLERANT = "ray.?gcsFaultToleranceOptions"


def _no_gpus(container: str) -> str:
    amount = quantity("limits[r]")
    return (
        f"[{container}.?resources.?limits.orValue({{}})]"
        f".all(limits, limits.all(r, !r.endsWith('/gpu') || {amount}.compareTo(quantity('0')) == 0))"
    )


def _tagged(container: str) -> str:
    """The release that an image's tag begins with, or nothing."""
    tag = f"{container}.?image.orValue('').split('@')[0].find('[^/]*$').find(':.*')"
    return f"{tag}.find('^:{_RELEASE}').find('{_RELEASE}')"


def _minimal_version(options: Options) -> str:
    major, minor, patch = options["version"].split(".")
    newer = f"v[0] > {major} || v[0] == {major} && (v[1] > {minor} || v[1] == {minor} && v[2] >= {patch})"
    return (
        f"[ray.?rayVersion.orValue('') != '' ? ray.rayVersion.find('^{_RELEASE}') : {_tagged(HEAD_RAY)}]"
        ".all(release, release != '' && "
        f"[release.split('.').map(number, int(number))].all(v, {newer}))"
    )


def _idle_timeout(options: Options) -> str:
    most = options["seconds"]
    return (
        f"!({SCALES}) || ray.?autoscalerOptions.?idleTimeoutSeconds.orValue(0) <= {most}"
        f" && {GROUPS}.all(group, group.?idleTimeoutSeconds.orValue(0) <= {most})"
    )


def _most_workers(options: Options) -> str:
    hosts = "(group.?numOfHosts.orValue(0) == 0 ? 1 : group.numOfHosts)"
    return f"{GROUPS}.all(group, group.?maxReplicas.orValue(0) * {hosts} <= {options['replicas']})"


RULES = (
    of_ray(
        "ray-auth-token",
        f"ray.?authOptions.?mode.orValue('') == 'token' || {HEAD_RAY}.?env.orValue([])"
        ".exists(e, e.name == 'RAY_AUTH_MODE' && e.?value.orValue('') == 'token')",
    ),
    of_ray("ray-min-version", _minimal_version),
    of_ray(
        "ray-image-version",
        "ray.?rayVersion.orValue('') == '' || variables.rayPods.all(pod,"
        f" [{_tagged('pod.spec.?containers[?0]')}].all(tag, tag == '' || tag == ray.rayVersion))",
    ),
    of_ray(
        "ray-no-public-dashboard",
        f"!({HEAD}.?serviceType.orValue('') in {_OUTSIDE})"
        f" && !({HEAD}.?headService.?spec.?type.orValue('') in {_OUTSIDE})"
        f" && {HEAD}.?enableIngress.orValue(false) != true",
    ),
    of_ray(
        "ray-head-zero-cpu",
        f"{_ALONE} || [string({HEAD}.?resources[?'CPU'].or({HEAD}.?rayStartParams[?'num-cpus']).orValue('not said'))]"
        ".all(said, isQuantity(said) && quantity(said).compareTo(quantity('0')) == 0)",
    ),
    of_ray("ray-head-zero-gpu", f"{_ALONE} || {_no_gpus(HEAD_RAY)}"),
    of_ray(
        "ray-worker-no-sa-token",
        "ray.?authOptions.?enableK8sTokenAuth.orValue(false) == true || "
        f"{GROUPS}.all(group, group.?template.?spec.?automountServiceAccountToken.orValue(true) == false)",
    ),
    of_ray(
        "ray-gpu-node-affinity",
        f"{GROUPS}.all(group, group.?template.?spec.?nodeSelector.hasValue()"
        " || group.?template.?spec.?affinity.?nodeAffinity.hasValue()"
        f" || {_no_gpus('group.?template.?spec.?containers[?0]')})",
    ),
    of_ray(
        "ray-head-memory",
        lambda options: (
            f"!{HEAD_RAY}.?resources.?limits[?'memory'].hasValue() || "
            f"!{quantity(f'{HEAD_RAY}.resources.limits.memory.value()')}"
            f".isLessThan(quantity('{options['gibibytes']}Gi'))"
        ),
    ),
    of_ray(
        "pod-memory-limit",
        "variables.rayPods.all(pod, pod.spec.?containers.orValue([]).all(c,"
        " c.?resources.?limits[?'memory'].hasValue() && (!c.?resources.?requests[?'memory'].hasValue()"
        f" || {quantity('c.resources.requests.memory')}.compareTo({quantity('c.resources.limits.memory')}) == 0)))",
    ),
    of_ray("ray-autoscaler-v2", f"!({SCALES}) || ray.?autoscalerOptions.?version.orValue('') == 'v2'"),
    of_ray("ray-idle-timeout-bounded", _idle_timeout),
    of_ray("ray-most-workers", _most_workers),
    of_ray(
        "redis-auth-secretref",
        f"!{_TOLERANT}.hasValue() || !{_TOLERANT}.?redisPassword.?value.hasValue()"
        f" && {_TOLERANT}.?redisPassword.?valueFrom.?secretKeyRef.hasValue()"
        f" && !{HEAD}.?rayStartParams[?'redis-password'].hasValue()",
    ),
)
