"""What entrypoints of jobs and replicas of Ray Serve need of their RayCluster, and who could reach what it serves. Pure
functions.

What they are about waits for ever, and only Ray's dashboard shows the reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.body import ReadOnlyBody
from core.problems import Path, Problem
from kuberay.offers import ANY, CPU, GPU, MEMORY, NO_ROOM, Offer, fits, offers_of, without_room
from kuberay.ports import SERVE_PORT, head_ports
from kuberay.ray_start import custom_resources
from kuberay.rules import HEAD_GROUP, groups_of
from kuberay.serve_config import DeploymentSettings, ServeConfigSettings

_ENDPOINTS = "service-endpoints"

_CONFIG = "serveConfigV2"

_GROUP = "ray.io/node-group"
"""Label with the name of the group, which KubeRay passes to Ray (pod.go: RAY_NODE_TYPE_NAME)."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def problems_of_entrypoint(spec: ReadOnlyBody, offers: Sequence[Offer]) -> Iterator[Problem]:
    """What the entrypoint reserves and no node offers. `spec`: of a RayJob, in which the paths are. `offers`: of the
    RayCluster that it runs on."""
    keys = {CPU: "entrypointNumCpus", GPU: "entrypointNumGpus"}
    custom = custom_resources(spec.get("entrypointResources") or "{}")
    demand = _named({name: spec.get(key) for name, key in keys.items()}, custom)
    places: dict[str, Path] = {
        name: (keys[name],) if name in keys else ("entrypointResources", name) for name in demand
    }
    yield from without_room(demand, places, offers, "the entrypoint") if demand else ()


def problems_of_endpoints(config: ServeConfigSettings, without_head: bool) -> Iterator[Problem]:
    """Settings with which no pod would ever serve; paths in the RayService's spec. `without_head`:
    excludeHeadPodFromServeSvc."""
    proxies, http = config.proxy_location, config.http_options
    if proxies == "Disabled":
        message = "without proxies no pod takes requests, and KubeRay waits for one: remove it, or use EveryNode"
        yield Problem((_CONFIG, "proxy_location"), proxies, message, _ENDPOINTS)
    elif proxies == "HeadOnly" and without_head:
        message = "only the head has a proxy (proxy_location HeadOnly), so no pod takes requests: remove one of them"
        yield Problem(("excludeHeadPodFromServeSvc",), True, message, _ENDPOINTS)
    if http and http.host in _LOOPBACK:
        message = f"nobody outside of the pod reaches {http.host}: remove it, or write 0.0.0.0"
        yield Problem((_CONFIG, "http_options", "host"), http.host, message, _ENDPOINTS)


def problems_of_serving(config: ServeConfigSettings, body: ReadOnlyBody) -> Iterator[Problem]:
    """A port of Serve that nobody reaches, and replicas without room; paths in the RayService's spec. `body`: the
    RayService."""
    spec = body["spec"]["rayClusterConfig"]
    port, http = head_ports(spec)[SERVE_PORT], config.http_options
    if http and http.port != port:
        message = (
            f"Serve would listen on {http.port}, and the Service and KubeRay's health check use the head's port "
            f"{SERVE_PORT}, {port}: remove it, or change the containerPort of that port of the head's container"
        )
        yield Problem((_CONFIG, "http_options", "port"), http.port, message, _ENDPOINTS)
    offers = offers_of({**body, "spec": spec})
    for at, application in enumerate(config.applications):
        for number, deployment in enumerate(application.deployments):
            found = [*_of_replica(deployment, spec, offers), *_over_nodes(deployment, spec)]
            path: Path = (_CONFIG, "applications", at, "deployments", number)
            yield from (problem.below(path) for problem in found)


def workers_without_proxies(config: ServeConfigSettings, spec: ReadOnlyBody) -> Iterator[Problem]:
    """Workers that are never ready; paths in the RayService's spec. `spec`: of its RayCluster."""
    if config.proxy_location == "HeadOnly" and spec.get("workerGroupSpecs"):
        message = (
            "KubeRay asks each worker for its proxy, so that workers without one are never ready (kuberay#4994): "
            "remove it"
        )
        yield Problem((_CONFIG, "proxy_location"), "HeadOnly", message, "head-proxy")


