"""How the rights of personas and the accounts of Ray's pods are provisioned."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.access.admission import OF_RUNS, OTHER_JOBS, Restricted, restrictions
from components.access.manifests import cluster_access, ray_deployer, tenant_access
from components.access.personas import AccessSettings, NamedCluster, RayDeployerSettings, RayUserSettings, Subject
from components.bodies import in_namespace
from components.kubernetes import KubernetesObject


@dataclass(frozen=True)
class ClusterAccessArgs:
    """Arguments of ClusterAccess."""

    settings: AccessSettings

    operator_namespace: str
    """Namespace of the operator; it exists."""

    owns_kinds: bool
    """Whether this stack installs KubeRay's kinds. Then Kubernetes' own roles get rules for them."""


class ClusterAccess(pulumi.ComponentResource):
    """The rights of cluster admins, and rules for KubeRay's kinds in Kubernetes' roles `view`, `edit` and `admin`."""

    def __init__(self, name: str, args: ClusterAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:ClusterAccess", name, None, opts)
        own = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        made = cluster_access(args.settings.cluster_admins, args.operator_namespace, owns_kinds=args.owns_kinds)
        for part, body in made.items():
            KubernetesObject(f"{name}-{part}", body, own)
        self.register_outputs({})


@dataclass(frozen=True)
class TenantRestrictionsArgs:
    """Arguments of TenantRestrictions."""

    stack: str
    """Name of the Pulumi stack."""

    restricted: Restricted
    """What is admitted."""


class TenantRestrictions(pulumi.ComponentResource):
    """Admission policies for the namespaces of all tenants, where RBAC is too coarse.

    RayClusters depend on this component, so it is enforced from their creation to their deletion. The policy for other
    RayJobs leaves runs of job templates to the policies for them, once those exist.
    """

    def __init__(self, name: str, args: TenantRestrictionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:TenantRestrictions", name, None, opts)
        made = restrictions(args.stack, args.restricted)
        of_runs = [
            KubernetesObject(f"{name}-{part}", made.pop(part), pulumi.ResourceOptions(parent=self))
            for part in list(made)
            if part.startswith(OF_RUNS)
        ]
        for part, body in made.items():
            after = of_runs if part == OTHER_JOBS else None
            KubernetesObject(f"{name}-{part}", body, pulumi.ResourceOptions(parent=self, depends_on=after))
        self.register_outputs({})


@dataclass(frozen=True)
class TenantAccessArgs:
    """Arguments of TenantAccess."""

    namespace: pulumi.Input[str]
    """The tenant's namespace; objects in it wait for it."""

    namespace_name: str
    """The same as a plain value, for the names of cluster-scoped objects."""

    admins: Sequence[Subject] = ()
    """Ray cluster admins."""

    users: Sequence[RayUserSettings] = ()
    """Ray users."""

    clusters: Sequence[NamedCluster] = ()
    """RayClusters that the users may use."""

    accounts: Sequence[str] = ()
    """ServiceAccounts to create for RayClusters."""

    ingresses: bool = False
    """Whether Ray cluster admins may create Ingresses."""

    templates: Sequence[str] = ()
    """Names of the tenant's job templates."""


class TenantAccess(pulumi.ComponentResource):
    """The rights of people in a tenant's namespace, and the accounts of its RayClusters' pods.

    RayClusters depend on this component, so the accounts of their pods exist, with their rights, before them. With job
    templates it depends on TenantRestrictions (`depends_on`), so that nobody has the right to run one before the API
    server knows what a run may be.
    """

    def __init__(self, name: str, args: TenantAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:TenantAccess", name, None, opts)
        made = tenant_access(
            args.namespace_name,
            args.namespace,
            admins=args.admins,
            users=args.users,
            clusters=args.clusters,
            accounts=args.accounts,
            ingresses=args.ingresses,
            templates=args.templates,
        )
        own = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        for part, body in made.items():
            KubernetesObject(f"{name}-{part}", body, own)
        self.register_outputs({})


@dataclass(frozen=True)
class RayDeployerArgs:
    """Arguments of RayDeployer."""

    settings: RayDeployerSettings

    namespace: pulumi.Input[str]
    """Namespace of account, Role and RoleBinding."""


class RayDeployer(pulumi.ComponentResource):
    """A ServiceAccount that may create pods, Deployments, Services and RayClusters in its namespace.

    Outputs:
        service_account: its name, known once it is bound to its Role, so that a pod can use its rights at once.
    """

    service_account: pulumi.Output[str]

    def __init__(self, name: str, args: RayDeployerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RayDeployer", name, None, opts)
        made = [
            KubernetesObject(f"{name}-{part}", in_namespace(body, args.namespace), pulumi.ResourceOptions(parent=self))
            for part, body in ray_deployer(args.settings, args.namespace).items()
        ]
        self.service_account = pulumi.Output.all(*(each.id for each in made)).apply(
            lambda _: args.settings.service_account
        )
        self.register_outputs({"service_account": self.service_account})
