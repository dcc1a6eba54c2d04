"""The collector of logs beside Ray, in the pods of a RayCluster. Pure functions."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.logs import manifests as collector
from components.logs.settings import LogsSettings
from components.ray_cluster.pods import NOTHING_BESIDE, Beside
from components.ray_cluster.settings import RayClusterSettings
from core.problems import Path, Problem

Body = Mapping[str, Any]


def log_sidecar(settings: RayClusterSettings, logs: LogsSettings | None) -> Beside:
    """What each pod of Ray has for its logs."""
    if logs is None:
        return NOTHING_BESIDE
    user = None if settings.run_as_user == "image" else settings.run_as_user
    return Beside(
        init_containers=(collector.sidecar(logs, user, settings.image_pull_policy),),
        volumes=collector.volumes(logs),
        env=collector.variables_of_ray(logs),
        mounts=(collector.RAY_MOUNT,),
    )


def logs_problems(settings: RayClusterSettings, logs: LogsSettings | None, body: Body) -> Iterator[Problem]:
    """Parts of a rendered RayCluster by which its logs would not be collected; paths in its body."""
    if logs is None:
        return
    spec = body["spec"]
    expected = log_sidecar(settings, logs)
    groups: list[tuple[Path, Any]] = [(("spec", "headGroupSpec"), spec["headGroupSpec"])]
    groups += [(("spec", "workerGroupSpecs", at), each) for at, each in enumerate(spec.get("workerGroupSpecs") or ())]
    for path, group in groups:
        folder = group["rayStartParams"].get("temp-dir", collector.RAY_FOLDER)
        if folder != collector.RAY_FOLDER:
            message = f"logs are read from {collector.RAY_FOLDER}, and Ray would write them elsewhere: remove it"
            yield Problem((*path, "rayStartParams", "temp-dir"), folder, message, "logs-elsewhere")
        yield from _changed((*path, "template", "spec"), group["template"]["spec"], expected)


def _changed(path: Path, pod: Body, expected: Beside) -> Iterator[Problem]:
    """Changes by a pod template to what the collector needs."""
    named: dict[str, tuple[dict[str, Any], ...]] = {
        "initContainers": expected.init_containers,
        "volumes": expected.volumes,
    }
    for kind, ours in named.items():
        names = [each["name"] for each in ours]
        present = [(at, each) for at, each in enumerate(pod.get(kind) or ()) if each.get("name") in names]
        for at, each in present:
            if each not in ours:
                message = (
                    f"{each['name']!r} is that of the log collector: use another name, or change the collector in "
                    "ray-platform:logs"
                )
                yield Problem((*path, kind, at), each["name"], message, "logs-changed")
    for at, mount in enumerate(pod["containers"][0].get("volumeMounts") or ()):
        if mount.get("mountPath", "").rstrip("/") == collector.RAY_FOLDER and mount.get("name") != collector.RAY_VOLUME:
            where = (*path, "containers", 0, "volumeMounts", at)
            message = f"Ray and the collector share {collector.RAY_FOLDER} by another volume: mount this one elsewhere"
            yield Problem(where, mount.get("name"), message, "logs-elsewhere")