def _of_replica(deployment: DeploymentSettings, spec: ReadOnlyBody, offers: Sequence[Offer]) -> Iterator[Problem]:
    """Replicas and bundles that no node has room for, of the nodes that they select by labels. `offers`: of the groups
    of the spec, in their order."""
    options, bundles = deployment.ray_actor_options, deployment.placement_group_bundles or ()
    selectors = deployment.placement_group_bundle_label_selector or ()
    chosen: list[Sequence[Offer]] = []
    for index, bundle in enumerate(bundles):
        at = index if len(selectors) > 1 else 0
        selected, unselected = _selected(spec, selectors[at] if selectors else {}, offers)
        chosen.append(selected)
        path: Path = ("placement_group_bundle_label_selector", at)
        yield from (each.below(path) for each in unselected if index == at)
        places: dict[str, Path] = {name: ("placement_group_bundles", index, name) for name in bundle}
        if selected:
            yield from without_room(bundle, places, selected, "a bundle", _whose(selected, offers))
    if options:
        selector = {} if options.fallback_strategy else options.label_selector or {}
        selected, unselected = _selected(spec, selector, offers)
        yield from (each.below(("ray_actor_options", "label_selector")) for each in unselected)
        demand = _named({CPU: options.num_cpus, GPU: options.num_gpus, MEMORY: options.memory}, options.resources)
        keys = {CPU: ("num_cpus",), GPU: ("num_gpus",), MEMORY: ("memory",)}
        places = {name: ("ray_actor_options", *keys.get(name, ("resources", name))) for name in demand}
        if selected and not bundles:
            yield from without_room(demand, places, selected, "a replica", _whose(selected, offers))
    if deployment.placement_group_strategy == "STRICT_PACK" and all(
        any(fits(each, offer) for offer in selected) for each, selected in zip(bundles, chosen, strict=True)
    ):
        together = {name: sum(each.get(name, 0) for each in bundles) for each in bundles for name in each}
        places = dict.fromkeys(together, ("placement_group_strategy",))
        yield from without_room(together, places, offers, "a replica with all its bundles (STRICT_PACK)")


def _whose(selected: Sequence[Offer], offers: Sequence[Offer]) -> str:
    return "no head or worker" if len(selected) == len(offers) else "no node with the selected labels"


def _selected(
    spec: ReadOnlyBody, selector: Mapping[str, str], offers: Sequence[Offer]
) -> tuple[Sequence[Offer], list[Problem]]:
    """The offers of the groups that a selector takes; or why it takes none, at its keys. Ray gives nodes labels that
    begin with `ray.io/` itself, of which only that of the group is known (python/ray/_private/
    resource_and_label_spec.py: _get_default_labels), and reads further ones from a file."""
    groups = [group for _, group in groups_of(spec)]
    known = {key: selected for key, selected in selector.items() if key == _GROUP or not key.startswith("ray.io/")}
    from_file = any("labels-file" in (group.get("rayStartParams") or {}) for group in groups)
    if from_file or any(ANY in offer for offer in offers):
        return offers, []
    labels = [{_GROUP: group.get("groupName", HEAD_GROUP), **(group.get("labels") or {})} for group in groups]
    takes = {key: [_selects(selected, of.get(key)) for of in labels] for key, selected in known.items()}
    problems = []
    for key in (key for key, taken in takes.items() if not any(taken)):
        message = f"no head or worker has a label {key} that it selects: set labels of the group, or remove it"
        if key == _GROUP:
            message = f"there is no group {known[key]!r}: correct its name, or remove it"
        problems.append(Problem((key,), known[key], message, NO_ROOM))
    found = [offer for index, offer in enumerate(offers) if all(taken[index] for taken in takes.values())]
    if not found and not problems:
        names = " and ".join(takes)
        message = f"no head or worker has all labels that it selects, {names}: set labels of one group, or remove some"
        problems = [Problem((), None, message, NO_ROOM)]
    return found, problems


def _selects(selected: str, value: str | None) -> bool:
    """Whether a selector takes a label (src/ray/common/scheduling/label_selector.cc)."""
    negated, text = selected.startswith("!"), selected.removeprefix("!")
    values = [each.strip() for each in text[3:-1].split(",")] if text.startswith("in(") else [text]
    return (value in values) is not negated


def _over_nodes(deployment: DeploymentSettings, spec: ReadOnlyBody) -> Iterator[Problem]:
    """Replicas and bundles for which the most nodes of the cluster are too few."""
    each, replicas = deployment.max_replicas_per_node, deployment.num_replicas
    nodes = 1 + sum(_most(spec, group) for group in spec.get("workerGroupSpecs") or ())
    bundles = len(deployment.placement_group_bundles or ())
    if deployment.placement_group_strategy == "STRICT_SPREAD" and bundles > nodes:
        message = (
            f"{bundles} bundles need {bundles} nodes (STRICT_SPREAD), and the cluster has at most {nodes} with its "
            "head: use SPREAD, or raise the cluster's workers"
        )
        yield Problem(("placement_group_strategy",), "STRICT_SPREAD", message, NO_ROOM)
    if each is not None and isinstance(replicas, int) and replicas > each * nodes:
        message = (
            f"{replicas} replicas with {each} on a node need {-(-replicas // each)} nodes, and the cluster has at most "
            f"{nodes} with its head: raise it, or the cluster's workers"
        )
        yield Problem(("max_replicas_per_node",), each, message, NO_ROOM)


def _most(spec: ReadOnlyBody, group: ReadOnlyBody) -> int:
    """The most nodes of a group."""
    number = group.get("maxReplicas", 2**31 - 1) if spec.get("enableInTreeAutoscaling") else group.get("replicas", 0)
    return int(number) * int(group.get("numOfHosts", 1))


def _named(amounts: Mapping[str, float | None], resources: Mapping[str, Any]) -> dict[str, float]:
    custom = {name: value for name, value in resources.items() if isinstance(value, int | float)}
    return {name: value for name, value in {**amounts, **custom}.items() if value}
