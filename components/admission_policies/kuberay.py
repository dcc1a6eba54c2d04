"""What KubeRay refuses with an event only, in CEL: here the author is told (policies/rules/ray_spec.py)."""

from core.pod_templates import RAY

from .ray import GROUPS, HEAD, HEAD_RAY
from .rule import AdmissionRule, Options, of_ray
from .subjects import SCALES

_ALL_GROUPS = f"([?{HEAD}] + {GROUPS})"
_OFFERED = "['num-cpus', 'num-gpus', 'memory', 'resources']"
_TOLERANT = "ray.?gcsFaultToleranceOptions.hasValue()"
_ANNOTATIONS = "object.metadata.?annotations"
_NO_FT = f"{_ANNOTATIONS}[?'ray.io/ft-enabled'].orValue('') != 'true'"

_NAMED = tuple((RAY, kind) for kind in ("RayCluster", "RayJob", "RayService"))


def _name(options: Options) -> str:
    longest = f"(request.kind.kind == 'RayCluster' ? {options['cluster']} : {options['others']})"
    return f"object.metadata.name.size() <= {longest} && object.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"


def _no_variable(name: str, when: str) -> str:
    return f"(!({when}) || !{HEAD_RAY}.?env.orValue([]).exists(e, e.name == '{name}'))"


def _no_parameter(name: str, when: str = "true") -> str:
    return f"(!({when}) || !{HEAD}.?rayStartParams[?'{name}'].hasValue())"


RULES: tuple[AdmissionRule, ...] = (
    of_ray(
        "ray-restart-never",
        f"!({SCALES} && ray.?autoscalerOptions.?version.orValue('') == 'v2') || "
        "variables.rayPods.all(pod, pod.spec.?restartPolicy.orValue('Never') == 'Never')",
    ),
    of_ray(
        "ray-start-params",
        f"{_ALL_GROUPS}.all(group, !group.?rayStartParams[?'labels'].hasValue() && (!group.?resources.hasValue()"
        f" || {_OFFERED}.all(key, !group.?rayStartParams[?key].hasValue())))",
    ),
    of_ray("ray-name-length", _name, _NAMED),
    of_ray(
        "ray-group-names",
        f"{GROUPS}.all(group, has(group.groupName) && "
        "ray.workerGroupSpecs.exists_one(other, other.?groupName.orValue('') == group.groupName))",
    ),
    of_ray(
        "ray-replica-bounds",
        f"{GROUPS}.all(group, has(group.maxReplicas) ? group.?minReplicas.orValue(0) <= group.maxReplicas"
        f" && group.?replicas.orValue(0) <= group.maxReplicas : !({SCALES}))",
    ),
    of_ray("ray-containers", "variables.rayPods.all(pod, pod.spec.?containers.orValue([]).size() > 0)"),
    of_ray(
        "ray-no-env-conflict",
        " && ".join(
            [
                _no_variable("REDIS_USERNAME", "true"),
                _no_variable("REDIS_PASSWORD", _TOLERANT),
                _no_variable("RAY_REDIS_ADDRESS", f"{_TOLERANT} || {_NO_FT}"),
                _no_variable("RAY_enable_autoscaler_v2", f"ray.?autoscalerOptions.?version.hasValue() || !({SCALES})"),
                _no_parameter("redis-username"),
                _no_parameter("redis-password", _TOLERANT),
                *(
                    f"(!{_TOLERANT} || !{_ANNOTATIONS}[?'ray.io/{key}'].hasValue())"
                    for key in ("ft-enabled", "external-storage-namespace")
                ),
            ]
        ),
    ),
    of_ray(
        "ray-k8s-token-auth",
        "ray.?authOptions.?enableK8sTokenAuth.orValue(false) != true || request.kind.kind == 'RayCluster'"
        " && ray.authOptions.?mode.orValue('') == 'token' && ray.authOptions.?secretName.orValue('') == ''",
    ),
)
