"""The alerts: what each means, when it fires, and how it reads (docs/runbooks.md has a section for each). And the
recording rules: GPUs and GPU-hours that tenants hold, use and waste, what these cost, when heads began, and which
RayClusters have been ready.

Conditions use only the metrics of `metrics` and the records. Each condition ends by itself once its cause has ended.

GPUs are Ray's logical ones: a worker holds as many as its pod requests, and a task or an actor uses as many as it
requests. How busy a device itself is, is not counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from components.monitoring.metrics import (
    CertManager,
    Cml,
    Gateway,
    Job,
    KubeRay,
    Kueue,
    Prometheus,
    Ray,
    Recorded,
    Redis,
    Volcano,
)
from core.body import Body

Severity = Literal["critical", "warning"]
"""`critical`: work has stopped or is lost. `warning`: somebody should look at it today."""

Part = Literal["ray", "kuberay", "cml", "gateway", "redis", "redis-quorum", "volcano", "kueue", "cert-manager"]
"""What a stack must have for an alert."""


@dataclass(frozen=True)
class Alert:
    """An alert. Fields: `name`; `part`: what it is about; `condition`: PromQL; `after`: time for which the condition
    has to hold; `severity`; `summary`: one sentence for a person, with Prometheus' templates."""

    name: str
    part: Part
    condition: str
    after: str
    severity: Severity
    summary: str


_CLUSTER = "{{ $labels.namespace }}/{{ $labels.ray_io_cluster }}"
_BY = "namespace, ray_io_cluster"


def _up(job: Job) -> str:
    return f'max by ({_BY}) ({Prometheus.UP}{{job="{job}"}})'


def _failed(when: str = "") -> str:
    return f'max by (namespace, name, uid) ({KubeRay.JOB_STATUS}{{deployment_status=~"Failed|ValidationFailed"}}{when})'


def _gone(job: Job, by: str) -> str:
    """Pods that were scraped within an hour, and are not there any more: a target without a pod has no `up`."""
    up = f'{Prometheus.UP}{{job="{job}"}}'
    return f"group by ({by}) (last_over_time({up}[1h])) unless on ({by}) {up}"


def _gcs(within: str = "") -> str:
    reported = f"last_over_time({Ray.GCS}{within})" if within else Ray.GCS
    return f"group by ({_BY}) ({reported})"


_HEAD_AGE = f'time() - max by ({_BY}) ({Ray.STARTED}{{job="{Job.HEAD}"}})'
_HEAD_DOWN = f"{_up(Job.HEAD)} == 0"
_MISSING = f'{Recorded.WORKERS} - sum by ({_BY}) ({Prometheus.UP}{{job="{Job.WORKER}"}} or 0 * {Recorded.WORKERS})'
_PROVISIONED = f'max by ({_BY}) ({KubeRay.CLUSTER_PROVISIONED}{{condition="true"}})'
_NOT_PROVISIONED = f'{KubeRay.CLUSTER_PROVISIONED}{{condition="false"}}'

