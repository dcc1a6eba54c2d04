"""The alerts about Redis, its gateway, Volcano, Kueue and cert-manager."""

from tests.unit.monitoring.case import (
    CLIENTS,
    CONNECTED,
    KUEUE_ADMITTED,
    KUEUE_PENDING,
    LOST,
    MASTERS,
    Case,
    gpus_of_queue,
    growing,
    over,
    queue,
    redis,
    renewal,
)

CASES = (
    Case(
        "RayRedisUnreachable",
        {CLIENTS: over((3, 60)), CONNECTED: over((3, 5), (1, 5), (3, 50))},
        begins=6,
        ends=10,
        summary="The gateway of RayCluster team-a/training finds no master of Redis; it holds 2 connections of Ray.",
        quiet={CLIENTS: over((3, 60)), CONNECTED: over((3, 5), (1, 1), (3, 54))},
    ),
    Case(
        "RayRedisFailover",
        {MASTERS: growing(10, 1, 1)},
        begins=10,
        ends=25,
        summary="Another node of Redis has become the master for RayCluster team-a/training.",
        # The first master of a new gateway.
        quiet={MASTERS: over((1, 60))},
    ),
    Case(
        "RayRedisGatewayLostWrites",
        {LOST: growing(10, 2, 1)},
        begins=10,
        ends=70,
        summary="A failover of Redis has lost writes of RayCluster team-a/training, which Ray believes to be stored.",
        quiet={LOST: over((0, 120))},
    ),
    Case(
        "RayRedisNodeDown",
        {redis("redis_up", 1): over((1, 5), (0, 10), (1, 30))},
        begins=10,
        ends=15,
        labels={"job": "ray-redis", "namespace": "ray-system", "pod": "ray-redis-1"},
        summary="Node ray-redis-1 of Redis in namespace ray-system does not answer.",
        quiet={redis("redis_up", 1): over((1, 5), (0, 4), (1, 60)), redis("up", 1): over((1, 60))},
    ),
    # A pod that waits for a node is not a target.
    Case(
        "RayRedisNodeDown",
        {redis("up", 1): over((1, 5), ("_", 20), (1, 30))},
        begins=10,
        ends=25,
        labels={"namespace": "ray-system", "pod": "ray-redis-1"},
        summary="Node ray-redis-1 of Redis in namespace ray-system does not answer.",
        quiet={redis("up", 1): over((1, 5), ("_", 4), (1, 60))},
    ),
    Case(
        "RayRedisQuorumLost",
        {redis(metric, pod): over((1, 5), ("_", 20), (1, 30)) for metric in ("up", "redis_up") for pod in range(3)},
        begins=6,
        ends=25,
        labels={"namespace": "ray-system"},
        summary="Fewer than two of three nodes of Redis in namespace ray-system answer: it accepts no writes.",
        quiet={redis("up", pod): over((1, 60)) for pod in range(3)},
    ),
    Case(
        "RayRedisQuorumLost",
        {
            redis("redis_up", 0): over((1, 60)),
            redis("redis_up", 1): over((1, 5), (0, 10), (1, 30)),
            redis("redis_up", 2): over((1, 5), (0, 20), (1, 30)),
        },
        begins=6,
        ends=15,
        labels={"namespace": "ray-system"},
        summary="Fewer than two of three nodes of Redis in namespace ray-system answer: it accepts no writes.",
        quiet={redis("redis_up", 0): over((1, 60)), redis("redis_up", 1): over((1, 60)), redis("redis_up", 2): "0x60"},
    ),
    Case(
        "RayRedisQuorumLost",
        # Their pods are still there, as on nodes of Kubernetes that do not answer.
        {
            **{redis("up", pod): over((1, 5), (0, 20), (1, 30)) for pod in range(3)},
            **{redis("redis_up", pod): over((1, 5), ("_", 20), (1, 30)) for pod in range(3)},
        },
        begins=6,
        ends=25,
        labels={"namespace": "ray-system"},
        summary="Fewer than two of three nodes of Redis in namespace ray-system answer: it accepts no writes.",
        # Their image is pulled for the first time.
        quiet={redis("up", pod): over((0, 60)) for pod in range(3)},
    ),
    Case(
        "RayRedisMemory",
        {
            redis("redis_memory_used_bytes", 0): over((100, 5), (950, 20), (100, 30)),
            redis("redis_memory_max_bytes", 0): over((1000, 60)),
        },
        begins=15,
        ends=25,
        labels={"job": "ray-redis", "namespace": "ray-system", "pod": "ray-redis-0"},
        summary="Node ray-redis-0 of Redis in namespace ray-system has used 95% of its memory; when it is full, it "
        "refuses writes.",
        # No limit is set.
        quiet={
            redis("redis_memory_used_bytes", 0): over((950, 60)),
            redis("redis_memory_max_bytes", 0): over((0, 60)),
        },
    ),
    Case(
        "VolcanoQueueStarved",
        {
            gpus_of_queue("request"): over((8000, 60)),
            gpus_of_queue("deserved"): over((4000, 60)),
            gpus_of_queue("allocated"): over((4000, 5), (2000, 40), (4000, 15)),
        },
        begins=35,
        ends=45,
        labels={"queue_name": "research", "resource": "nvidia.com/gpu"},
        summary="Queue research requests nvidia.com/gpu and has less than its share.",
        # It has its share, and requests more.
        quiet={
            gpus_of_queue("request"): over((8000, 120)),
            gpus_of_queue("deserved"): over((4000, 120)),
            gpus_of_queue("allocated"): over((4000, 120)),
        },
    ),
    Case(
        "VolcanoPodGroupPending",
        {
            queue("pod_group_pending_count"): over((0, 5), (1, 90), (0, 60)),
            queue("pod_group_inqueue_count"): over((2, 95), (0, 60)),
        },
        begins=60,
        ends=95,
        labels={"queue_name": "research"},
        summary="3 gangs wait in queue research.",
        quiet={queue("pod_group_pending_count"): over((1, 50), (0, 100)), queue("pod_group_inqueue_count"): "0x150"},
    ),
    Case(
        "KueueQueueStarved",
        {KUEUE_PENDING: over((0, 5), (3, 90)), KUEUE_ADMITTED: over((0, 45), (1, 50))},
        begins=35,
        ends=45,
        labels={"cluster_queue": "research"},
        summary="3 RayClusters and RayJobs wait in queue research, and none is admitted there.",
        quiet={KUEUE_PENDING: over((3, 120)), KUEUE_ADMITTED: over((1, 120))},
    ),
    Case(
        "RayCertificateNotRenewed",
        # Prometheus' tests begin at the time 0: a certificate is due after ten minutes, and renewed after 80.
        {renewal("training"): over((600, 80), (1_000_000, 40))},
        begins=71,
        ends=80,
        labels={"namespace": "team-a", "name": "training"},
        summary="cert-manager should have renewed certificate training of namespace team-a, and has not: once it ends, "
        "nothing connects with it.",
        quiet={renewal("training"): over((1_000_000, 120)), renewal("not-issued-yet"): over((0, 120))},
    ),
)
