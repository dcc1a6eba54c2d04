"""The applications of a cluster, as the API of Cloudera ML takes them. Pure functions.

The name of an application follows from stack, cluster, group and number, and its subdomain from the name and the
project. Two creations of one application so collide at the subdomain, and an `up` that was killed is continued by the
next one, which finds the names. No name of another cluster or stack has the same form: the part after the cluster's
name has no dot, and cluster and group have none, either.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from components import payloads
from components.cml.applications import Application
from components.cml.resources import CmlResources
from components.cml.serving import SERVE, SERVE_PORT, serve_config
from components.cml.settings import HEAD, CmlRayClusterSettings, CmlSettings
from core.types import seconds

Inputs = Mapping[str, Any]
"""The inputs of a cluster's nodes in the state of the stack: plain data, without key and token."""

SETTINGS, TOKEN, AUTH_MODE = "RAY_PLATFORM", "RAY_AUTH_TOKEN", "RAY_AUTH_MODE"
"""Variables of an application: its node (cml_application), and Ray's own two."""

NODE, DIGEST = "RAY_CLOUD_INSTANCE_ID", "RAY_PLATFORM_DIGEST"
"""Variables: the name of the Ray node, unique for each created application; and what it was created from."""

SCRIPT = "RAY_PLATFORM_SCRIPT"
"""Variable: the path of the script in the project."""

GENERATION = "tokenGeneration"
"""Of the inputs: the number of Ray's token."""

ALIVE = ("STARTING", "RUNNING", "UNKNOWN")
"""Statuses of an application that runs or may come to run."""

_LONGEST_LABEL = 63


@dataclass(frozen=True, order=True)
class Member:
    """A place of a cluster: the head, or a worker's number in its group."""

    group: str
    number: int = 0

    def __str__(self) -> str:
        return HEAD if self.group == HEAD else f"{self.group}-{self.number}"


THE_HEAD = Member(HEAD)


def prefix(stack: str, cluster: str) -> str:
    """How the names of its applications begin."""
    return f"ray.{stack}.{cluster}."


def member_of(name: str, beginning: str) -> Member | None:
    """The place of an application in the cluster; None if it is none of its applications."""
    if not name.startswith(beginning):
        return None
    rest = name.removeprefix(beginning)
    if rest == HEAD:
        return THE_HEAD
    found = re.fullmatch(r"([a-z][-a-z0-9]*)-([0-9]+)", rest)
    return Member(found[1], int(found[2])) if found else None


def nodes(settings: CmlSettings, cluster: CmlRayClusterSettings, stack: str) -> dict[str, Any]:
    """The inputs of the resource that has the cluster's applications.

    An unset text is empty: Pulumi does not send inputs that are None to the provider.
    """
    head = cluster.resources_of_head
    common = {"runtime": cluster.runtime_identifier or "", "env": dict(cluster.env)}
    groups = {
        group.name: {
            **common,
            "replicas": group.replicas,
            "project": group.project or cluster.project,
            **_resources(group.resources),
            "runtime": group.runtime_identifier or cluster.runtime_identifier or "",
            "env": {**cluster.env, **group.env},
            "rayStartParams": {**cluster.worker_ray_start_params, **group.ray_start_params},
        }
        for group in cluster.groups
    }
    return {
        "host": settings.host,
        "caFile": settings.ca_file or "",
        "cluster": cluster.name,
        "prefix": prefix(stack, cluster.name),
        "projects": list(cluster.projects),
        "rayVersion": cluster.ray_version,
        "port": cluster.port,
        "dashboardPort": cluster.dashboard_port,
        GENERATION: cluster.token_generation,
        "suspend": cluster.suspend,
        "readySeconds": seconds(cluster.ready_timeout),
        "drainSeconds": seconds(cluster.drain_timeout),
        "script": script_digest(),
        "serve": serve_config(cluster.serve_config_v2, cluster.llm),
        HEAD: {
            **common,
            "replicas": 1,
            "project": cluster.project,
            **_resources(CmlResources(cpu=head.cpu, memory=head.memory)),
            "rayStartParams": dict(cluster.head_ray_start_params),
        },
        "groups": groups,
    }


def claim(inputs: Inputs) -> dict[str, Any]:
    """The inputs of the resource that has the names: what its deletion needs."""
    return {key: inputs[key] for key in ("host", "caFile", "cluster", "prefix", "projects", "script", GENERATION)}


def _resources(resources: CmlResources) -> dict[str, Any]:
    return {"cpu": resources.cpu, "memory": resources.memory, "gpus": resources.gpus}


def group_of(inputs: Inputs, name: str) -> Mapping[str, Any] | None:
    """The settings of a group or of the head; None if the cluster has no such group now."""
    found: Mapping[str, Any] | None = inputs[HEAD] if name == HEAD else inputs["groups"].get(name)
    return found


