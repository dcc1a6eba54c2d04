"""What a cluster on Cloudera ML serves: the Serve config for its head, its rules, and what differs. Pure functions."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.cml.resources import CmlWorkerGroupSettings
from components.ray_service.llm import LanguageModelSettings, problems_of_model, serve_config_of
from core.problems import Problem
from kuberay.serve import problems_of_serve_config
from kuberay.serve_config import ServeConfigSettings

SERVE, SERVE_PORT = "/serve", 8000
"""Path of the head's address below which the applications of Serve are reached, and the port of Serve's proxy in the
head. Both are passed to cml_application."""

Served = Mapping[str, Mapping[str, Any]]
"""The applications of Serve in a cluster, by name, as `GET /api/serve/applications/` of Ray's dashboard has them (ray,
python/ray/serve/schema.py: ApplicationDetails)."""

NOTHING = json.dumps({"applications": []})
"""The Serve config that ends all applications of one before."""

_SET_HERE = {"host": "127.0.0.1", "port": SERVE_PORT, "root_path": SERVE}
"""Options of Serve's proxy with which the head hands requests to it (cml_application)."""

_FAILED = "DEPLOY_FAILED"
"""Serve does not try again. An application that is UNHEALTHY it repairs (ray, python/ray/serve/schema.py:
ApplicationStatus)."""


@dataclass
class Serving:
    """What of a Serve config a cluster does not do yet."""

    differs: bool = False
    """Whether an application is missing or has another config, or one is not in the config."""

    waiting: dict[str, str] = field(default_factory=dict)
    """Applications that do not run, with their statuses and the reasons."""

    failed: bool = False
    """Whether one of them has failed for good."""

    def __str__(self) -> str:
        shown = [f"{name} is {why}" for name, why in self.waiting.items()]
        return "; ".join([*(["the Serve config differs"] if self.differs else []), *shown])


def serve_config(settings: ServeConfigSettings | None, llm: LanguageModelSettings | None) -> str:
    """The Serve config as JSON; empty if nothing is served. Pulumi would drop each `null` of a mapping."""
    config = serve_config_of(llm) if llm else settings
    if config is None:
        return ""
    body = config.model_dump(mode="json", exclude_unset=True)
    options = {**body.get("http_options", {}), **_SET_HERE}
    return json.dumps({**body, "proxy_location": "HeadOnly", "http_options": options}, sort_keys=True)


def serving(config: str, served: Served) -> Serving:
    """Compares. `config`: of `serve_config`, or NOTHING. Applications that nobody has sent as a config stay."""
    desired = {each["name"]: each for each in json.loads(config)["applications"]}
    sent = {name: each["deployed_app_config"] for name, each in served.items() if each.get("deployed_app_config")}
    found = Serving(sent.keys() != desired.keys() or any(not _has(sent[name], desired[name]) for name in desired))
    for name in desired:
        status = served.get(name, {}).get("status", "missing")
        if status != "RUNNING":
            found.waiting[name] = ": ".join([status, *_reasons(served.get(name, {}))])
            found.failed |= status == _FAILED
    return found


def _has(live: Any, desired: Any) -> bool:
    """Whether `live` has all that is desired. Ray may add its own defaults."""
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        return all(key in live and _has(live[key], value) for key, value in desired.items())
    if isinstance(desired, list) and isinstance(live, list):
        return len(live) == len(desired) and all(_has(*pair) for pair in zip(live, desired, strict=True))
    return bool(live == desired)


def _reasons(application: Mapping[str, Any]) -> Iterator[str]:
    if application.get("message"):
        yield _short(application["message"])
    for name, each in (application.get("deployments") or {}).items():
        if each.get("status") != "HEALTHY" and each.get("message"):
            yield f"deployment {name}: {_short(each['message'])}"


_ERROR = re.compile(r"\s*([\w.]*(Error|Exception)|Value error)\b")
"""The beginning of the line of a traceback that says what is wrong."""


def _short(message: str) -> str:
    """The first line, and the last that names an error: Ray shows an exception with its whole traceback, which may end
    with a link."""
    first, *rest = message.strip().splitlines() or [""]
    errors = [line for line in rest if _ERROR.match(line)] or rest
    return f"{first} {errors[-1].strip()}" if errors else first


def problems_of_serving(
    config: ServeConfigSettings | None,
    llm: LanguageModelSettings | None,
    groups: Iterable[CmlWorkerGroupSettings],
) -> Iterator[Problem]:
    """Conflicts between settings; paths in the cluster's settings."""
    if config and llm:
        message = "llm makes the Serve config: remove one of them"
        yield Problem(("serveConfigV2",), None, message, "service-config")
    elif config:
        yield from (each.below(("serveConfigV2",)) for each in problems_of_serve_config(config))
        yield from (each.below(("serveConfigV2",)) for each in _set_here(config))
    elif llm:
        yield from problems_of_model(llm)
        yield from _too_large(llm, list(groups))


def _set_here(config: ServeConfigSettings) -> Iterator[Problem]:
    rule, options = "cml-serve-options", config.http_options
    for name in _SET_HERE:
        if options and name in (options.model_fields_set | (options.model_extra or {}).keys()):
            message = f"the stack sets it, so that the head hands requests below {SERVE} to Serve: remove it"
            yield Problem(("http_options", name), None, message, rule)
    if "proxy_location" in config.model_fields_set and config.proxy_location != "HeadOnly":
        message = "only the head is reached from outside: remove it, or write HeadOnly"
        yield Problem(("proxy_location",), config.proxy_location, message, rule)
    if config.grpc_options and config.grpc_options.grpc_servicer_functions:
        message = "Cloudera ML serves HTTPS at 443 alone, so gRPC is not reached: remove it"
        yield Problem(("grpc_options",), None, message, rule)


def _too_large(llm: LanguageModelSettings, groups: list[CmlWorkerGroupSettings]) -> Iterator[Problem]:
    size, most = llm.tensor_parallel_size, llm.most
    rule, largest = "cml-llm-workers", max((each.resources.gpus for each in groups if each.replicas), default=0)
    if largest < size:
        message = f"a replica needs {size} GPUs on one worker, and the largest has {largest}: lower it, or set larger "
        yield Problem(("llm", "tensorParallelSize"), size, f"{message}workers", rule)
        return
    fit = sum(each.replicas * (each.resources.gpus // size) for each in groups)
    if fit < most:
        key = "maxReplicas" if llm.max_replicas else "replicas"
        message = (
            f"a replica has {size} GPUs, and the workers hold {fit} of them: lower it to {fit}, or set more workers"
        )
        yield Problem(("llm", key), most, message, rule)