_OF_RAY = (
    Alert(
        "KubeRayOperatorDown",
        "kuberay",
        f'absent({Prometheus.UP}{{job="{Job.OPERATOR}"}} == 1)',
        "5m",
        "critical",
        "The KubeRay operator does not answer: RayClusters are neither created, repaired nor deleted.",
    ),
    Alert(
        "RayClusterNotReady",
        "kuberay",
        # A suspended RayCluster has been ready before, and has no pods.
        f"max by ({_BY}) ({_NOT_PROVISIONED} unless on (uid) {Recorded.WAS_READY}) "
        f"or max by ({_BY}) ({_NOT_PROVISIONED}) and on ({_BY}) {_up(Job.HEAD)}",
        "15m",
        "warning",
        f"RayCluster {_CLUSTER} has not become ready: its pods do not start, or it waits in a queue.",
    ),
    Alert(
        "RayHeadUnreachable",
        "ray",
        # A head whose image is still pulled does not answer either: RayClusterNotReady is about those.
        f"{_HEAD_DOWN} unless on ({_BY}) {_NOT_PROVISIONED} or {_PROVISIONED} unless on ({_BY}) {_up(Job.HEAD)}",
        "5m",
        "critical",
        f"The head of RayCluster {_CLUSTER} does not answer, or there is none.",
    ),
    Alert(
        "RayHeadRestarts",
        "ray",
        f"changes({Recorded.HEAD_STARTED}[1h]) >= 2",
        "0s",
        "warning",
        f"The head of RayCluster {_CLUSTER} has restarted {{{{ $value }}}} times within an hour.",
    ),
    Alert(
        "RayGcsUnreachable",
        "ray",
        # Only a head that runs for a minute, and whose GCS has reported within an hour: other versions of Ray may have
        # no such metric. Ray ends a minute after its GCS, and the head's metrics with it; so a moment counts for five.
        f"max_over_time(({_HEAD_AGE} > 60 and on ({_BY}) {_gcs('[1h]')} unless on ({_BY}) {_gcs()})[5m:15s])",
        "0s",
        "critical",
        f"The GCS of RayCluster {_CLUSTER} does not answer: no task, actor or node can start there.",
    ),
    Alert(
        "RayAutoscalerStuck",
        "ray",
        f"({_up(Job.AUTOSCALER)} == 0 and on ({_BY}) {_up(Job.HEAD)} == 1) "
        f"or sum by ({_BY}) (increase({Ray.AUTOSCALER_EXCEPTIONS}[10m])) > 0",
        "10m",
        "warning",
        f"The autoscaler of RayCluster {_CLUSTER} does not answer or fails: the cluster does not scale.",
    ),
    Alert(
        "RayWorkersPending",
        "ray",
        # On Cloudera ML the head does not know how many workers it should have, and relays the metrics of those it has.
        f"sum by ({_BY}) ({Ray.PENDING_NODES}) > 0 or {_MISSING} > 0 and on ({_BY}) {_up(Job.HEAD)} == 1",
        "30m",
        "warning",
        f"{{{{ $value }}}} workers of RayCluster {_CLUSTER} have been requested and do not start.",
    ),
    Alert(
        "RayDemandPending",
        "ray",
        f'sum by ({_BY}) ({Ray.UNSCHEDULABLE_TASKS}{{Reason="Infeasible"}}) > 0 '
        f'or sum by ({_BY}) ({Ray.PLACEMENT_GROUPS}{{State="PENDING"}}) > 0',
        "30m",
        "warning",
        f"Tasks, actors or placement groups of RayCluster {_CLUSTER} wait for resources that it does not have.",
    ),
    Alert(
        "RayGpusIdle",
        "ray",
        f"sum by ({_BY}) ({Recorded.HELD}) > 0 unless on ({_BY}) sum by ({_BY}) ({Recorded.USED}) > 0",
        "1h",
        "warning",
        f"RayCluster {_CLUSTER} holds {{{{ $value }}}} GPUs, and none of its tasks and actors uses one.",
    ),
    Alert(
        "RaySpillingDiskFull",
        "ray",
        f"max by ({_BY}, pod) ({Ray.DISK_PERCENT}) > 85 "
        f'and on ({_BY}, pod) max by ({_BY}, pod) ({Ray.OBJECT_STORE}{{Location="SPILLED"}}) > 0',
        "5m",
        "warning",
        f"Pod {{{{ $labels.pod }}}} of RayCluster {_CLUSTER} spills objects to a disk that is "
        '{{ $value | printf "%.0f" }} % full; at 95 % Ray stops.',
    ),
    Alert(
        "RayJobFailed",
        "kuberay",
        # For a day: a RayJob that has failed may stay for years. Another one of its name has another uid.
        f"max by (namespace, name) ({_failed()} unless {_failed(' offset 1d')})",
        "0s",
        "warning",
        "RayJob {{ $labels.namespace }}/{{ $labels.name }} has failed.",
    ),
    Alert(
        "RayClusterJobFailed",
        "cml",
        f"max by ({_BY}) ({Cml.FAILED_JOBS}) > 0",
        "0s",
        "warning",
        f"{{{{ $value }}}} jobs of Ray cluster {_CLUSTER} have failed within a day.",
    ),
    Alert(
        "RayServiceNotReady",
        "kuberay",
        f'max by (namespace, name) ({KubeRay.SERVICE_READY}{{condition="false"}}) == 1',
        "15m",
        "critical",
        "RayService {{ $labels.namespace }}/{{ $labels.name }} has no endpoint that answers requests.",
    ),
)

