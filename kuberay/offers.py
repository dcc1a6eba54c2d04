"""What a Ray node of a group offers, as KubeRay starts Ray there, and groups that Ray's autoscaler cannot read. Pure
functions.

The operator makes the resources of a node from the group and passes them to `ray start`
(ray-operator/controllers/ray/common/pod.go: updateRayStartParamsResources, generateRayStartCommand). Ray's autoscaler
derives them once more from the RayCluster (python/ray/autoscaler/_private/kuberay/autoscaling_config.py), because a
group without workers has no node that could say so, and ends if it cannot.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal

from core.body import ReadOnlyBody
from core.nodes import ACCELERATOR
from core.problems import Path, Problem
from core.quantities import NotAQuantityError, amount, shown
from kuberay.ports import metrics_port
from kuberay.ray_start import custom_resources, is_gpu, problems_of_group
from kuberay.rules import groups_of
from kuberay.running import OWN_COMMAND

Offer = Mapping[str, Decimal | None]
"""Amounts by Ray's names: `CPU`, `GPU`, `memory` in bytes, custom resources. None: only the pod knows it."""

CPU, GPU, MEMORY = "CPU", "GPU", "memory"

ANY = "*"
"""Stands for all names that an offer does not have."""

NO_ROOM = "no-room-for-demand"

_SHOWN = {CPU: "CPUs", GPU: "GPUs"}

_PARAMS = {"num-cpus": CPU, "num-gpus": GPU, "memory": MEMORY}
"""Flags of `ray start` with an amount."""

_ACCELERATORS = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}
"""Resources of containers that become custom ones of Ray (pod.go: customAcceleratorToRayResourceMap)."""

_OF_RAY = (
    (re.compile(r"google\.com/tpu"), "TPU"),
    (re.compile(r"aws\.amazon\.com/neuroncore"), "neuron_cores"),
    (re.compile(r"aws\.amazon\.com/neuron(device)?"), None),
    (re.compile(r"habana\.ai/.+"), "HPU"),
    (re.compile(r"huawei\.com/.+"), "NPU"),
    (re.compile(r"furiosa\.ai/.+"), "FURIOSA"),
    (re.compile(r"rebellions\.ai/.+"), "RBLN"),
)
"""Resources of accelerators that are not `GPU` to Ray, and its names of them (ray, python/ray/_private/accelerators).
None: a device of AWS has two cores or more, by its kind."""

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
    for name in _detected(resources):
        found.setdefault(name, None)
    return found


def _detected(resources: ReadOnlyBody) -> Iterator[str]:
    """Ray's names of accelerators that KubeRay does not count, and `ray start` finds in the pod by itself
    (python/ray/_private/resource_and_label_spec.py: _get_current_node_accelerator)."""
    if resources.get("claims"):
        yield from (GPU, *(resource for _, resource in _OF_RAY if resource))
    for name, value in (resources.get("limits") or {}).items():
        if ACCELERATOR.search(name) and not is_gpu(name) and _whole(value) != 0:
            yield resource_of_ray(name) or "neuron_cores"


def offers_of(body: ReadOnlyBody) -> list[Offer]:
    """What the nodes of a RayCluster offer: of the head, and of each group."""
    if (body["metadata"].get("annotations") or {}).get(OWN_COMMAND) == "true":
        return [{ANY: None}]  # only its containers know
    return [offered(group) for _, group in groups_of(body["spec"])]


def resource_of_ray(name: str) -> str | None:
    """What a resource of accelerators is to Ray: `GPU`, or a custom resource. None: nothing by itself."""
    return next((found for pattern, found in _OF_RAY if pattern.fullmatch(name)), GPU)


def counted_by_autoscaler(name: str) -> bool:
    """Whether Ray's autoscaler finds a resource of accelerators in a group by itself (autoscaling_config.py:
    _get_num_gpus, _get_num_tpus)."""
    return name.endswith("gpu") or name == "google.com/tpu"


def missing(demand: Mapping[str, float], offers: Sequence[Offer]) -> tuple[str, Decimal] | None:
    """A resource of which no node offers as much as is demanded, and the most that one offers; None: there is none."""
    for name, value in demand.items():
        amounts = [each.get(name, each.get(ANY, Decimal(0))) for each in offers]
        known = [each for each in amounts if each is not None]
        most = max(known, default=Decimal(0))
        if len(known) == len(amounts) and not name.startswith(_BY_RAY) and Decimal(str(value)) > most:
            return name, most
    return None


def without_room(
    demand: Mapping[str, float],
    places: Mapping[str, Path],
    offers: Sequence[Offer],
    what: str,
    of: str = "no head or worker",
) -> Iterator[Problem]:
    """What `what` needs and no node has room for, so that it would wait for ever. `places`: the path of each amount.
    `of`: whose offers these are."""
    if lacking := missing(demand, offers):
        name, most = lacking
        offered = f"more than {_amount(name, most)}" if most else "any"
        message = (
            f"{what} needs {_amount(name, Decimal(str(demand[name])))}, and {of} offers {offered}: ask "
            "for less, or use larger workers"
        )
        yield Problem(places[name], demand[name], message, NO_ROOM)
    elif not any(fits(demand, offer) for offer in offers):
        asked = " and ".join(_amount(name, Decimal(str(value))) for name, value in demand.items())
        message = f"{what} needs {asked} together, and {of} offers all of it: ask for less, or add such workers"
        yield Problem(places[next(iter(demand))], None, message, NO_ROOM)


def fits(demand: Mapping[str, float], offer: Offer) -> bool:
    """Whether a node that runs nothing else has room for a demand."""
    return missing(demand, [offer]) is None


def _amount(name: str, value: Decimal) -> str:
    if name == MEMORY:
        return f"{shown(MEMORY, value)} of memory"
    number, words = f"{value.normalize():f}", _SHOWN.get(name)
    if words is None:
        return f"{number} of {name!r}"
    return f"{number} {words.removesuffix('s') if value == 1 else words}"


def problems_of_nodes(
    spec: ReadOnlyBody, path: Path = ("spec",), ports: Mapping[str, int] | None = None
) -> Iterator[Problem]:
    """What neither `ray start` nor Ray's autoscaler can do with the groups of a spec at `path`; of one value the first
    problem alone. `ports`: of the head, as for `problems_of_group`; those of workers are then compared, too."""
    refused: list[Problem] = []
    for at, group in groups_of(spec, path):
        # Overrides may remove the version.
        of_group = ports if at[-1] == "headGroupSpec" else {"metrics": metrics_port(group)}
        refused += problems_of_group(group, spec.get("rayVersion"), at, of_group if ports else None)
    yield from refused
    reported = {each.path for each in refused}
    yield from (each for each in problems_for_autoscaler(spec, path) if each.path not in reported)


def problems_for_autoscaler(spec: ReadOnlyBody, path: Path = ("spec",)) -> Iterator[Problem]:
    """What ends Ray's autoscaler while it reads the spec of a RayCluster at `path`."""
    if not spec.get("enableInTreeAutoscaling"):
        return
    if "workerGroupSpecs" not in spec:
        message = "Ray's autoscaler ends without it: write workerGroupSpecs: [], or remove enableInTreeAutoscaling"
        yield Problem((*path, "workerGroupSpecs"), None, message, "autoscaler-reads")
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
            message = (
                f"Ray's autoscaler ends with {name} {params[name]}, because it reads whole numbers only: write one"
            )
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
    values = custom_resources(text).items()
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
