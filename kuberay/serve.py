"""What Ray refuses in a Serve config (ray 2.60, python/ray/serve/schema.py and config.py): KubeRay reports that only in
an event, when the RayCluster runs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from core.messages import findings
from core.problems import Path, Problem, place, repeats
from kuberay.runtime_env import RuntimeEnvSettings, problems_of_runtime_env
from kuberay.serve_config import (
    ActorOptionsSettings,
    ApplicationSettings,
    DeploymentSettings,
    ServeAutoscalingSettings,
    ServeConfigSettings,
)

_CONFIG = "serve-config"


def read_config(text: str) -> tuple[ServeConfigSettings | None, list[Problem]]:
    """A Serve config, or why Ray refuses it; paths are in it. A text that is not a mapping is neither."""
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return None, []
    try:
        return ServeConfigSettings.model_validate(values), []
    except ValidationError as error:
        found = findings(error.errors(include_url=False), ServeConfigSettings, values, "")
        return None, [Problem(each.path, each.value, each.message, each.rule) for each in found]


def problems_of_serve_config(config: ServeConfigSettings) -> Iterator[Problem]:
    """What Ray refuses; paths are in the Serve config."""
    placed = [(("applications", at), each) for at, each in enumerate(config.applications)]
    yield from _repeated(((*path, "name"), each.name) for path, each in placed)
    prefixes = (((*path, "route_prefix"), each.route_prefix) for path, each in placed)
    yield from _repeated((path, prefix) for path, prefix in prefixes if prefix is not None)
    for path, application in placed:
        yield from (problem.below(path) for problem in _of_application(application))


def _repeated(named: Iterable[tuple[Path, str]]) -> Iterator[Problem]:
    for path, name, first in repeats(named):
        message = f"{name!r} is that of {place(first[:-1])} already: set a unique {path[-1]}"
        yield Problem(path, name, message, _CONFIG)


def _of_application(application: ApplicationSettings) -> Iterator[Problem]:
    for key in application.model_extra or ():
        if key in ("host", "port"):
            message = f"Ray refuses {key} of an application: set {key} of http_options"
            yield Problem((key,), None, message, _CONFIG)
    yield from _route(application.route_prefix)
    if not _imported(path := application.import_path):
        message = f"{path!r} is not the place of an application: write module:application or package.module:application"
        yield Problem(("import_path",), path, message, _CONFIG)
    yield from _repeated((("deployments", at, "name"), each.name) for at, each in enumerate(application.deployments))
    yield from _environment(application.runtime_env)
    for at, deployment in enumerate(application.deployments):
        found = [*_of_deployment(deployment)]
        if application.external_scaler_enabled and _scales(deployment):
            message = "another program scales the application (external_scaler_enabled): remove one of them"
            found.append(Problem(("autoscaling_config",), None, message, _CONFIG))
        yield from (problem.below(("deployments", at)) for problem in found)


def _route(prefix: str | None) -> Iterator[Problem]:
    if prefix is None:
        return
    if not prefix.startswith("/") or (prefix != "/" and prefix.endswith("/")) or "{" in prefix or "}" in prefix:
        message = f"{prefix!r} is not the beginning of a path: write / or /name, without a / at the end and braces"
        yield Problem(("route_prefix",), prefix, message, _CONFIG)


def _imported(path: str) -> bool:
    if "/" in path or path.endswith(".py"):
        return False
    separator = ":" if ":" in path else "."
    before, _, after = path.rpartition(separator)
    return bool(before and after) and (separator == "." or ":" not in before)


def _environment(environment: RuntimeEnvSettings | None) -> Iterator[Problem]:
    values = environment.others if environment else {}
    yield from (each.below(("runtime_env",)) for each in problems_of_runtime_env(values, uploads="Serve"))


def _scales(deployment: DeploymentSettings) -> bool:
    return deployment.num_replicas == "auto" or deployment.autoscaling_config is not None


def _of_deployment(deployment: DeploymentSettings) -> Iterator[Problem]:
    if isinstance(deployment.num_replicas, int) and deployment.autoscaling_config:
        message = "Serve scales the deployment (autoscaling_config): remove it, or set max_replicas there"
        yield Problem(("num_replicas",), deployment.num_replicas, message, _CONFIG)
    if deployment.autoscaling_config:
        yield from (each.below(("autoscaling_config",)) for each in _bounds(deployment, deployment.autoscaling_config))
    if deployment.max_queued_requests == 0:
        message = "0 is not a limit of waiting requests: set at least 1, or -1 for no limit"
        yield Problem(("max_queued_requests",), 0, message, _CONFIG)
    if options := deployment.ray_actor_options:
        found = (*_environment(options.runtime_env), *_labels(options.label_selector or {}), *_keywords(options))
        yield from (each.below(("ray_actor_options",)) for each in found)
    yield from _placement(deployment)
    yield from _first_bundle(deployment)
    yield from _gangs(deployment)


_MOST_OF_AUTO = 100
"""`max_replicas` with `num_replicas: auto` (ray, python/ray/serve/config.py: AutoscalingConfig.default)."""


def _bounds(deployment: DeploymentSettings, scaling: ServeAutoscalingSettings) -> Iterator[Problem]:
    least, most, first = scaling.min_replicas, scaling.max_replicas, scaling.initial_replicas
    if deployment.num_replicas == "auto" and "max_replicas" not in scaling.model_fields_set:
        most = _MOST_OF_AUTO
    if most < least:
        message = f"max_replicas {most} is less than min_replicas {least}: raise it, or lower min_replicas"
        yield Problem(("max_replicas",), most, message, _CONFIG)
    elif first is not None and not least <= first <= most:
        message = f"initial_replicas {first} is not between min_replicas {least} and max_replicas {most}: change one"
        yield Problem(("initial_replicas",), first, message, _CONFIG)


def _placement(deployment: DeploymentSettings) -> Iterator[Problem]:
    bundles, gang = deployment.placement_group_bundles, deployment.gang_scheduling_config
    selectors = deployment.placement_group_bundle_label_selector
    for key, other in (("placement_group_bundles", bundles), ("gang_scheduling_config", gang)):
        if deployment.max_replicas_per_node is not None and other is not None:
            message = f"Ray refuses it together with {key}: remove one"
            yield Problem(("max_replicas_per_node",), deployment.max_replicas_per_node, message, _CONFIG)
    if deployment.placement_group_strategy is not None and gang is not None:
        message = "Ray refuses it together with gang_scheduling_config: set gang_placement_strategy there"
        yield Problem(("placement_group_strategy",), deployment.placement_group_strategy, message, _CONFIG)
    if selectors is not None and len(selectors) not in (1, len(bundles or ())):
        message = f"there are {len(selectors)} for {len(bundles or ())} bundles: set one for all, or one for each"
        yield Problem(("placement_group_bundle_label_selector",), None, message, _CONFIG)
    elif selectors is not None and bundles is None:
        message = "there are no bundles: add placement_group_bundles, or remove it"
        yield Problem(("placement_group_bundle_label_selector",), None, message, _CONFIG)


_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_LABEL = re.compile(rf"([A-Za-z0-9_.-]{{0,253}}/)?{_NAME}")
_SELECTED = re.compile(rf"!?{_NAME}|!?(in)?\({_NAME}(, ?{_NAME})*\)|")
"""Labels of Ray nodes and what selects them (ray, python/ray/_private/label_utils.py: validate_label_selector)."""


def _labels(selector: Mapping[str, str]) -> Iterator[Problem]:
    for label, selected in selector.items():
        if not _LABEL.fullmatch(label):
            message = f"{label!r} is not the name of a label: use letters, digits, - _ and . between them"
            yield Problem(("label_selector", label), selected, message, _CONFIG)
        elif not _SELECTED.fullmatch(selected):
            message = f"{selected!r} selects no label: write its value, or in(a, b), or ! before one of these"
            yield Problem(("label_selector", label), selected, message, _CONFIG)


def _keywords(options: ActorOptionsSettings) -> Iterator[Problem]:
    for name, key in (("CPU", "num_cpus"), ("GPU", "num_gpus"), ("memory", "memory")):
        if name in options.resources:
            message = f"Ray refuses {name} among custom resources: set {key} of ray_actor_options"
            yield Problem(("resources", name), options.resources[name], message, _CONFIG)


def _first_bundle(deployment: DeploymentSettings) -> Iterator[Problem]:
    """Replicas that the first of their bundles cannot hold (ray, python/ray/serve/_private/config.py:
    ReplicaConfig)."""
    options, bundles = deployment.ray_actor_options, deployment.placement_group_bundles
    if options is None or not bundles:
        return
    needs: dict[Path, tuple[str, float | None]] = {
        ("num_cpus",): ("CPU", options.num_cpus),
        ("num_gpus",): ("GPU", options.num_gpus),
    }
    needs |= {("resources", name): (name, value) for name, value in options.resources.items()}
    for path, (name, value) in needs.items():
        if value and value > bundles[0].get(name, 0):
            message = (
                f"the replica runs in the first bundle, which has {bundles[0].get(name, 0):g} {name}: raise it there "
                "to at least the same, or lower it here"
            )
            yield Problem(("ray_actor_options", *path), value, message, _CONFIG)


def _gangs(deployment: DeploymentSettings) -> Iterator[Problem]:
    """Replicas that are not whole gangs (ray, python/ray/serve/schema.py: validate_gang_scheduling_config)."""
    size, scaling = (deployment.gang_scheduling_config or {}).get("gang_size"), deployment.autoscaling_config
    if not isinstance(size, int) or size < 1:
        return
    numbers: dict[Path, Any] = {("num_replicas",): deployment.num_replicas}
    if deployment.num_replicas == "auto" and scaling:
        bounds = {"min_replicas", "max_replicas", "initial_replicas"}
        configured = scaling.model_dump(exclude_unset=True, include=bounds)
        numbers = {("autoscaling_config", key): number for key, number in configured.items()}
    for path, number in numbers.items():
        if isinstance(number, int) and number % size:
            message = f"{number} replicas are not whole gangs of {size} (gang_size): set a multiple of {size}"
            yield Problem(path, number, message, _CONFIG)
