"""Jobs and models of services that no node of their RayCluster has room for, so that they would wait for ever. Pure
functions."""

from collections.abc import Iterator, Sequence

from components.ray_job.settings import RayJobSettings
from components.ray_service.settings import RayServiceSettings
from core.body import ReadOnlyBody
from core.nodes import NodePool
from core.problems import Problem, Problems
from kuberay.demands import problems_of_entrypoint
from kuberay.offers import NO_ROOM, offers_of
from stacks.objects.ray_clusters import rendered
from stacks.settings import StackSettings, TenantSettings


def problems_of_job(
    stack: StackSettings, tenant: TenantSettings, job: RayJobSettings, body: ReadOnlyBody
) -> Iterator[Problem]:
    """What the entrypoint of a job reserves and no node of its RayCluster offers; paths are in the job's settings.
    `body`: the RayJob's."""
    cluster = tenant.cluster_of(job)
    if cluster is None:
        return
    try:
        offers = offers_of(rendered(stack, tenant, cluster))
    except Problems:
        return
    yield from problems_of_entrypoint(body["spec"], offers)


def problems_of_model(service: RayServiceSettings, pools: Sequence[NodePool]) -> Iterator[Problem]:
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
        yield Problem(("llm", "acceleratorType"), llm.accelerator_type, message, NO_ROOM)
