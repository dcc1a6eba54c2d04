"""What the admission policies of a stack admit in the namespaces of its tenants. Plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.cel import listed, text


@dataclass(frozen=True)
class Deployer:
    """What is admitted of the account of a tenant's `rayDeployer`."""

    account: str
    """Name of the ServiceAccount."""

    networked: bool = False
    """Whether NetworkPolicies open ports of the pods that it creates."""

    selected: Sequence[Mapping[str, str]] = ()
    """Labels by which NetworkPolicies select pods of others in its namespace."""

    classes: Sequence[str] = ()
    """StorageClasses of the claims that it may create."""


@dataclass(frozen=True)
class Restricted:
    """What is admitted in the namespaces of a stack's tenants."""

    namespaces: Sequence[str] | None = None
    """The tenants' namespaces. None: the stack creates all of them, and their label selects them."""

    classes: Sequence[str] = ()
    """PriorityClasses that tenants' RayClusters may have."""

    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Host names of Ingresses, by the namespaces of the tenants that may have any."""

    annotations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further annotations of Ingresses, by namespaces."""

    of_pods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further annotations of pods, by namespaces."""

    exposed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Types of Services that open ports to the outside, by the namespaces that may have any."""

    gateways: Sequence[str] = ()
    """GatewayClasses that tenants' RayServices may have."""

    scheduler: str | None = None
    """The operator's batch scheduler. None: Kubernetes' own scheduler."""

    schedulers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The schedulers that a tenant may use, by the namespaces of tenants that name some."""

    taints: Sequence[str] = ()
    """Keys of the taints of pools, which tenants' pods may tolerate."""

    redis: str | None = None
    """Namespace of the shared Redis, whose StatefulSet cluster admins may change."""

    templates: Sequence[str] = ()
    """Names of the job templates of all tenants."""

    sizes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sizes of runs, by the names of these templates."""

    local_code: bool = False
    """Whether runs of a job template bring their code."""

    connected: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Objects of KubeRay with NetworkPolicies, as `rayclusters/NAME`, by the namespaces where the pods of others cannot
    reach each other."""

    deployers: Mapping[str, Deployer] = field(default_factory=dict)
    """Accounts that may create pods with connections, or claims, by their namespaces."""


def by_namespace(values: Mapping[str, Sequence[str]]) -> str:
    """CEL: the values of the request's namespace."""
    known = ", ".join(f"{text(namespace)}: {listed(names)}" for namespace, names in values.items() if names)
    return f"{{{known}}}[?request.namespace].orValue([])" if known else "[]"