_OF_REDIS = (
    Alert(
        "RayRedisUnreachable",
        "gateway",
        f"sum by ({_BY}) ({Gateway.CLIENTS} - {Gateway.CONNECTED}) > 0",
        "1m",
        "critical",
        f"The gateway of RayCluster {_CLUSTER} finds no master of Redis; it holds {{{{ $value }}}} connections of Ray.",
    ),
    Alert(
        "RayRedisFailover",
        "gateway",
        f"max by ({_BY}) (increase({Gateway.MASTERS}[15m])) > 0",
        "0s",
        "warning",
        f"Another node of Redis has become the master for RayCluster {_CLUSTER}.",
    ),
    Alert(
        "RayRedisGatewayLostWrites",
        "gateway",
        f"sum by ({_BY}) (increase({Gateway.LOST}[1h])) > 0",
        "0s",
        "critical",
        f"A failover of Redis has lost writes of RayCluster {_CLUSTER}, which Ray believes to be stored.",
    ),
    Alert(
        "RayRedisNodeDown",
        "redis",
        f'{Redis.UP}{{job="{Job.REDIS}"}} == 0 or {Prometheus.UP}{{job="{Job.REDIS}"}} == 0 '
        f"or {_gone(Job.REDIS, 'namespace, pod')}",
        "5m",
        "warning",
        "Node {{ $labels.pod }} of Redis in namespace {{ $labels.namespace }} does not answer.",
    ),
    Alert(
        "RayRedisQuorumLost",
        "redis-quorum",
        # A node whose exporter has answered within a day and does not now has no `redis_up`.
        f'sum by (namespace) ({Redis.UP}{{job="{Job.REDIS}"}} or {Prometheus.UP}{{job="{Job.REDIS}"}} == 0 '
        f'and last_over_time({Redis.UP}{{job="{Job.REDIS}"}}[1d])) < 2 or {_gone(Job.REDIS, "namespace")}',
        "1m",
        "critical",
        "Fewer than two of three nodes of Redis in namespace {{ $labels.namespace }} answer: it accepts no writes.",
    ),
    Alert(
        "RayRedisMemory",
        "redis",
        f"{Redis.USED} / ({Redis.MOST} > 0) > 0.9",
        "10m",
        "warning",
        "Node {{ $labels.pod }} of Redis in namespace {{ $labels.namespace }} has used "
        "{{ $value | humanizePercentage }} of its memory; when it is full, it refuses writes.",
    ),
)

_OF_QUEUES = (
    Alert(
        "VolcanoQueueStarved",
        "volcano",
        f"({Volcano.DESERVED} > {Volcano.ALLOCATED}) and ({Volcano.REQUESTED} > {Volcano.ALLOCATED})",
        "30m",
        "warning",
        "Queue {{ $labels.queue_name }} requests {{ $labels.resource }} and has less than its share.",
    ),
    Alert(
        "VolcanoPodGroupPending",
        "volcano",
        f"sum by (queue_name) ({Volcano.PENDING}) + on (queue_name) sum by (queue_name) ({Volcano.ENQUEUED}) > 0",
        "1h",
        "warning",
        "{{ $value }} gangs wait in queue {{ $labels.queue_name }}.",
    ),
    Alert(
        "KueueQueueStarved",
        "kueue",
        f"sum by (cluster_queue) ({Kueue.PENDING}) > 0 "
        f"unless on (cluster_queue) sum by (cluster_queue) ({Kueue.ADMITTED}) > 0",
        "30m",
        "warning",
        "{{ $value }} RayClusters and RayJobs wait in queue {{ $labels.cluster_queue }}, and none is admitted there.",
    ),
)

