"""Queues and gangs of Volcano, and the queue labels of RayClusters."""

from collections.abc import Iterator
from decimal import Decimal

from core.pods import RAY
from core.quantities import shown
from kuberay.schedulers import KUEUE_QUEUE_LABEL, QUEUE_LABEL
from policies.cel import CelCheck
from policies.rule import Severity, Violations, rule
from policies.values import Node, Object
from policies.walk import Pod, RayCluster, Stack

_VOLCANO = "scheduling.volcano.sh"
_VALIDATE = "volcano pkg/webhooks/admission/queues/validate/validate_queue.go"
_ROOT = "root"


def _queues(stack: Stack) -> dict[str, Object]:
    return {each.name or "": each for each in stack.of("Queue") if each.group == _VOLCANO}


@rule(
    "queue-guarantee-fits",
    Severity.HIGH,
    what="The guarantee of a queue is within its deserved resources and its capability.",
    why="Volcano's webhook refuses the queue in the middle of an update.",
    source=_VALIDATE,
    fix="Let guarantee.resource <= deserved <= capability, for each resource.",
    kinds=("Queue",),
)
def guarantee_fits(owner: Object) -> Violations:
    """Compares the amounts of each resource that are set."""
    spec = owner.root.at("spec")
    ordered = (spec.at("guarantee", "resource"), spec.at("deserved"), spec.at("capability"))
    for index, less in enumerate(ordered):
        for more in ordered[index + 1 :]:
            for resource, amount in less.entries():
                most = more.at(resource).quantity
                if amount.quantity is not None and most is not None and amount.quantity > most:
                    yield amount.wrong(f"{amount.shown()} is more than {more.path[-1]}, {more.at(resource).shown()}")


@rule(
    "queue-parent-exists",
    Severity.HIGH,
    what="The parents of queues exist.",
    why="Volcano's webhook refuses a queue whose parent does not exist.",
    source=_VALIDATE,
    fix="Add the parent to the stack, or remove spec.parent.",
)
def parent_exists(stack: Stack) -> Violations:
    """Each parent is a queue of the stack, or `root`. A stack of tenants is skipped: its parents may be elsewhere."""
    queues = _queues(stack)
    for queue in queues.values() if not stack.part else ():
        parent = queue.root.at("spec", "parent")
        if parent.text and parent.text != _ROOT and parent.text not in queues:
            yield parent.wrong(f"the stack has no queue {parent.shown()}")


@rule(
    "queue-children-fit",
    Severity.HIGH,
    what="The guarantees of a queue's children are within its own guarantee.",
    why="Volcano's webhook refuses the child that exceeds it.",
    source=_VALIDATE,
    fix="Raise the parent's guarantee, or lower those of its children.",
)
def children_fit(stack: Stack) -> Violations:
    """Sums the guarantees of the children, for each resource in the guarantee of the parent."""
    queues = _queues(stack)
    for name, queue in queues.items():
        children = [each for each in queues.values() if each.root.at("spec", "parent").text == name]
        for resource, amount in queue.root.at("spec", "guarantee", "resource").entries():
            guaranteed = sum(
                (each.root.at("spec", "guarantee", "resource", resource).quantity or Decimal(0) for each in children),
                Decimal(0),
            )
            if amount.quantity is not None and guaranteed > amount.quantity:
                yield amount.wrong(f"its children are guaranteed {guaranteed:g}, more than its {amount.shown()}")


@rule(
    "queue-has-limit",
    Severity.LOW,
    what="Queues have a limit.",
    why="A queue without a capability may take the whole cluster; other queues then wait for their guarantees.",
    source="https://volcano.sh/en/docs/queue/",
    fix="Set spec.capability.",
    kinds=("Queue",),
)
def has_limit(owner: Object) -> Violations:
    """Requires a capability."""
    capability = owner.root.at("spec", "capability")
    if owner.group == _VOLCANO and not capability.is_set:
        yield capability.wrong("is not set")


@rule(
    "ray-queue-exists",
    Severity.HIGH,
    what="The queue of a RayCluster exists.",
    why="Its pods stay pending for good, and only its PodGroup reports the reason.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/k8s-ecosystem/volcano.html",
    fix=f"Name a queue of the stack in label {QUEUE_LABEL}.",
)
def queue_exists(stack: Stack) -> Violations:
    """The stack has the queues of its RayClusters. Skipped if it has no queues, or another stack may have them."""
    queues = _queues(stack)
    for cluster in stack.ray_clusters():
        label = cluster.owner.label(QUEUE_LABEL)
        if queues and not stack.part and label.text and label.text not in {*queues, "default"}:
            yield label.wrong(f"the stack has no queue {label.shown()}")


@rule(
    "ray-gang-fits-queue",
    Severity.HIGH,
    what="A gang fits the queue that it waits in.",
    why="Volcano starts a gang whole or not at all: a gang that never fits waits for ever.",
    source="kuberay ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go",
    fix="Lower minReplicas, or replicas where the cluster does not scale; or raise the queue's capability.",
)
def gang_fits_queue(stack: Stack) -> Violations:
    """Compares the CPUs, memory, GPUs and all else that the pods of the gang need with the capability of the queue."""
    queues = _queues(stack)
    for cluster in stack.ray_clusters():
        label = cluster.owner.label(QUEUE_LABEL)
        queue = queues.get(label.text or "")
        if queue is None:
            continue
        for resource, most in queue.root.at("spec", "capability").entries():
            together = sum((amount for pod in cluster.pods() for amount in _needs(cluster, pod, resource)), Decimal(0))
            if most.quantity is not None and together > most.quantity:
                need = f"its pods need {shown(resource, together)} of {resource} at once"
                yield label.wrong(f"{need}, and {label.shown()} may have {most.shown()}")


