"""Settings of the KubeRay operator."""

import difflib
import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, Strict
from pydantic.alias_generators import to_camel

from core.problems import Problem
from core.types import (
    CheckedSettings,
    DnsLabel,
    DnsSubdomain,
    Env,
    Image,
    LabelKey,
    Labels,
    LabelValue,
    Memory,
    Quantity,
    Settings,
    Version,
)
from core.versions import release_of
from kuberay.releases import FEATURE_GATES, SUPPORTED, is_supported

NAME = "kuberay-operator"
"""Name of the Deployment, its ServiceAccount and its roles in KubeRay's kustomize tree."""


class ComputeResources(Settings):
    """CPU and memory of a container; requests equal limits."""

    cpu: Quantity
    """CPUs."""

    memory: Memory
    """Memory."""

    @property
    def without_cpu_limit(self) -> dict[str, dict[str, str]]:
        """Memory with equal request and limit, and CPU without a limit, for a container that others wait for: Sentinels
        would consider a throttled node of Redis dead."""
        return {"requests": {"cpu": self.cpu, "memory": self.memory}, "limits": {"memory": self.memory}}


class Toleration(CheckedSettings):
    """A Kubernetes toleration."""

    key: LabelKey | None = None
    """Key of the taint. Default: any, with operator Exists."""

    operator: Literal["Equal", "Exists"] = "Equal"
    """`Equal`: the taint has this value. `Exists`: it has any."""

    value: LabelValue | None = None
    """Value of the taint, with operator Equal."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Default: any."""

    toleration_seconds: Annotated[int, Strict()] | None = None
    """Time for which a NoExecute taint is tolerated. Default: no limit."""

    def problems(self) -> Iterable[Problem]:
        # Imported where it is needed: a start of the program that has no toleration is quicker without it.
        from kuberay.pod_template.placement import toleration_problems

        return toleration_problems(self.model_dump(by_alias=True, exclude_none=True), ())


_DELETES_JOBS = "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES"

_SWITCHES = (
    _DELETES_JOBS,
    "ENABLE_DETERMINISTIC_HEAD_POD_NAME",
    "ENABLE_GCS_FT_REDIS_CLEANUP",
    "ENABLE_INIT_CONTAINER_INJECTION",
    "ENABLE_LOGIN_SHELL",
    "ENABLE_PROBES_INJECTION",
    "ENABLE_RANDOM_POD_DELETE",
    "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE",
    "ENABLE_ZERO_DOWNTIME",
    "USE_INGRESS_ON_OPENSHIFT",
)
_NUMBERS = (
    "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV",
    "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
)
_KNOWN = (*_SWITCHES, *_NUMBERS, "CLUSTER_DOMAIN", "ENABLE_WEBHOOKS")
"""Variables that the operator reads (ray-operator/controllers/ray/utils/constant.go)."""

_ALIKE = 0.8
"""How similar two names must be to count as a misspelling (difflib's ratio)."""


