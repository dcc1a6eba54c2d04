"""The alerts about Ray and KubeRay."""

from tests.unit.monitoring.case import (
    FAILED_JOBS,
    GCS,
    INFEASIBLE,
    OF_CLUSTER,
    PENDING_GROUPS,
    PENDING_NODES,
    PODS,
    PROCESS_STARTED,
    WAITING,
    Case,
    disk,
    gpus,
    growing,
    job,
    over,
    provisioned,
    service,
    spilled,
    up,
)

LAB = 'namespace="one",ray_io_cluster="lab"'
"""A cluster on Cloudera ML that should have three workers."""

WORKERS = [up("ray-worker", f'{LAB},pod="workers-{number}"') for number in range(3)]

CASES = (
    Case(
        "KubeRayOperatorDown",
        {up("kuberay-operator", 'namespace="ray-system"'): over((1, 5), (0, 10), (1, 10))},
        begins=10,
        ends=15,
        labels={},
        summary="The KubeRay operator does not answer: RayClusters are neither created, repaired nor deleted.",
        quiet={up("kuberay-operator", 'namespace="ray-system"'): over((1, 5), (0, 4), (1, 200))},
    ),
    Case(
        "RayClusterNotReady",
        {provisioned("false"): over((1, 20), ("_", 60)), provisioned("true"): over(("_", 20), (1, 60))},
        begins=15,
        ends=20,
        summary="RayCluster team-a/training has not become ready: its pods do not start, or it waits in a queue.",
        quiet={provisioned("false"): over((1, 14), ("_", 60)), provisioned("true"): over(("_", 14), (1, 60))},
    ),
    # A suspended cluster was ready before.
    Case(
        "RayClusterNotReady",
        {
            provisioned("true"): over((1, 5), ("_", 100), (1, 9)),
            provisioned("false"): over(("_", 5), (1, 100), ("_", 9)),
        }
        | {up("ray-head"): over((1, 5), ("_", 45), (1, 60))},
        begins=65,
        ends=105,
        summary="RayCluster team-a/training has not become ready: its pods do not start, or it waits in a queue.",
        quiet={provisioned("true"): over((1, 5), ("_", 300)), provisioned("false"): over(("_", 5), (1, 300))},
    ),
    Case(
        "RayHeadUnreachable",
        {up("ray-head"): over((1, 5), (0, 10), (1, 30)), provisioned("true"): over((1, 60))},
        begins=10,
        ends=15,
        summary="The head of RayCluster team-a/training does not answer, or there is none.",
        # A suspended cluster has no head, and is not provisioned.
        quiet={provisioned("false"): over((1, 60))},
    ),
    Case(
        "RayHeadUnreachable",
        {up("ray-head"): over((1, 5), (0, 10), (1, 30))},
        begins=10,
        ends=15,
        summary="The head of RayCluster team-a/training does not answer, or there is none.",
        # Its first image is being pulled.
        quiet={provisioned("false"): over((1, 60)), up("ray-head"): over((0, 60))},
    ),
    Case(
        "RayHeadUnreachable",
        {up("ray-head"): over((1, 5), ("_", 20), (1, 30)), provisioned("true"): over((1, 60))},
        begins=10,
        ends=25,
        summary="The head of RayCluster team-a/training does not answer, or there is none.",
        quiet={up("ray-head"): over((1, 60)), provisioned("true"): over((1, 60))},
    ),
    Case(
        "RayHeadRestarts",
        {PROCESS_STARTED: over((100, 10), (700, 10), (1300, 120))},
        begins=20,
        ends=70,
        summary="The head of RayCluster team-a/training has restarted 2 times within an hour.",
        quiet={PROCESS_STARTED: over((100, 10), (700, 120))},
    ),
    Case(
        "RayGcsUnreachable",
        {PROCESS_STARTED: over((0, 60)), GCS: over((0, 5), ("_", 10), (0, 30))},
        begins=5,
        ends=20,
        summary="The GCS of RayCluster team-a/training does not answer: no task, actor or node can start there.",
        # A head that restarts, whose GCS reports a minute later.
        quiet={PROCESS_STARTED: over((0, 10), (600, 60)), GCS: over((0, 10), ("_", 1), (0, 60))},
    ),
    Case(
        "RayGcsUnreachable",
        {PROCESS_STARTED: over((0, 60)), GCS: over((0, 5), ("_", 1), (0, 30))},
        begins=5,
        ends=11,
        summary="The GCS of RayCluster team-a/training does not answer: no task, actor or node can start there.",
        # A version of Ray that has no such metric.
        quiet={PROCESS_STARTED: over((0, 60))},
    ),
    Case(
        "RayAutoscalerStuck",
        {up("ray-autoscaler"): over((1, 5), (0, 20), (1, 30)), up("ray-head"): over((1, 60))},
        begins=15,
        ends=25,
        summary="The autoscaler of RayCluster team-a/training does not answer or fails: the cluster does not scale.",
        # Without its head there is no autoscaler, which RayHeadUnreachable reports.
        quiet={up("ray-autoscaler"): over((0, 60)), up("ray-head"): over((0, 60))},
    ),
    Case(
        "RayAutoscalerStuck",
        {f"autoscaler_update_loop_exceptions_total{{{PODS}}}": growing(5, 6, 20)},
        begins=15,
        ends=34,
        summary="The autoscaler of RayCluster team-a/training does not answer or fails: the cluster does not scale.",
        quiet={f"autoscaler_update_loop_exceptions_total{{{PODS}}}": growing(5, 1, 1)},
    ),
    Case(
        "RayWorkersPending",
        {PENDING_NODES: over((0, 5), (2, 40), (0, 10))},
        begins=35,
        ends=45,
        summary="2 workers of RayCluster team-a/training have been requested and do not start.",
        quiet={PENDING_NODES: over((0, 5), (2, 25), (0, 5), (2, 25), (0, 30))},
    ),
    Case(
        "RayWorkersPending",
        {
            up("ray-head", LAB): over((1, 60)),
            WORKERS[0]: over((1, 60)),
            WORKERS[1]: over((1, 5), ("_", 40), (1, 10)),
            WORKERS[2]: over((1, 3), (0, 42), (1, 10)),
        },
        begins=33,
        ends=45,
        labels={"namespace": "one", "ray_io_cluster": "lab"},
        summary="2 workers of RayCluster one/lab have been requested and do not start.",
        # Without the head, which RayHeadUnreachable reports, or which `cml stop` has deleted.
        quiet={up("ray-head", LAB): over((1, 5), (0, 60)), WORKERS[0]: over((1, 5), ("_", 60))},
    ),
    Case(
        "RayWorkersPending",
        {up("ray-head", LAB): over((1, 50), ("_", 10))},
        begins=30,
        ends=50,
        labels={"namespace": "one", "ray_io_cluster": "lab"},
        summary="3 workers of RayCluster one/lab have been requested and do not start.",
        # A fourth one is removed.
        quiet={
            up("ray-head", LAB): over((1, 60)),
            up("ray-worker", f'{LAB},pod="workers-3"'): over((1, 40), ("_", 20)),
            **dict.fromkeys(WORKERS, over((1, 60))),
        },
    ),
    Case(
        "RayDemandPending",
        {INFEASIBLE: over((0, 5), (1, 40), (0, 10))},
        begins=35,
        ends=45,
        summary="Tasks, actors or placement groups of RayCluster team-a/training wait for resources that it does not "
        "have.",
        # A queue of tasks is what a busy cluster has.
        quiet={WAITING: over((500, 120)), INFEASIBLE: over((0, 120))},
    ),
    Case(
        "RayDemandPending",
        {PENDING_GROUPS: over((0, 5), (1, 40), (0, 10))},
        begins=35,
        ends=45,
        summary="Tasks, actors or placement groups of RayCluster team-a/training wait for resources that it does not "
        "have.",
        quiet={PENDING_GROUPS: over((0, 5), (1, 20), (0, 90))},
    ),
    Case(
        "RayGpusIdle",
        {gpus("AVAILABLE"): over((0, 10), (8, 90), (0, 20)), gpus("USED"): over((8, 10), (0, 90), (8, 20))},
        begins=70,
        ends=100,
        summary="RayCluster team-a/training holds 8 GPUs, and none of its tasks and actors uses one.",
        quiet={gpus("AVAILABLE"): over((7, 180)), gpus("USED"): over((1, 180))},
    ),
    Case(
        "RaySpillingDiskFull",
        {disk("worker-1"): over((50, 5), (91, 20), (60, 20)), spilled("worker-1"): over((1e9, 60))},
        begins=10,
        ends=25,
        labels={**OF_CLUSTER, "pod": "worker-1"},
        summary="Pod worker-1 of RayCluster team-a/training spills objects to a disk that is 91 % full; at 95 % Ray "
        "stops.",
        quiet={
            disk("worker-1"): over((91, 60)),
            spilled("worker-1"): over((0, 60)),
            spilled("worker-2"): over((5, 60)),
        },
    ),
    Case(
        "RayJobFailed",
        {job("Running"): over((1, 5), ("_", 30)), job("Failed"): over(("_", 5), (1, 10), ("_", 30))},
        begins=5,
        ends=15,
        labels={"namespace": "team-a", "name": "nightly"},
        summary="RayJob team-a/nightly has failed.",
        quiet={job("Running"): over((1, 20), ("_", 40)), job("Complete"): over(("_", 20), (1, 40))},
    ),
    Case(
        "RayJobFailed",
        {job("Running"): over((1, 5), ("_", 40)), job("Failed"): over(("_", 5), (1, 40))},
        begins=5,
        ends=5 + 24,
        unit="h",
        labels={"namespace": "team-a", "name": "nightly"},
        summary="RayJob team-a/nightly has failed.",
        quiet={job("Suspended"): over((1, 60))},
    ),
    # Another RayJob of the same name fails each day.
    Case(
        "RayJobFailed",
        {job("Failed", "1"): over((1, 24), ("_", 40)), job("Failed", "2"): over(("_", 25), (1, 40))},
        begins=25,
        ends=25 + 24,
        unit="h",
        labels={"namespace": "team-a", "name": "nightly"},
        summary="RayJob team-a/nightly has failed.",
        quiet={job("Complete"): over((1, 60))},
    ),
    Case(
        "RayClusterJobFailed",
        {FAILED_JOBS: over((0, 5), (2, 10), (0, 10))},
        begins=5,
        ends=15,
        summary="2 jobs of Ray cluster team-a/training have failed within a day.",
        quiet={FAILED_JOBS: over((0, 60))},
    ),
    Case(
        "RayServiceNotReady",
        {service("false"): over((1, 20), ("_", 60)), service("true"): over(("_", 20), (1, 60))},
        begins=15,
        ends=20,
        labels={"namespace": "team-a", "name": "chat"},
        summary="RayService team-a/chat has no endpoint that answers requests.",
        quiet={service("true"): over((1, 60))},
    ),
)
