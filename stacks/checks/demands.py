"""Jobs and replicas of services that no node of their RayCluster has room for, so that they would wait for ever. Pure
functions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from components.ray_cluster.problems import OWN_COMMAND
from components.ray_job.settings import RayJobSettings
from components.ray_service.serve_config import DeploymentSettings
from components.ray_service.settings import RayServiceSettings
from core.body import ReadOnlyBody
from core.nodes import NodePool
from core.problems import Path, Problem, Problems
from core.quantities import shown
from kuberay.offers import CPU, GPU, MEMORY, Offer, fits, missing, offered
from kuberay.rules import groups_of
from stacks.objects.ray_clusters import rendered
from stacks.settings import StackSettings, TenantSettings

_RULE = "no-room-for-demand"

_SHOWN = {CPU: "CPUs", GPU: "GPUs"}


def problems_of_entrypoint(stack: StackSettings, tenant: TenantSettings, job: RayJobSettings) -> Iterator[Problem]:
    """What the entrypoint of a job reserves and no node offers; paths are in the job's settings."""
    demand = _named({CPU: job.entrypoint_num_cpus, GPU: job.entrypoint_num_gpus}, job.entrypoint_resources)
    cluster = tenant.cluster_of(job)
    if not demand or cluster is None:
        return
    try:
        body = rendered(stack, tenant, cluster)
    except Problems:
        return
    paths: dict[str, Path] = {CPU: ("entrypointNumCpus",), GPU: ("entrypointNumGpus",)}
    places = {name: paths.get(name, ("entrypointResources", name)) for name in demand}
    yield from _without_room(demand, places, _offers(body), "the entrypoint")


def problems_of_replicas(
    service: RayServiceSettings, body: ReadOnlyBody, pools: Sequence[NodePool]
) -> Iterator[Problem]:
    """What a replica of a service needs and no node offers; paths are in the service's settings. `body`: the
    RayService's."""
    offers = _offers({**body, "spec": body["spec"]["rayClusterConfig"]})
    for at, application in enumerate(service.config.applications):
        for number, deployment in enumerate(application.deployments):
            found = [*_of_replica(deployment, offers), *_over_nodes(deployment, body["spec"]["rayClusterConfig"])]
            path: Path = ("serveConfigV2", "applications", at, "deployments", number)
            yield from (problem.below(path) for problem in found)
    yield from _other_gpus(service, pools)


def _of_replica(deployment: DeploymentSettings, offers: Sequence[Offer]) -> Iterator[Problem]:
    bundles = deployment.placement_group_bundles or ()
    for index, bundle in enumerate(bundles):
        places: dict[str, Path] = {name: ("placement_group_bundles", index, name) for name in bundle}
        yield from _without_room(bundle, places, offers, "a bundle")
    options = deployment.ray_actor_options
    if options and not bundles:
        demand = _named({CPU: options.num_cpus, GPU: options.num_gpus, MEMORY: options.memory}, options.resources)
        keys = {CPU: ("num_cpus",), GPU: ("num_gpus",), MEMORY: ("memory",)}
        places = {name: ("ray_actor_options", *keys.get(name, ("resources", name))) for name in demand}
        yield from _without_room(demand, places, offers, "a replica")
    if deployment.placement_group_strategy == "STRICT_PACK" and all(
        any(fits(each, offer) for offer in offers) for each in bundles
    ):
        together = {name: sum(each.get(name, 0) for each in bundles) for each in bundles for name in each}
        places = dict.fromkeys(together, ("placement_group_strategy",))
        yield from _without_room(together, places, offers, "a replica with all its bundles (STRICT_PACK)")


def _without_room(
    demand: Mapping[str, float], places: Mapping[str, Path], offers: Sequence[Offer], what: str
) -> Iterator[Problem]:
    if lacking := missing(demand, offers):
        name, most = lacking
        offered = f"more than {_amount(name, most)}" if most else "any"
        message = (
            f"{what} needs {_amount(name, Decimal(str(demand[name])))}, and no head or worker offers {offered}: ask "
            "for less, or use larger workers"
        )
        yield Problem(places[name], demand[name], message, _RULE)
    elif not any(fits(demand, offer) for offer in offers):
        asked = " and ".join(_amount(name, Decimal(str(value))) for name, value in demand.items())
        message = (
            f"{what} needs {asked} together, and no head or worker offers all of it: ask for less, or add such workers"
        )
        yield Problem(places[next(iter(demand))], None, message, _RULE)


def _over_nodes(deployment: DeploymentSettings, spec: ReadOnlyBody) -> Iterator[Problem]:
    """Replicas that the most nodes of the cluster cannot hold with max_replicas_per_node."""
    each, replicas = deployment.max_replicas_per_node, deployment.num_replicas
    if each is None or not isinstance(replicas, int):
        return
    nodes = 1 + sum(_most(spec, group) for group in spec.get("workerGroupSpecs") or ())
    if replicas > each * nodes:
        message = (
            f"{replicas} replicas with {each} on a node need {-(-replicas // each)} nodes, and the cluster has at most "
            f"{nodes} with its head: raise it, or the cluster's workers"
        )
        yield Problem(("max_replicas_per_node",), each, message, _RULE)


def _most(spec: ReadOnlyBody, group: ReadOnlyBody) -> int:
    """The most nodes of a group."""
    number = group.get("maxReplicas", 2**31 - 1) if spec.get("enableInTreeAutoscaling") else group.get("replicas", 0)
    return int(number) * int(group.get("numOfHosts", 1))


def _other_gpus(service: RayServiceSettings, pools: Sequence[NodePool]) -> Iterator[Problem]:
    """A model that waits for GPUs which the nodes of its pool do not have. Ray reads the product of a GPU as the
    driver names it (ray, python/ray/_private/accelerators/nvidia_gpu.py: _gpu_name_to_accelerator_type)."""
    llm = service.llm
    product = next((each.gpu_product for each in pools if llm and each.pool == llm.pool), None)
    if llm is None or llm.accelerator_type is None or product is None:
        return
    if llm.accelerator_type.partition("-")[0].lower() not in product.lower().split("-"):
        message = (
            f"the GPUs of pool {llm.pool!r} are {product}, so that no replica would start: remove it, or name theirs"
        )
        yield Problem(("llm", "acceleratorType"), llm.accelerator_type, message, _RULE)


def _named(amounts: Mapping[str, float | None], resources: Mapping[str, float]) -> dict[str, float]:
    return {**{name: value for name, value in amounts.items() if value}, **resources}


def _offers(body: ReadOnlyBody) -> list[Offer]:
    """What the nodes of a RayCluster offer: of the head, and of each group."""
    spec = body["spec"]
    if (body["metadata"].get("annotations") or {}).get(OWN_COMMAND) == "true":
        return [defaultdict(lambda: None)]  # only its containers know
    return [offered(group) for _, group in groups_of(spec)]


def _amount(name: str, value: Decimal) -> str:
    if name == MEMORY:
        return f"{shown(MEMORY, value)} of memory"
    number, words = f"{value.normalize():f}", _SHOWN.get(name)
    if words is None:
        return f"{number} of {name!r}"
    return f"{number} {words.removesuffix('s') if value == 1 else words}"
