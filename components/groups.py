"""Components that are no more than their objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components.kubernetes import KubernetesObject, below, create
from components.objects import Object, Part


@dataclass(frozen=True)
class ObjectsArgs:
    objects: Sequence[Object]

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that the program creates, by name: objects in them wait for them."""


class Objects(pulumi.ComponentResource):
    """The objects of one concept, created in their order, after what the component depends on (`depends_on`)."""

    made: dict[str, KubernetesObject]

    def __init__(self, name: str, args: ObjectsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(f"ray-platform:index:{type(self).__name__}", name, None, opts)
        self.made = create(name, args.objects, below(self, opts), args.namespaces)


class AdmissionPolicies(Objects):
    """Rules that the API server enforces (`admission_policies.settings.admission_policies`).

    RayClusters depend on this component, so the policies apply to their objects from creation to deletion. The API
    server enforces a policy a second or two after its creation.
    """


class ClusterAccess(Objects):
    """The rights of cluster admins, and rules for KubeRay's kinds in Kubernetes' roles `view`, `edit` and `admin`
    (`access.manifests.cluster_access`). It depends on the operator and the scheduler, in whose namespaces
    some are, and on the policies that bound the rights."""


class IdleTermination(Objects):
    """A pod that suspends the tenant's RayClusters with `idleTerminationOptions` when nobody uses them
    (`idle_termination.manifests.objects`). It depends on the RayClusters, whose tokens it reads."""


class LogStore(Objects):
    """A log store of the stack's own, with the tenants' proxies to it (`logs.store.objects`). RayClusters do not depend
    on it: their collectors keep what it does not take yet."""


class Monitoring(Objects):
    """What Prometheus scrapes, records and alerts to (`monitoring.manifests.monitoring_objects`), and with mode
    `install` Prometheus itself (`own_prometheus`). It depends on the operator and the scheduler, in whose namespaces
    some rights are."""


class NetworkPolicies(Objects):
    """The NetworkPolicies of a namespace (`network.manifests`). Its workloads depend on this component, so they never
    run without policies."""


class PriorityClasses(Objects):
    """The PriorityClasses of heads and workers (`priority_classes.settings.priority_classes`). RayClusters depend on
    this component: without its PriorityClass a pod is not admitted."""


class Quota(Objects):
    """The ResourceQuota and the LimitRange of a namespace (`tenant.settings.quota`).

    Resources that create pods there depend on this component, so the quota counts all of them. A quota on KubeRay's
    kinds waits until Kubernetes counts them, so it depends on the operator, which installs the kinds.
    """


class RayDeployer(Objects):
    """A ServiceAccount that may create pods, Deployments, Services and RayClusters in its namespace
    (`access.manifests.ray_deployer`)."""


class RunHistory(Objects):
    """A pod that keeps records of the tenant's RayJobs on a claim of the tenant's storage
    (`run_history.manifests.objects`). It depends on that storage: on a removal its pod is deleted before the claim."""


class Storage(Objects):
    """The PersistentVolumeClaims of a tenant, and the PersistentVolumes of existing sources
    (`storage.manifests.objects`).

    What is kept:

    - The data of `nfs` and `csi`, always: the volumes have reclaim policy Retain.
    - A claim of `storageClass`, unless `retain` is false: Pulumi refuses to delete or replace it (`protect`). If it is
      unprotected in the state, its object stays (`retainOnDelete`).
    - An existing `claim`, and one of `storageClass`, unless `retain` is false: the tenant's guard refuses to remove the
      tenant. `retainOnDelete` alone would not keep them, because Kubernetes deletes all objects of a namespace.

    What is not kept: `kubectl delete namespace` is not prevented; the reclaim policy of the volume then decides about
    the data.
    """


class TenantAccess(Objects):
    """The rights of people in a tenant's namespace, the accounts of its RayClusters' pods
    (`access.manifests.tenant_access`), and what the stack's own Prometheus may read there.

    RayClusters depend on this component, so the accounts of their pods exist, with their rights, before them. With job
    templates it depends on TenantRestrictions, so that nobody has the right to run one before the API server knows what
    a run may be.
    """


class TenantRestrictions(Objects):
    """Admission policies for the namespaces of all tenants, where RBAC is too coarse (`access.admission.restrictions`).

    RayClusters depend on this component, so it is enforced from their creation to their deletion.
    """


_COMPONENTS = {group.__name__: group for group in Objects.__subclasses__()}


def create_part(name: str, part: Part, args: ObjectsArgs, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """The component of a part, or the one object of a part without a component."""
    if part.kind is not None:
        return _COMPONENTS[part.kind](name, args, opts)
    [made] = create(name, args.objects, opts, args.namespaces).values()
    return made
