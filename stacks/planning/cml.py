"""What the clusters on Cloudera ML ask of its quotas, which no file knows. Pure functions."""

from dataclasses import replace
from typing import Any

from components.cml.settings import CmlRayClusterSettings
from stacks.commands.plan.report import Report, Table
from stacks.settings import StackSettings


def with_cml(report: Report, stack: StackSettings) -> Report:
    """The report, with a table of these clusters if the stack has any."""
    rows = tuple(
        (
            each["cluster"],
            ", ".join(each["projects"]),
            *(f"{each[key]:g}" for key in ("workers", "gpus", "cpu", "memory")),
        )
        for each in as_objects(stack)
    )
    columns = ("Cluster", "Projects", "Workers", "GPUs", "CPUs", "Memory in GB")
    table = Table("Ray clusters on Cloudera ML: head and workers together", columns, rows)
    return replace(report, tables=(*report.tables, table)) if rows else report


def as_objects(stack: StackSettings) -> list[dict[str, Any]]:
    """The same for programs."""
    return [_cluster(each) for each in stack.cml.clusters] if stack.cml else []


def _cluster(cluster: CmlRayClusterSettings) -> dict[str, Any]:
    head = cluster.resources_of_head
    running = 0 if cluster.suspend else 1
    workers = [(running * group.replicas, group.resources) for group in cluster.groups]
    return {
        "cluster": cluster.name,
        "projects": list(cluster.projects),
        "workers": sum(count for count, _ in workers),
        "gpus": sum(count * resources.gpus for count, resources in workers),
        "cpu": running * head.cpu + sum(count * resources.cpu for count, resources in workers),
        "memory": running * head.memory + sum(count * resources.memory for count, resources in workers),
    }
