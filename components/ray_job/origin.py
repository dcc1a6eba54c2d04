"""Maps a part of a rendered RayJob to its setting, so that a problem is reported where the author can fix it."""

from components.ray_cluster.origin import cut
from components.ray_job.settings import RayJobSettings
from core.problems import Path

_KEYS = {"runtimeEnvYAML": "runtimeEnv", "template": "submitterPodTemplate"}
"""Keys that differ from KubeRay's fields, and from those of a Job that submits to an external cluster."""


def job_setting_at(settings: RayJobSettings, path: Path) -> Path:
    """The path in the job's settings that the part of its body at `path` comes from; `()` for the job itself.

    Parts of `rayClusterSpec` come from the settings of its cluster (ray_cluster.origin).
    """
    configured = settings.model_dump(by_alias=True, exclude_unset=True)
    match path:
        case ("metadata", "name", *_):
            return ("name",)
        case ("spec", str(field), *rest):
            return cut(configured, (_KEYS.get(field, field), *rest))
    return ()
