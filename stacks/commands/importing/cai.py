"""Converts the YAML of `launch_cluster start-cai` of ray-serve-cai into a cluster on Cloudera ML."""

from collections.abc import Mapping
from typing import Any

from stacks.commands.importing.names import RELEASE, dns_name
from stacks.commands.importing.reader import Answers, Note, Reader, RefusedError

_NUM_WORKERS = 1
"""Its default."""

_CPU, _MEMORY = 16, 64
"""Its defaults of a worker."""


def is_cai_file(document: Any) -> bool:
    """Whether a document is such a file."""
    return isinstance(document, Mapping) and isinstance(document.get("cai"), Mapping)


def from_cai(document: Mapping[str, Any], answers: Answers) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """The values of `cml`, and notes. Raises RefusedError if the file is invalid, or lacks required values.

    The API key is never copied, nor shown.
    """
    reader = Reader(document)
    cai, ray = reader.mapping("cai"), reader.mapping("ray")
    cai.at("api_key").note(
        "a stack file is plain text, so the key is not copied",
        "run `pulumi config set --secret ray-platform:cmlApiKey`, or set CML_API_KEY; replace a key that others know",
    )
    if not answers.ray_version or not RELEASE.fullmatch(answers.ray_version):
        raise RefusedError(Note(("cai",), "the file has no version of Ray", "set --ray-version, as in the runtime"))
    cluster: dict[str, Any] = {
        "name": answers.name or dns_name("ray-cluster", 53, "ray"),
        "project": _required(cai, "project_id"),
        "rayVersion": answers.ray_version,
    }
    if runtime := cai.text("runtime_identifier"):
        cluster["runtimeIdentifier"] = runtime
    count = cai.whole("num_workers")
    cluster["numWorkers"] = _NUM_WORKERS if count is None else count
    cluster["resources"] = _resources(cai.mapping("resources"), {"cpu": _CPU, "memory": _MEMORY})
    head = cai.mapping("head_resources")
    head.at("num_gpus").note("a head has no GPUs", "nothing to do")
    if head.keys():
        cluster["headResources"] = _resources(head, cluster["resources"])
        cluster["headResources"].pop("gpus", None)
    for key, name in (("port", "port"), ("dashboard_port", "dashboardPort")):
        if (port := ray.whole(key)) is not None:
            cluster[name] = port
    return {"host": _required(cai, "host").rstrip("/"), "clusters": [cluster]}, reader.log.finish(document)


def _required(part: Reader, key: str) -> str:
    value = part.text(key)
    if value is None:
        raise RefusedError(Note((*part.path, key), "it is not set", "set it"))
    return value


def _resources(part: Reader, defaults: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: _plain(part.number(key) or defaults[key]) for key in ("cpu", "memory")}
    gpus = part.whole("num_gpus")
    return {**found, "gpus": gpus} if gpus else found


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value
