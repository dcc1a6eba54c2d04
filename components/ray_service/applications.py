"""The applications of a RayService, as KubeRay reports them in its status. Pure functions.

The fields are those of ray-operator/apis/ray/v1/rayservice_types.go (KubeRay 1.6.2).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ROLES = ("active", "pending")
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

    @property
    def runs(self) -> bool:
        """Whether all of its deployments have their replicas."""
        return self.status == "RUNNING"

    @property
    def problems(self) -> Iterator[str]:
        """Why it does not run, a line for each reason."""
        if self.runs:
            return
        yield f"application {self.name} ({self.role}) is {self.status}{f': {self.message}' if self.message else ''}"
        for name, status, message in self.deployments:
            if status != "HEALTHY":
                yield f"application {self.name} ({self.role}), deployment {name} is {status}: {message or 'no message'}"


def applications(status: Mapping[str, Any]) -> list[Application]:
    return [each for role in ROLES for each in _on(role, status.get(f"{role}ServiceStatus") or {})]


def clusters_of(status: Mapping[str, Any]) -> dict[str, str]:
    """Its RayClusters, by `active` and `pending`."""
    found = {role: (status.get(f"{role}ServiceStatus") or {}).get("rayClusterName") for role in ROLES}
    return {role: name for role, name in found.items() if name}


def is_serving(status: Mapping[str, Any]) -> bool:
    """Whether pods of it take requests."""
    ready = condition(status, "Ready")
    return ready["status"] == "True" if ready else status.get("serviceStatus") == "Running"


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    return next((each for each in status.get("conditions") or () if each["type"] == kind), None)


def unanswered(service: Mapping[str, Any], clusters: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The pending RayCluster whose head is Ready while Ray there has reported no application; None if there is none.

    KubeRay ends each reconciliation when Ray's dashboard in a Ready head does not answer or refuses the Serve config,
    before it compares the RayCluster with the spec (rayservice_controller.go: Reconcile returns the error of
    reconcileServe, and calculateStatus with shouldPrepareNewCluster comes after it). So an edit of the RayCluster is
    not applied. `clusters`: the RayClusters of its namespace, by name.
    """
    status = service.get("status") or {}
    name = clusters_of(status).get("pending")
    ready = condition(clusters.get(name or "", {}).get("status") or {}, "HeadPodReady")
    answered = (status.get("pendingServiceStatus") or {}).get("applicationStatuses")
    return name if ready and ready["status"] == "True" and not answered else None


def replace_it(namespace: str, name: str) -> str:
    """The way out, for messages: KubeRay creates a pending RayCluster that is gone again, from the current spec
    (rayservice_controller.go: reconcileRayCluster)."""
    return f"`kubectl delete raycluster -n {namespace} {name}`: KubeRay creates it again from the edited spec"


def _on(role: str, status: Mapping[str, Any]) -> Iterator[Application]:
    for name, each in (status.get("applicationStatuses") or {}).items():
        deployments = [
            (deployment, detail.get("status") or "", detail.get("message") or "")
            for deployment, detail in (each.get("serveDeploymentStatuses") or {}).items()
        ]
        yield Application(
            name, role, each.get("status") or "NOT_STARTED", each.get("message") or "", tuple(deployments)
        )
