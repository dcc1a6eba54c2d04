"""The status of a RayService with its applications, and why it does not serve. Pure functions.

The fields are those of ray-operator/apis/ray/v1/rayservice_types.go (KubeRay 1.6.2).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.ray_cluster.diagnosis import about, warnings

from .clusters import ClusterStatus, conditions, owner_of
from .found import Body, Found, Live, seconds_between

_ROLES = ("active", "pending")
"""A RayService has a pending RayCluster while it updates."""


@dataclass(frozen=True)
class Application:
    """An application of Ray Serve on one of the service's RayClusters."""

    name: str
    role: str
    """`active` or `pending`: the RayCluster that it runs on."""
    status: str
    message: str = ""
    deployments: tuple[tuple[str, str, str], ...] = ()
    """Name, status and message of each."""


@dataclass(frozen=True)
class ServiceStatus:
    """The status of a RayService."""

    name: str
    ok: bool
    """Whether it serves, and all active applications run."""
    status: str | None
    """KubeRay's `serviceStatus`; None while it does not serve."""
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
    """A stack file has no RayServices."""
    owner: str | None = None


def service_status(body: Body, found: Found, live: Live, clusters: Mapping[str, ClusterStatus]) -> ServiceStatus:
    """The status of a RayService. `clusters`: the RayClusters of its namespace, by name."""
    metadata, status = body["metadata"], body.get("status") or {}
    applications = [each for role in _ROLES for each in _applications(role, status.get(f"{role}ServiceStatus") or {})]
    reported = conditions(body)
    serves = _serves(status, reported) and not metadata.get("deletionTimestamp")
    roles = {role: (status.get(f"{role}ServiceStatus") or {}).get("rayClusterName") for role in _ROLES}
    own = {role: name for role, name in roles.items() if name}
    why = [
        *([f"it is being deleted since {metadata['deletionTimestamp']}"] if metadata.get("deletionTimestamp") else []),
        *([] if serves else _not_ready(reported)),
        *(line for each in applications for line in _of_application(each)),
        *(line for role, name in own.items() for line in _of_cluster(role, name, clusters)),
        *([] if serves else warnings(about(found.all("events"), {metadata["name"]}))),
    ]
    if not status:
        why.append("the operator has not looked at it: does it run, and does it watch the namespace?")
    return ServiceStatus(
        metadata["name"],
        serves and all(each.status == "RUNNING" for each in applications if each.role == "active"),
        status.get("serviceStatus") or None,
        int(status.get("numServeEndpoints") or 0),
        own,
        seconds_between(metadata.get("creationTimestamp"), live.at),
        tuple(applications),
        tuple(reported),
        tuple(dict.fromkeys(why)),
        owner=owner_of(body),
    )


def _serves(status: Body, reported: Sequence[Body]) -> bool:
    ready = next((each for each in reported if each["type"] == "Ready"), None)
    return ready["status"] == "True" if ready else status.get("serviceStatus") == "Running"


def _not_ready(reported: Sequence[Body]) -> list[str]:
    return [
        f"Ready is {each['status']}: {each['reason']}: {each['message']}"
        for each in reported
        if each["type"] == "Ready"
    ]


def _applications(role: str, status: Body) -> Iterator[Application]:
    for name, each in (status.get("applicationStatuses") or {}).items():
        deployments = [
            (deployment, detail.get("status") or "", detail.get("message") or "")
            for deployment, detail in (each.get("serveDeploymentStatuses") or {}).items()
        ]
        yield Application(
            name, role, each.get("status") or "NOT_STARTED", each.get("message") or "", tuple(deployments)
        )


def _of_application(each: Application) -> Iterator[str]:
    if each.status == "RUNNING":
        return
    detail = f": {each.message}" if each.message else ""
    yield f"application {each.name} ({each.role}) is {each.status}{detail}"
    for name, status, message in each.deployments:
        if status != "HEALTHY":
            yield f"application {each.name} ({each.role}), deployment {name} is {status}: {message or 'no message'}"


def _of_cluster(role: str, name: str, clusters: Mapping[str, ClusterStatus]) -> Iterator[str]:
    if name in clusters and not clusters[name].ok:
        found = clusters[name]
        yield from (f"its {role} RayCluster {name} is {found.state}: {line}" for line in found.reasons)
