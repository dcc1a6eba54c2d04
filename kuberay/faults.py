"""Known faults of releases of Ray, in one table: which RayCluster, RayJob or RayService meets one, and what to do."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from core.body import ReadOnlyBody
from core.problems import Path, Problem
from core.versions import release_numbers, version_tuple
from kuberay.rules import groups_of, sets_autoscaler_v2
from kuberay.serve_config import ServeConfigSettings
from kuberay.shell import EXPANDED

Met = Iterable[tuple[Path, Any]]
"""Places in a spec that meet a fault, with their values."""


@dataclass(frozen=True)
class Fault:
    source: str
    """An issue, or a file of Ray."""

    before: str | None
    """The first release without it, as that release's code shows; None: 2.60 has it, too."""

    effect: str
    instead: str
    """What to do besides using a newer Ray."""

    met: Callable[..., Met]
    """By the spec of a RayCluster; by that of a RayJob; by a RayService's Serve config and spec."""

    def problems(self, ray_version: str | None, *given: Any) -> Iterator[Problem]:
        """`ray_version`: nothing is known of one that is not a release, or of none."""
        release = release_numbers(ray_version)
        if release is None or (self.before and release >= version_tuple(self.before)):
            return
        newer = "use a newer Ray, or " if self.before else ""
        title = f"Ray before {self.before}" if self.before else "Ray"
        for path, value in self.met(*given):
            yield Problem(path, value, f"{title} {self.effect} ({self.source}): {newer}{self.instead}", "fault-of-ray")


def _scales(spec: ReadOnlyBody) -> bool:
    return bool(spec.get("enableInTreeAutoscaling"))


def _of_several_hosts(spec: ReadOnlyBody, *, second: bool) -> Met:
    if _scales(spec) and sets_autoscaler_v2(spec) == second:
        for path, group in groups_of(spec, ()):
            if (group.get("numOfHosts") or 1) > 1:
                yield (*path, "numOfHosts"), group["numOfHosts"]


def _scaled_by_the_second(spec: ReadOnlyBody) -> Met:
    if _scales(spec) and sets_autoscaler_v2(spec):
        yield ("rayVersion",), spec["rayVersion"]


def _scaled_after_a_head(spec: ReadOnlyBody) -> Met:
    return _scaled_by_the_second(spec) if spec.get("gcsFaultToleranceOptions") else ()


def _scaled_by_a_restarted_head(spec: ReadOnlyBody) -> Met:
    """KubeRay replaces the pod of a head with version v2, and of no other; the second version is Ray's default."""
    unset = not (spec.get("autoscalerOptions") or {}).get("version")
    restarts = spec["headGroupSpec"]["template"]["spec"].get("restartPolicy") != "Never"
    if _scales(spec) and unset and restarts and not spec.get("gcsFaultToleranceOptions"):
        yield ("rayVersion",), spec["rayVersion"]


def _shown_with_tokens(spec: ReadOnlyBody) -> Met:
    if (spec.get("authOptions") or {}).get("mode") == "token":
        yield ("authOptions", "mode"), "token"


def _quoted(spec: ReadOnlyBody) -> Met:
    entrypoint = spec.get("entrypoint") or ""
    by_command = (spec.get("submissionMode") or "K8sJobMode") in ("K8sJobMode", "SidecarMode")
    if by_command and any(each in entrypoint for each in EXPANDED):
        yield ("entrypoint",), entrypoint


def _kept_at_the_start(config: ServeConfigSettings, spec: ReadOnlyBody) -> Met:
    if (spec.get("upgradeStrategy") or {}).get("type") != "NewClusterWithIncrementalUpgrade":
        return
    for at, application in enumerate(config.applications):
        for number, deployment in enumerate(application.deployments):
            scaling = deployment.autoscaling_config
            if scaling and scaling.min_replicas < (scaling.initial_replicas or 0):
                inside = ("applications", at, "deployments", number, "autoscaling_config", "initial_replicas")
                yield ("serveConfigV2", *inside), scaling.initial_replicas


_CLUSTERS = (
    Fault(
        "ray/autoscaler/_private/kuberay/autoscaling_config.py",
        "2.43.0",
        "takes each worker of the group for one host when it scales",
        "turn autoscaling off",
        lambda spec: _of_several_hosts(spec, second=False),
    ),
    Fault(
        "ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py",
        "2.48.0",
        "takes each worker of the group for one host when it scales",
        "turn autoscaling off",
        lambda spec: _of_several_hosts(spec, second=True),
    ),
    Fault(
        "ray#52264",
        "2.47.0",
        "does not remove all idle workers with version v2 of its autoscaler",
        "set version v1 in autoscalerOptions",
        _scaled_by_the_second,
    ),
    Fault(
        "ray#54353",
        "2.48.0",
        "no longer scales once a head was replaced, with fault tolerance and version v2 of its autoscaler",
        "set version v1 in autoscalerOptions",
        _scaled_after_a_head,
    ),
    Fault(
        "ray#60534",
        "2.55.0",
        "no longer scales once the head's container was restarted",
        "set version v2 in autoscalerOptions",
        _scaled_by_a_restarted_head,
    ),
    Fault(
        "ray#59614",
        "2.53.0",
        "shows no logs in the dashboard of a RayCluster with a token",
        "read them with `kubectl logs`",
        _shown_with_tokens,
    ),
)

_JOBS = (
    Fault(
        "ray#63797",
        "2.56.0",
        "quotes it as for Windows, and the head's shell expands $ and ` in it",
        "set submissionMode to HTTPMode, or put it into a script",
        _quoted,
    ),
)

_SERVICES = (
    Fault(
        "ray#62682",
        None,
        "never removes replicas below initial_replicas after an incremental upgrade",
        "remove it",
        _kept_at_the_start,
    ),
)


def faults_of_cluster(spec: ReadOnlyBody) -> Iterator[Problem]:
    """Those that a RayCluster meets; paths in its spec."""
    for fault in _CLUSTERS:
        yield from fault.problems(spec.get("rayVersion"), spec)


def faults_of_job(spec: ReadOnlyBody, ray_version: str | None) -> Iterator[Problem]:
    """Those that a RayJob meets; paths in its spec. `ray_version`: of the RayCluster that it runs on."""
    for fault in _JOBS:
        yield from fault.problems(ray_version, spec)


def faults_of_service(config: ServeConfigSettings, spec: ReadOnlyBody) -> Iterator[Problem]:
    """Those that a RayService meets besides those of its RayCluster; paths in its spec."""
    for fault in _SERVICES:
        yield from fault.problems(spec["rayClusterConfig"].get("rayVersion"), config, spec)
