"""The rules about pods and their images, in CEL (policies/rules/pods.py, policies/rules/images.py)."""

from core import secrets as plaintext

from .cel import ALWAYS, listed, quantity, text
from .rule import Options, of_containers, of_pods


def _in_force(*steps: str) -> str:
    """What holds for a container: what its security context says, or else its pod's."""
    below = "".join(f".?{step}" for step in ("securityContext", *steps))
    return f"c{below}.or(pod.spec{below})"


def _host_paths(options: Options) -> str:
    allowed = listed(f"{path.rstrip('/')}/" for path in options["allowed"])
    return (
        "pod.spec.?volumes.orValue([]).all(v, v.?hostPath.?path.orValue('') == '' || "
        f"{allowed}.exists(path, (v.hostPath.path + '/').startsWith(path)))"
    )


def _registries(options: Options) -> str:
    if not options["allowed"]:
        return ALWAYS
    beginnings = listed(f"{prefix}{end}" for prefix in options["allowed"] for end in "/:@")
    full = (
        "c.image.matches('^([^/]*[.:][^/]*|localhost)/') ? c.image : "
        "(c.image.contains('/') ? 'docker.io/' : 'docker.io/library/') + c.image"
    )
    return f"!has(c.image) || [{full}].exists(image, {beginnings}.exists(prefix, image.startsWith(prefix)))"


_NAME_AND_TAG = "c.image.split('@')[0].find('[^/]*$')"

_SECRET = (
    f"!e.value.matches({text(f'^(?:{plaintext.PLACEHOLDER.pattern})$')})"
    f" && (e.value.matches({text(plaintext.SECRET_VALUE.pattern)})"
    f" || e.name.matches({text(f'(?i){plaintext.SECRET.pattern}')})"
    f" && !e.name.matches({text(f'(?i){plaintext.ABOUT_A_SECRET.pattern}')})"
    f" && !e.value.matches({text(f'(?i)^(?:{plaintext.HARMLESS.pattern})$')}))"
)

_OWN_CONTAINERS = "(pod.spec.?initContainers.orValue([]) + pod.spec.?containers.orValue([]))"
"""Without the autoscaler's, for which KubeRay says what is missing, and debugging ones, which may ask for nothing."""

RULES = (
    of_containers(
        "pod-nonroot",
        f"{_in_force('runAsUser')}.orValue(1) != 0 && {_in_force('runAsNonRoot')}.orValue(false) == true",
    ),
    of_containers("pod-no-privesc", "c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false"),
    of_containers("pod-drop-all", "'ALL' in c.?securityContext.?capabilities.?drop.orValue([])"),
    of_containers(
        "pod-no-added-capabilities",
        lambda options: (
            f"c.?securityContext.?capabilities.?add.orValue([]).all(added, added in {listed(options['allowed'])})"
        ),
    ),
    of_containers(
        "pod-seccomp", f"{_in_force('seccompProfile', 'type')}.orValue('') in ['RuntimeDefault', 'Localhost']"
    ),
    of_containers("pod-no-privileged", "c.?securityContext.?privileged.orValue(false) != true"),
    of_pods(
        "pod-no-host",
        "pod.spec.?hostNetwork.orValue(false) != true && pod.spec.?hostPID.orValue(false) != true"
        " && pod.spec.?hostIPC.orValue(false) != true",
    ),
    of_containers("pod-no-host-ports", "c.?ports.orValue([]).all(port, port.?hostPort.orValue(0) == 0)"),
    of_pods("pod-no-host-path", _host_paths),
    of_containers("pod-proc-mount", "c.?securityContext.?procMount.orValue('Default') == 'Default'"),
    of_pods(
        "pod-requests",
        f"{_OWN_CONTAINERS}.all(c, ['cpu', 'memory'].all(r, c.?resources.?requests[?r].hasValue()"
        " || c.?resources.?limits[?r].hasValue()))",
    ),
    of_containers("pod-no-plain-secret", f"c.?env.orValue([]).all(e, e.?value.orValue('') == '' || !({_SECRET}))"),
    of_pods(
        "pod-memory-volume-limit",
        "pod.spec.?volumes.orValue([]).all(v, v.?emptyDir.?medium.orValue('') != 'Memory'"
        " || v.emptyDir.?sizeLimit.hasValue())",
    ),
    of_containers(
        "pod-binary-quantities",
        "['requests', 'limits'].all(k, !c.?resources[?k][?'memory'].hasValue()"
        f" || !{quantity('c.resources[k].memory')}.isLessThan(quantity('1Mi')))",
    ),
    of_containers(
        "img-no-latest",
        f"!has(c.image) || c.image.contains('@sha256:') || {_NAME_AND_TAG}.matches('^[^:]*:')"
        f" && !{_NAME_AND_TAG}.matches('^[^:]*:(latest|nightly|master|main)(-.*)?$')",
    ),
    of_pods("img-said", f"{_OWN_CONTAINERS}.all(c, has(c.image))"),
    of_containers("img-registry", _registries),
    of_containers("img-no-bitnami", "!c.?image.orValue('').matches('(^|/)(bitnami|bitnamilegacy)/')"),
)