class OperatorSettings(CheckedSettings):
    """The KubeRay operator: installed from KubeRay's own kustomize tree, or an existing one.

    With `install: existing` the operator is not changed, so only its namespace and its watched namespaces can be set:
    `namespace` and `watchNamespaces`.
    """

    version: Version = "1.6.2"
    """KubeRay's release, without the leading v: 1.5.1 to 1.7.x. A downgrade to an earlier minor version is refused."""

    install: Literal["manifests", "existing"] = "manifests"
    """`manifests`: this program installs and upgrades it. `existing`: it is installed already; its version is
    checked."""

    location: str | None = Field(default=None, min_length=1)
    """Kustomize tree to install from: a folder or a URL that `kubectl kustomize` takes. Default: KubeRay's
    `ray-operator/config/default` on GitHub at the tag of `version`."""

    namespace: DnsLabel = "ray-system"
    """Namespace of the operator. `install: manifests` creates it."""

    watch_namespaces: tuple[DnsLabel, ...] = ()
    """Namespaces whose RayClusters it manages, with Roles there instead of the ClusterRole. Default: all."""

    replicas: Annotated[int, Strict(), Field(ge=1, le=5)] = 1
    """Pods of the operator. With more than one they elect a leader."""

    resources: ComputeResources | None = None
    """Default: the tree's (100m and 512Mi in 1.6.2; KubeRay advises 500Mi for each 500 Ray pods)."""

    image: Image | None = None
    """Image of the operator, to pull it from a mirror. Default: the tree's."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in the operator's namespace to pull the image with."""

    node_selector: Labels = Field(default_factory=dict)
    """Labels of the nodes that may run the operator."""

    tolerations: tuple[Toleration, ...] = ()
    """Taints that the operator's pods tolerate."""

    feature_gates: dict[str, bool] = Field(default_factory=dict)
    """KubeRay feature gates by name, e.g. `{RayCronJob: true}`; added to those of the tree."""

    batch_scheduler: Literal["volcano", "yunikorn", "kai-scheduler", "scheduler-plugins"] | None = None
    """Gang scheduler for which the operator creates pod groups (`--batch-scheduler`)."""

    metrics: bool = False
    """True: the operator has metrics of RayClusters, RayJobs and RayServices (`--enable-metrics`). Always with
    `monitoring`."""

    log_format: Literal["json", "console"] = "json"
    """Format of the operator's log."""

    env: Env = Field(default_factory=dict)
    """Further environment variables of the operator, e.g. CLUSTER_DOMAIN."""

    @property
    def tree(self) -> str:
        """The location of the kustomize tree."""
        return (
            self.location or f"https://github.com/ray-project/kuberay//ray-operator/config/default?ref=v{self.version}"
        )

    def problems(self) -> list[Problem]:
        return [
            *self._unsupported(),
            *self._unknown_gates(),
            *self._not_with_existing(),
            *self._deleting(),
            *self._misread(),
            *self._other_image(),
        ]

    def _other_image(self) -> list[Problem]:
        """The operator of another release than the manifests around it."""
        found = re.search(r"kuberay[^:]*:v?(\d+\.\d+\.\d+)", self.image or "")
        if found is None or found[1] == self.version:
            return []
        message = f"is KubeRay {found[1]}, and version is {self.version}, whose rights and CRDs it gets: set both alike"
        return [Problem(("image",), self.image, message, "operator-version")]

    def _misread(self) -> list[Problem]:
        """Variables that the operator would not find, or take for another value without a word."""
        found = []
        for name, value in self.env.items():
            message = None
            if name in _SWITCHES and value.lower() not in ("true", "false"):
                message = f"{value!r} is neither true nor false, and the operator would keep its default: write one"
            elif name in _NUMBERS and not (value.isascii() and value.isdecimal()):
                message = f"{value!r} is not a number, and the operator would keep its default: write whole seconds"
            elif name not in _KNOWN and (like := difflib.get_close_matches(name.upper(), _KNOWN, 1, _ALIKE)):
                message = f"the operator reads no such variable: did you mean {like[0]!r}?"
            if message:
                found.append(Problem(("env", name), value, message, "operator-env"))
        return found

    def _deleting(self) -> list[Problem]:
        """ray-operator/controllers/ray/rayjob_controller.go: it deletes the RayJob itself."""
        if self.env.get(_DELETES_JOBS, "").lower() != "true":
            return []
        message = "ended RayJobs would be deleted, and the next `up` would create and run them again: remove it"
        return [Problem(("env", _DELETES_JOBS), self.env[_DELETES_JOBS], message, "operator-env")]

    def _unsupported(self) -> list[Problem]:
        if is_supported(self.version):
            return []
        message = f"version {self.version!r} is not supported: set it to {SUPPORTED}"
        return [Problem(("version",), self.version, message, "operator-version")]

    def _unknown_gates(self) -> list[Problem]:
        known = FEATURE_GATES.get(release_of(self.version))
        if known is None or self.install == "existing":
            return []
        message = f"KubeRay {self.version} has no such feature gate and would not start: use one of {', '.join(known)}"
        return [
            Problem(("featureGates", gate), enabled, message, "operator-feature-gate")
            for gate, enabled in self.feature_gates.items()
            if gate not in known
        ]

    def _not_with_existing(self) -> list[Problem]:
        if self.install == "manifests":
            return []
        fields = sorted(self.model_fields_set - {"install", "namespace", "watch_namespaces"})
        message = "install: existing changes nothing of the operator: remove this key, or set install: manifests"
        return [Problem((to_camel(field),), getattr(self, field), message, "existing-operator") for field in fields]
