"""The status of a RayService with its applications, and why it does not serve. Pure functions.

components/ray_service/applications.py reads its applications.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.ray_cluster.readiness import about, warnings
from components.ray_service.applications import Application, applications, clusters_of, is_serving
from stacks.commands.status.clusters import ClusterStatus, conditions, owner_of
from stacks.commands.status.snapshot import Body, Found, Live, seconds_between


@dataclass(frozen=True)
class ServiceStatus:
    """The status of a RayService."""

    name: str
    ok: bool
    """Whether it serves, and all active applications run."""
    status: str | None
    """KubeRay's `serviceStatus`; None while it does not serve; of one that was not found `Missing` or `Unknown`."""
    endpoints: int
    """Pods that serve."""
    clusters: Mapping[str, str]
    """Its RayClusters, by `active` and `pending`."""
    age: int | None
    """Seconds since its creation."""
    applications: tuple[Application, ...] = ()
    conditions: tuple[Body, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it does not serve; of one that does, what of its update is not ready."""
    in_stack_file: bool = False
    owner: str | None = None


def missing_service(name: str, found: Found) -> ServiceStatus:
    """A RayService of the stack file that was not found."""
    known, why = found.absence("rayservices")
    state = "Missing" if known else "Unknown"
    return ServiceStatus(
        name, ok=False, status=state, endpoints=0, clusters={}, age=None, reasons=(why,), in_stack_file=True
    )


def service_status(body: Body, found: Found, live: Live, clusters: Mapping[str, ClusterStatus]) -> ServiceStatus:
    """The status of a RayService. `clusters`: the RayClusters of its namespace, by name."""
    metadata, status = body["metadata"], body.get("status") or {}
    found_applications, own = applications(status), clusters_of(status)
    reported = conditions(body)
    serves = is_serving(status) and not metadata.get("deletionTimestamp")
    why = [
        *([f"it is being deleted since {metadata['deletionTimestamp']}"] if metadata.get("deletionTimestamp") else []),
        *([] if serves else _not_ready(reported)),
        *(line for each in found_applications for line in each.problems),
        *(line for role, name in own.items() for line in _of_cluster(role, name, clusters)),
        *([] if serves else warnings(about(found.all("events"), {metadata["name"]}))),
    ]
    if not status:
        why.append("the operator has not looked at it: does it run, and does it watch the namespace?")
    return ServiceStatus(
        metadata["name"],
        serves and all(each.runs for each in found_applications if each.role == "active"),
        status.get("serviceStatus") or None,
        int(status.get("numServeEndpoints") or 0),
        own,
        seconds_between(metadata.get("creationTimestamp"), live.at),
        tuple(found_applications),
        tuple(reported),
        tuple(dict.fromkeys(why)),
        owner=owner_of(body),
    )


def _not_ready(reported: Sequence[Body]) -> list[str]:
    return [
        f"Ready is {each['status']}: {each['reason']}: {each['message']}"
        for each in reported
        if each["type"] == "Ready"
    ]


def _of_cluster(role: str, name: str, clusters: Mapping[str, ClusterStatus]) -> Iterator[str]:
    if name in clusters and not clusters[name].ok:
        found = clusters[name]
        yield from (f"its {role} RayCluster {name} is {found.state}: {line}" for line in found.reasons)