_OF_CERTIFICATES = (
    Alert(
        "RayCertificateNotRenewed",
        "cert-manager",
        # Prometheus renames a label of the metric that the target has, too, unless the target honors labels.
        f"(max by (namespace, exported_namespace, name) ({CertManager.RENEWAL}) > 0) < time()",
        "1h",
        "warning",
        "cert-manager should have renewed certificate {{ $labels.name }} of namespace "
        "{{ or $labels.exported_namespace $labels.namespace }}, and has not: once it ends, nothing connects with it.",
    ),
)

ALERTS: Mapping[str, Alert] = {each.name: each for each in (*_OF_RAY, *_OF_REDIS, *_OF_QUEUES, *_OF_CERTIFICATES)}
"""All alerts by their names."""


INTERVAL = 60
"""Seconds between two evaluations. Sums over time divide by it."""

_BY_GROUP = "namespace, ray_io_cluster, ray_io_group"


def records(prices: Mapping[float, Sequence[str]], on_cml: Mapping[tuple[str, str], int]) -> list[Body]:
    """The recording rules.

    `prices`: of a GPU for an hour, each with the worker groups that have it; empty: no cost is recorded. `on_cml`: how
    many workers a cluster on Cloudera ML should have, by its project and name.
    """
    gpus = f'{Ray.RESOURCES}{{Name="GPU"}}'
    used = f'{Ray.RESOURCES}{{Name="GPU",State="USED"}}'
    expressions = {
        Recorded.HEAD_STARTED: f'max by (namespace, ray_io_cluster) ({Ray.STARTED}{{job="{Job.HEAD}"}})',
        Recorded.WAS_READY: _was_ready(),
        Recorded.HELD: f"sum by ({_BY_GROUP}) ({gpus})",
        Recorded.USED: f"sum by ({_BY_GROUP}) ({used})",
        Recorded.WASTED: f"{Recorded.HELD} - {Recorded.USED}",
        Recorded.HOURS_HELD: _over_a_day(Recorded.HELD),
        Recorded.HOURS_USED: _over_a_day(Recorded.USED),
        Recorded.HOURS_WASTED: _over_a_day(Recorded.WASTED),
        **({Recorded.COST: _cost(prices), Recorded.COST_OF_DAY: _over_a_day(Recorded.COST)} if prices else {}),
    }
    desired = [
        {
            "record": str(Recorded.WORKERS),
            "expr": f"vector({workers})",
            "labels": {"namespace": project, "ray_io_cluster": cluster},
        }
        for (project, cluster), workers in on_cml.items()
    ]
    return [*({"record": str(name), "expr": expression} for name, expression in expressions.items()), *desired]


def _was_ready() -> str:
    """It remembers by its own last value, over a day in which the operator or Prometheus may be down."""
    now, ever = f'{KubeRay.CLUSTER_PROVISIONED}{{condition="true"}}', f"last_over_time({Recorded.WAS_READY}[1d])"
    exists = f'{KubeRay.CLUSTER_PROVISIONED}{{condition="false"}}'
    return f"group by (namespace, ray_io_cluster, uid) ({now} or {exists} and on (uid) {ever})"


def _cost(prices: Mapping[float, Sequence[str]]) -> str:
    priced = (f'{Recorded.HELD}{{ray_io_group=~"{"|".join(groups)}"}} * {price}' for price, groups in prices.items())
    return f"sum by (namespace) ({' or '.join(priced)})"


def _over_a_day(record: Recorded) -> str:
    return f"sum by (namespace) (sum_over_time({record}[1d])) / {3600 // INTERVAL}"
