"""What a Ray node of a group offers, as KubeRay starts Ray there, and groups that Ray's autoscaler cannot read. Pure
functions.

The operator makes the resources of a node from the group and passes them to `ray start`
(ray-operator/controllers/ray/common/pod.go: updateRayStartParamsResources, generateRayStartCommand). Ray's autoscaler
derives them once more from the RayCluster (python/ray/autoscaler/_private/kuberay/autoscaling_config.py), because a
group without workers has no node that could say so, and ends if it cannot.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal

from core.body import ReadOnlyBody
from core.problems import Path, Problem
from core.quantities import NotAQuantityError, amount
from kuberay.ray_start import is_gpu, problems_of_group
from kuberay.rules import groups_of

Offer = Mapping[str, Decimal | None]
"""Amounts by Ray's names: `CPU`, `GPU`, `memory` in bytes, custom resources. None: only the pod knows it."""

CPU, GPU, MEMORY = "CPU", "GPU", "memory"

_PARAMS = {"num-cpus": CPU, "num-gpus": GPU, "memory": MEMORY}
"""Flags of `ray start` with an amount."""

_ACCELERATORS = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}
"""Resources of containers that become custom ones of Ray (pod.go: customAcceleratorToRayResourceMap)."""

_BY_RAY = ("node:", "accelerator_type:", "TPU-", "object_store_memory", "bundle")
"""Beginnings of resources that Ray adds to nodes itself."""


def offered(group: ReadOnlyBody) -> Offer:
    """What a node of a group offers. `group`: headGroupSpec, or an item of workerGroupSpecs."""
    params = group.get("rayStartParams") or {}
    found = {_PARAMS[name]: _number(value) for name, value in params.items() if name in _PARAMS}
    found |= _custom(params.get("resources", "{}"))
    found |= {_ray_name(name): _whole(value) for name, value in (group.get("resources") or {}).items()}
    resources = group["template"]["spec"]["containers"][0].get("resources") or {}
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    found.setdefault(CPU, _whole(limits.get("cpu", 0)) or _whole(requests.get("cpu", 0)) or None)
    found.setdefault(MEMORY, _whole(limits.get("memory", 0)) or None)
    for name, value in sorted(limits.items()):
        counted = GPU if is_gpu(name) else _ACCELERATORS.get(name)
        if counted and counted not in found and _whole(value):
            found[counted] = _whole(value)
    return found


def missing(demand: Mapping[str, float], offers: Sequence[Offer]) -> tuple[str, Decimal] | None:
    """A resource of which no node offers as much as is demanded, and the most that one offers; None: there is none."""
    for name, value in demand.items():
        amounts = [each.get(name, Decimal(0)) for each in offers]
        known = [each for each in amounts if each is not None]
        most = max(known, default=Decimal(0))
        if len(known) == len(amounts) and not name.startswith(_BY_RAY) and Decimal(str(value)) > most:
            return name, most
    return None


def fits(demand: Mapping[str, float], offer: Offer) -> bool:
    """Whether a node that runs nothing else has room for a demand."""
    return missing(demand, [offer]) is None


def problems_of_nodes(
    spec: ReadOnlyBody, path: Path = ("spec",), ports: Mapping[str, int] | None = None
) -> Iterator[Problem]:
    """What neither `ray start` nor Ray's autoscaler can do with the groups of a spec at `path`; of one value the first
    problem alone. `ports`: of the head, as for `problems_of_group`."""
    refused: list[Problem] = []
    for at, group in groups_of(spec, path):
        # Overrides may remove the version.
        of_head = ports if at[-1] == "headGroupSpec" else None
        refused += problems_of_group(group, spec.get("rayVersion"), at, of_head)
    yield from refused
    reported = {each.path for each in refused}
    yield from (each for each in problems_for_autoscaler(spec, path) if each.path not in reported)


def problems_for_autoscaler(spec: ReadOnlyBody, path: Path = ("spec",)) -> Iterator[Problem]:
    """What ends Ray's autoscaler while it reads the spec of a RayCluster at `path`."""
    if not spec.get("enableInTreeAutoscaling"):
        return
    for at, group in groups_of(spec, path):
        yield from _unread(group, at)


def _unread(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    params, own = group.get("rayStartParams") or {}, group.get("resources") or {}
    container = group["template"]["spec"]["containers"][0].get("resources") or {}
    amounts = [each.get("cpu") for each in (container.get("limits") or {}, container.get("requests") or {})]
    if CPU not in own and "num-cpus" not in params and not any(amounts):
        message = (
            "Ray's autoscaler ends, because it cannot tell how many CPUs such a pod has: set cpu of Ray's container, "
            "or num-cpus"
        )
        yield Problem((*path, "template", "spec", "containers", 0, "resources"), None, message, "autoscaler-reads")
    for name, resource in _PARAMS.items():
        if resource not in own and name in params and _number(params[name]) is None:
            message = f"Ray's autoscaler ends, because it reads whole numbers only: write {name} as one"
            yield Problem((*path, "rayStartParams", name), params[name], message, "autoscaler-reads")
    if not own and (text := params.get("resources")) is not None and not _read_by_autoscaler(text):
        message = (
            "Ray's autoscaler ends, because it reads only whole numbers in a JSON object with a pair of quotes around "
            "it: write for example '{\"disk\": 2}' with the single quotes"
        )
        yield Problem((*path, "rayStartParams", "resources"), text, message, "autoscaler-reads")


def _read_by_autoscaler(text: str) -> bool:
    """autoscaling_config.py: _get_custom_resources."""
    try:
        parsed = json.loads(text[1:-1].replace("\\", ""))
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and all(isinstance(value, int) for value in parsed.values())


def _custom(text: str) -> dict[str, Decimal | None]:
    """The `resources` of `ray start` (pod.go: getResourcesMap)."""
    try:
        parsed = json.loads(text.strip("'\"` ").replace("\\", ""))
    except (ValueError, RecursionError):
        return {}
    values = parsed.items() if isinstance(parsed, dict) else ()
    return {name: Decimal(str(value)) for name, value in values if isinstance(value, int | float)}


def _ray_name(name: str) -> str:
    """Ray's name of a key of a group's `resources`."""
    lower = name.lower()
    return {"cpu": CPU, "memory": MEMORY}.get(lower, GPU if is_gpu(lower) else name)


def _number(value: str) -> Decimal | None:
    try:
        return Decimal(int(value))
    except ValueError:
        return None


def _whole(quantity: object) -> Decimal | None:
    """A quantity as the operator's `Value()` rounds it."""
    try:
        return amount(str(quantity)).to_integral_value(ROUND_CEILING)
    except NotAQuantityError:
        return None