def _needs(cluster: RayCluster, pod: Pod, resource: str) -> Iterator[Decimal]:
    """The amounts that the gang's pods of a group request, by container: the head, and all workers at the start."""
    assert pod.group is not None
    least = pod.group.at("minReplicas").number or 0
    workers = least if cluster.scales else max(pod.group.at("replicas").number or 0, least)
    pods = 1 if pod.role == "head" else workers * (pod.group.at("numOfHosts").number or 1)
    for container in pod.spec.at("containers").items():
        request = container.at("resources", "requests", resource)
        limit = container.at("resources", "limits", resource)
        yield pods * ((request if request.is_set else limit).quantity or Decimal(0))


@rule(
    "volcano-job-gang",
    Severity.HIGH,
    what="A Job of Volcano's waits for no more pods than it has.",
    why="It would wait for ever; Volcano's webhook refuses it.",
    source="volcano pkg/webhooks/admission/jobs/validate/admit_job.go",
    fix="Let minAvailable be at most the sum of its tasks' replicas.",
    kinds=("Job",),
)
def job_gang(owner: Object) -> Violations:
    """Compares `minAvailable` with the sum of `replicas`."""
    least = owner.root.at("spec", "minAvailable")
    if owner.group != "batch.volcano.sh" or least.number is None:
        return
    pods = sum(_replicas(task) for task in owner.root.at("spec", "tasks").items())
    if least.number > pods:
        yield least.wrong(f"{least.shown()} is more than its {pods} pods")


def _replicas(task: Node) -> int:
    replicas = task.at("replicas").number
    return 1 if replicas is None else replicas


@rule(
    "volcano-job-scheduler",
    Severity.MEDIUM,
    what="A Job of Volcano's is scheduled by Volcano.",
    why="Another scheduler ignores its gang and its queue.",
    source="https://volcano.sh/en/docs/vcjob/",
    fix="Set spec.schedulerName: volcano.",
    kinds=("Job",),
)
def job_scheduler(owner: Object) -> Violations:
    """Requires `volcano`, which is the default."""
    scheduler = owner.root.at("spec", "schedulerName")
    if owner.group == "batch.volcano.sh" and scheduler.is_set and scheduler.text != "volcano":
        yield scheduler.wrong(f"is {scheduler.shown()}")


def _kueue_labels(owner: Object) -> Iterator[Node]:
    label = owner.label(KUEUE_QUEUE_LABEL)
    if label.is_set:
        yield label


def _labelled_in_cel(key: str) -> str:
    return f"object.metadata.?labels[?'{key}'].hasValue()"


@rule(
    "ray-one-scheduler",
    Severity.HIGH,
    what="A RayCluster waits in one queue only: Kueue's or Volcano's.",
    why="Each holds back what the other has admitted, and neither counts what the other gives.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/k8s-ecosystem/kueue.html",
    fix="Remove one of the labels.",
    kinds=("RayCluster", "RayJob"),
    cel=CelCheck(
        ((RAY, "RayCluster"), (RAY, "RayJob")),
        f"!({_labelled_in_cel(KUEUE_QUEUE_LABEL)} && {_labelled_in_cel(QUEUE_LABEL)})",
    ),
)
def one_scheduler(owner: Object) -> Violations:
    """Rejects both labels on one object."""
    for label in _kueue_labels(owner):
        if owner.label(QUEUE_LABEL).is_set:
            yield label.wrong(f"is not allowed together with {QUEUE_LABEL}")


@rule(
    "ray-kueue-job-ends",
    Severity.HIGH,
    what="A RayJob that waits in Kueue shuts its cluster down.",
    why="KubeRay cannot suspend other RayJobs: it refuses them while they wait, and they keep their GPUs at the end.",
    source="kuberay ray-operator/controllers/ray/utils/validation.go: ValidateRayJobSpec",
    fix="Set shutdownAfterJobFinishes: true.",
    kinds=("RayJob",),
    cel=CelCheck(
        ((RAY, "RayJob"),),
        f"!{_labelled_in_cel(KUEUE_QUEUE_LABEL)} || size(object.spec.?clusterSelector.orValue({{}})) > 0"
        " || object.spec.?shutdownAfterJobFinishes.orValue(false) == true",
    ),
)
def kueue_job_ends(owner: Object) -> Violations:
    """Requires `shutdownAfterJobFinishes` if the object has the label of Kueue."""
    ends = owner.root.at("spec", "shutdownAfterJobFinishes")
    selects = owner.root.at("spec", "clusterSelector")  # Kueue leaves such a RayJob alone (rayjob_controller.go: Skip)
    if list(_kueue_labels(owner)) and not selects.value and ends.value is not True:
        yield ends.wrong("is not true")
