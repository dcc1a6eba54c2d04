"""The names that rules use, each once: of the targets, and of metrics with their place in the source of their program.

A metric that a pinned version renames is renamed here.
"""

from enum import StrEnum


class Job(StrEnum):
    """The label `job` of the metrics of each target, by which rules select them."""

    HEAD = "ray-head"
    WORKER = "ray-worker"
    AUTOSCALER = "ray-autoscaler"
    DASHBOARD = "ray-dashboard"
    GATEWAY = "ray-redis-gateway"
    REDIS = "ray-redis"
    OPERATOR = "kuberay-operator"
    VOLCANO_SCHEDULER = "volcano-scheduler"
    VOLCANO_CONTROLLERS = "volcano-controllers"
    KUEUE = "kueue"


class Prometheus(StrEnum):
    """Metrics of Prometheus itself (prometheus.io, Jobs and instances)."""

    UP = "up"
    """1: the target has answered; 0: it has not."""

    ALERTS = "ALERTS"
    """Pending and firing alerts by `alertname` and `alertstate` (prometheus.io, Alerting rules)."""


class Recorded(StrEnum):
    """The records of `rules`."""

    HEAD_STARTED = "ray_platform:head_started_seconds"
    """When the head of a RayCluster began."""

    WORKERS = "ray_platform:cml_workers"
    """Workers that a cluster on Cloudera ML should have."""

    WAS_READY = "ray_platform:cluster_was_ready"
    """RayClusters whose pods have all been ready, also those that are suspended now. Their label `uid` is KubeRay's."""

    HELD = "ray_platform:gpus_held"
    USED = "ray_platform:gpus_used"
    WASTED = "ray_platform:gpus_wasted"
    """GPUs by tenant, RayCluster and worker group."""

    HOURS_HELD = "ray_platform:gpu_hours_held:1d"
    HOURS_USED = "ray_platform:gpu_hours_used:1d"
    HOURS_WASTED = "ray_platform:gpu_hours_wasted:1d"
    """GPU-hours of the last 24 hours, by tenant."""

    COST = "ray_platform:cost_per_hour"
    COST_OF_DAY = "ray_platform:cost:1d"
    """Cost of GPUs held, by tenant."""


class KubeRay(StrEnum):
    """Metrics of the operator with `--enable-metrics` (KubeRay 1.5.1 and 1.6.2, ray-operator/controllers/ray/metrics).

    Each has the labels `name`, `namespace` and `uid` of its object.
    """

    CLUSTER_PROVISIONED = "kuberay_cluster_condition_provisioned"
    """ray_cluster_metrics.go. 1; its label `condition` is `true` once all pods have been ready, until the cluster is
    suspended (raycluster_controller.go: RayClusterProvisioned)."""

    JOB_STATUS = "kuberay_job_deployment_status"
    """ray_job_metrics.go. 1; its label `deployment_status` is the RayJob's `jobDeploymentStatus`."""

    SERVICE_READY = "kuberay_service_condition_ready"
    """ray_service_metrics.go. 1; its label `condition` is `true` while the RayService has endpoints."""


class Ray(StrEnum):
    """Metrics of Ray 2.60."""

    STARTED = "process_start_time_seconds"
    """When the process began that serves the metrics of a pod; it begins and ends with Ray (prometheus_client:
    ProcessCollector, in the registry that ray/_private/prometheus_exporter.py serves)."""

    RESOURCES = "ray_resources"
    """Logical resources of a pod by `Name`; its label `State` is `AVAILABLE` or `USED` (src/ray/raylet/metrics.h)."""

    UNSCHEDULABLE_TASKS = "ray_scheduler_unscheduleable_tasks"
    """Tasks and actors that wait, by `Reason`; `Infeasible`: no node has what they need (src/ray/raylet/metrics.h)."""

    PLACEMENT_GROUPS = "ray_placement_groups"
    """Placement groups by `State` (src/ray/gcs/metrics.h)."""

    OBJECT_STORE = "ray_object_store_memory"
    """Bytes of objects by `Location`; `SPILLED`: on disk (src/ray/object_manager/metrics.h)."""

    DISK_PERCENT = "ray_node_disk_utilization_percentage"
    """How full the disk of a pod is (ray/dashboard/modules/reporter/reporter_agent.py)."""

    MEMORY = "ray_node_mem_used"
    """Bytes of memory that a pod uses (the same)."""

    TASKS = "ray_tasks"
    """Tasks by `State`, those that have ended included (src/ray/core_worker/metrics.h)."""

    REQUESTS = "ray_serve_deployment_request_counter_total"
    """Requests that replicas of Ray Serve have answered, by `application` and `deployment` (serve/_private/replica.py).
    """

    GCS = "ray_gcs_actors_count"
    """Actors by `State`, from the GCS itself, which reports them every ten seconds, also if there are none
    (src/ray/gcs/metrics.h). The head's agent forgets what is not reported for twenty (ray/_private/telemetry/
    open_telemetry_metric_recorder.py)."""

    PENDING_NODES = "autoscaler_pending_nodes"
    """Workers that the autoscaler has requested and that have not joined (ray/autoscaler/_private/prom_metrics.py)."""

    AUTOSCALER_EXCEPTIONS = "autoscaler_update_loop_exceptions_total"
    """Errors of the first autoscaler's loop (ray/autoscaler/_private/autoscaler.py: update). The second does not count
    them."""


class Cml(StrEnum):
    """Metrics of the head of a cluster on Cloudera ML (payloads/cml_application.py)."""

    FAILED_JOBS = "ray_platform_failed_jobs"
    """Jobs that have failed within a day."""


class Gateway(StrEnum):
    """Metrics of the Redis gateway (gateway/metrics.py)."""

    CLIENTS = "redis_gateway_clients"
    CONNECTED = "redis_gateway_connected_clients"
    MASTERS = "redis_gateway_master_changes_total"
    LOST = "redis_gateway_lost_writes_total"


class Redis(StrEnum):
    """Metrics of the exporter beside each node of Redis (github.com/oliver006/redis_exporter v1.74.0,
    exporter/exporter.go)."""

    UP = "redis_up"
    USED = "redis_memory_used_bytes"
    MOST = "redis_memory_max_bytes"
    """`maxmemory`; 0 if it is not set."""


class Volcano(StrEnum):
    """Metrics of Volcano 1.14.1, by `queue_name`."""

    REQUESTED = "volcano_queue_request_scalar_resources"
    """By `resource`, in thousandths, as the next two (pkg/scheduler/metrics/queue.go)."""
    ALLOCATED = "volcano_queue_allocated_scalar_resources"
    DESERVED = "volcano_queue_deserved_scalar_resources"

    PENDING = "volcano_queue_pod_group_pending_count"
    """PodGroups that may not create pods yet (pkg/controllers/metrics/queue.go)."""
    ENQUEUED = "volcano_queue_pod_group_inqueue_count"
    """PodGroups whose pods wait for room (the same)."""


class Kueue(StrEnum):
    """Metrics of Kueue 0.19, by `cluster_queue` (pkg/metrics/metrics.go)."""

    PENDING = "kueue_pending_workloads"
    ADMITTED = "kueue_admitted_active_workloads"


class CertManager(StrEnum):
    """Metrics of cert-manager 1.18, by `namespace` and `name` of a Certificate (pkg/metrics/metrics.go)."""

    RENEWAL = "certmanager_certificate_renewal_timestamp_seconds"
    """Time at which it is to be renewed; 0 before it is issued."""
