"""For each alert: metrics with which it fires and ends, and metrics with which it does not fire.

Series are as promtool reads them (prometheus.io, Unit testing for rules): a value for each minute, or for each hour.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Series = Mapping[str, str]

PODS = 'namespace="team-a",ray_io_cluster="training"'
OF_CLUSTER = {"namespace": "team-a", "ray_io_cluster": "training"}


@dataclass(frozen=True)
class Case:
    """An alert's course. Fields: `series`; `begins`: the first minute at which it fires; `ends`: the first minute after
    that at which it does not; `labels` and `summary` of the alert; `quiet`: series with which it never fires; `unit`:
    minutes or hours."""

    alert: str
    series: Series
    begins: int
    ends: int
    summary: str
    quiet: Series
    labels: Mapping[str, str] = field(default_factory=lambda: OF_CLUSTER)
    unit: Literal["m", "h"] = "m"


def over(*parts: tuple[float | str, int]) -> str:
    """Values, each for some minutes. `_`: the series does not exist then, which Prometheus notes once, as `stale`."""
    return " ".join(f"stale _x{minutes - 1}" if value == "_" else f"{value}x{minutes - 1}" for value, minutes in parts)


def growing(still: int, by: int, minutes: int) -> str:
    """A counter that stands still for `still` minutes, grows for `minutes`, and then stands still for three hours."""
    return f"0x{still - 1} {by}+{by}x{minutes - 1} {by * minutes}x180"


def up(job: str, labels: str = PODS) -> str:
    return f'up{{job="{job}",{labels}}}'


def provisioned(condition: str) -> str:
    return f'kuberay_cluster_condition_provisioned{{job="kuberay-operator",{PODS},uid="1",condition="{condition}"}}'


def job(status: str, uid: str = "1") -> str:
    labels = f'namespace="team-a",name="nightly",uid="{uid}",deployment_status="{status}"'
    return f"kuberay_job_deployment_status{{{labels}}}"


def service(condition: str) -> str:
    return f'kuberay_service_condition_ready{{namespace="team-a",name="chat",condition="{condition}"}}'


def renewal(certificate: str) -> str:
    return f'certmanager_certificate_renewal_timestamp_seconds{{namespace="team-a",name="{certificate}"}}'


def gpus(state: str) -> str:
    return f'ray_resources{{job="ray-worker",{PODS},ray_io_group="a100-8g",Name="GPU",State="{state}"}}'


def spilled(pod: str) -> str:
    return f'ray_object_store_memory{{{PODS},pod="{pod}",Location="SPILLED"}}'


def disk(pod: str) -> str:
    return f'ray_node_disk_utilization_percentage{{{PODS},pod="{pod}"}}'


def redis(metric: str, pod: int) -> str:
    return f'{metric}{{job="ray-redis",namespace="ray-system",pod="ray-redis-{pod}"}}'


def queue(metric: str) -> str:
    return f'volcano_queue_{metric}{{queue_name="research"}}'


def gpus_of_queue(metric: str) -> str:
    return f'volcano_queue_{metric}_scalar_resources{{queue_name="research",resource="nvidia.com/gpu"}}'


GCS = f'ray_gcs_actors_count{{job="ray-head",{PODS},State="ALIVE"}}'
PROCESS_STARTED = f'process_start_time_seconds{{job="ray-head",{PODS},pod="training-head"}}'
INFEASIBLE = f'ray_scheduler_unscheduleable_tasks{{{PODS},Reason="Infeasible"}}'
WAITING = f'ray_scheduler_unscheduleable_tasks{{{PODS},Reason="WaitingForResources"}}'
PENDING_GROUPS = f'ray_placement_groups{{{PODS},State="PENDING"}}'
PENDING_NODES = f'autoscaler_pending_nodes{{{PODS},NodeType="a100-8g"}}'
FAILED_JOBS = f"ray_platform_failed_jobs{{{PODS}}}"
CLIENTS = f"redis_gateway_clients{{{PODS}}}"
CONNECTED = f"redis_gateway_connected_clients{{{PODS}}}"
MASTERS = f"redis_gateway_master_changes_total{{{PODS}}}"
LOST = f"redis_gateway_lost_writes_total{{{PODS}}}"
KUEUE_PENDING = 'kueue_pending_workloads{cluster_queue="research",status="inadmissible"}'
KUEUE_ADMITTED = 'kueue_admitted_active_workloads{cluster_queue="research"}'