def application(inputs: Inputs, member: Member, token: str, unique: str) -> dict[str, Any]:
    """The body that creates an application. `unique`: distinguishes it from earlier ones of the same place."""
    # Only `up` creates one: a start of other commands is quicker without it.
    from components.cml.authorities import certificates_for_workers

    group = group_of(inputs, member.group)
    assert group is not None, member
    node = {
        "group": member.group,
        "rayVersion": inputs["rayVersion"],
        "port": int(inputs["port"]),
        "dashboardPort": int(inputs["dashboardPort"]),
        "servePath": SERVE,
        "servePort": SERVE_PORT,
        "cpus": 0 if member == THE_HEAD else max(1, int(group["cpu"])),
        "gpus": int(group["gpus"]),
        "rayStartParams": dict(group["rayStartParams"]),
        "head": None if member == THE_HEAD else head_url(inputs),
        "records": records_path(inputs),
        "ca": certificates_for_workers(inputs["caFile"]) if inputs["caFile"] and member != THE_HEAD else None,
    }
    body = {
        "name": f"{inputs['prefix']}{member}",
        "description": f"Ray cluster {inputs['cluster']}, managed by ray-platform: an edit here is reverted by it",
        "subdomain": subdomain(inputs, member),
        "script": script_path(inputs),
        "cpu": group["cpu"],
        "memory": group["memory"],
        "nvidia_gpu": int(group["gpus"]),
        "bypass_authentication": True,
        "environment": {
            **group["env"],
            SETTINGS: json.dumps(node, sort_keys=True),
            SCRIPT: script_path(inputs),
            AUTH_MODE: "token",
            TOKEN: token,
            NODE: f"{member}.{unique}",
            DIGEST: digest(inputs, member.group),
        },
    }
    return {**body, "runtime_identifier": group["runtime"]} if group["runtime"] else body


def is_current(inputs: Inputs, member: Member, live: Application) -> bool:
    """Whether an application is as a creation now would make it."""
    group = group_of(inputs, member.group)
    if group is None or live.project != group["project"]:
        return False
    # What an edit in Cloudera ML can change without a trace in the environment. Other fields are not compared: a server
    # may return them in another form, and each application would be replaced again and again.
    desired = {"cpu": group["cpu"], "memory": group["memory"], "nvidia_gpu": group["gpus"]}
    same = all(float(live.body[key]) == desired[key] for key in desired if live.body.get(key) is not None)
    runtime = live.body.get("runtime_identifier") or group["runtime"]
    of_now = runtime == (group["runtime"] or runtime)
    return same and of_now and live.environment.get(DIGEST) == digest(inputs, member.group)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def digest(inputs: Inputs, group: str) -> str:
    """What an application of a group is created from. The number of workers is not part of it."""
    own = {key: value for key, value in (group_of(inputs, group) or {}).items() if key != "replicas"}
    common = {key: inputs[key] for key in ("host", "rayVersion", "port", "dashboardPort", "script", GENERATION)}
    text = json.dumps(_numbers([common, own, inputs[HEAD]["project"]]), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _numbers(value: Any) -> Any:
    """The same data with all numbers of one type: Pulumi makes 4 of 4.0."""
    if isinstance(value, Mapping):
        return {key: _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else _number(value)


def subdomain(inputs: Inputs, member: Member) -> str:
    """The label of an application in the workspace's domain: unique there, and the same each time."""
    group = group_of(inputs, member.group)
    name = f"{inputs['prefix']}{member}"
    unique = hashlib.sha256(f"{group['project'] if group else ''}/{name}".encode()).hexdigest()[:10]
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower())[: _LONGEST_LABEL - len(unique) - 1].strip("-")
    return f"{readable}-{unique}"


def head_url(inputs: Inputs) -> str:
    """Where the head is reached from outside: its dashboard, its jobs API, and cml_application's own paths."""
    return f"https://{subdomain(inputs, THE_HEAD)}.{inputs['host'].removeprefix('https://')}"


def connection(cluster: CmlRayClusterSettings, inputs: Inputs) -> dict[str, str]:
    """Where the cluster is reached, with the keys of a RayCluster's. Those of Kubernetes are empty, and `rayAddress`,
    because Ray's client port is not reached through HTTPS."""
    url = head_url(inputs)
    found = {"namespace": "", "headService": "", "rayAddress": "", "dashboardUrl": url, "jobsUrl": url}
    if not inputs["serve"]:
        return found
    endpoint = f"{url}{SERVE}"
    of_llm = {"openaiBaseUrl": f"{endpoint}/v1", "model": cluster.llm.model} if cluster.llm else {}
    return {**found, "endpoint": endpoint, **of_llm}


def script_path(inputs: Inputs) -> str:
    """Where the cluster's script is in each of its projects. Another script is another file."""
    return f"ray-platform/{inputs['prefix']}{inputs['script'][:8]}.py"


def records_path(inputs: Inputs) -> str:
    """Where the head's project keeps the records of the cluster's jobs. They outlive the cluster."""
    return f"ray-platform/{inputs['prefix']}jobs.json"


def log_path(inputs: Inputs, record: str) -> str:
    """Where it keeps the end of the log of a job (cml_application: Records, record_id)."""
    return f"{records_path(inputs).removesuffix('.json')}/{record}.log"


@cache
def script() -> bytes:
    return payloads.text("cml_application").encode()


def script_digest() -> str:
    """What distinguishes the script from those of other releases."""
    return hashlib.sha256(script()).hexdigest()[:16]
