"""Personas: the settings of who they are, and the rights of each as RBAC rules. Data and pure functions.

No rule has a wildcard, lists Secrets, changes roles or impersonates. docs/access.md lists what a persona may not do; a
test compares its table with a real API server.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from components.network.settings import Egress, Port
from core.types import DnsSubdomain, NotEmpty, Settings

_ACCOUNT = re.compile(r"serviceAccount:[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_NAMED = re.compile(r"(user|group):[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?")
_KUBERNETES_OWN = "system:"
_ACCOUNTS_OF_A_NAMESPACE = re.compile(r"group:system:serviceaccounts:[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def _subject(text: str) -> str:
    if not _ACCOUNT.fullmatch(text) and not _NAMED.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a subject: write group:NAME, user:NAME, or, in lower case, serviceAccount:NAMESPACE/NAME"
        )
    if "*" in text:
        raise ValueError(f"{text!r} has a *, and Kubernetes knows no patterns of names: name each, or a group")
    if hidden := next((each for each in text if not each.isprintable()), None):
        raise ValueError(f"{text!r} has U+{ord(hidden):04X}, an invisible character: remove it")
    if text.partition(":")[2].startswith(_KUBERNETES_OWN) and not _ACCOUNTS_OF_A_NAMESPACE.fullmatch(text):
        raise ValueError(
            f"{text!r} is part of Kubernetes, includes everybody, or already has all rights: name a group, a user or a "
            "serviceAccount of yours (all accounts of a namespace: group:system:serviceaccounts:NAMESPACE)"
        )
    return text


Subject = Annotated[
    str,
    AfterValidator(_subject),
    WithJsonSchema({"type": "string", "pattern": f"^({_NAMED.pattern}|{_ACCOUNT.pattern})$"}),
]
"""A subject: `group:NAME`, `user:NAME` with the names of the cluster's authentication, or
`serviceAccount:NAMESPACE/NAME`."""


class AccessSettings(Settings):
    """Rights in the whole cluster."""

    cluster_admins: tuple[Subject, ...] = ()
    """Subjects that manage KubeRay's objects in the namespaces of all tenants, queues, the configuration of Volcano or
    Kueue, and the shared Redis: `group:NAME`, `user:NAME` or `serviceAccount:NAMESPACE/NAME`."""


class RayUserSettings(Settings):
    """A user of a tenant's RayClusters, without the right to change them. Short form: only the subject."""

    subject: Subject
    """`group:NAME`, `user:NAME` or `serviceAccount:NAMESPACE/NAME`."""

    clusters: tuple[str, ...] | None = None
    """RayClusters, by name, whose token may be read and whose ports may be forwarded. Default: all of the tenant's.
    An empty list: none, for users who only read."""

    submit_jobs: bool = False
    """True: the user may create RayJobs on these clusters."""

    job_templates: tuple[str, ...] | None = None
    """Job templates, by name, that the user may run. Default: all of the tenant's; none for users who only read."""

    def runs(self, template: str) -> bool:
        return self.clusters != () if self.job_templates is None else template in self.job_templates


def _in_short(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [each if isinstance(each, dict | RayUserSettings) else {"subject": each} for each in value]


RayUsers = Annotated[
    tuple[RayUserSettings, ...],
    BeforeValidator(_in_short, json_schema_input_type=tuple[Subject | RayUserSettings, ...]),
]
"""Users of a tenant's RayClusters, each in full or by its subject."""


class RayDeployerNetworkSettings(Settings):
    """Connections of the pods that the account creates with the label `ray-platform/created-by: ray-deployer`."""

    ports: Annotated[tuple[Port, ...], NotEmpty]
    """TCP ports on which these pods and the RayClusters that run as the account may connect to each other."""

    api_server: bool = False
    """True: these pods may connect to the API server."""

    egress: tuple[Egress, ...] = ()
    """Targets of these pods in addition to the tenant's `network.egress`, such as a model hub."""


class RayDeployerClaimsSettings(Settings):
    """The PersistentVolumeClaims that the account may create: each for a new volume."""

    storage_classes: Annotated[tuple[DnsSubdomain, ...], NotEmpty]
    """StorageClasses of the claims. The API server refuses others."""


class RayDeployerSettings(Settings):
    """The ServiceAccount with which code on a RayCluster may create pods, Deployments and Services, and its Role."""

    service_account: DnsSubdomain = "ray-deployer"
    """Name of the ServiceAccount; RayClusters of the tenant run as it."""

    role: DnsSubdomain = "ray-deployer"
    """Name of the Role."""

    role_binding: DnsSubdomain = "ray-deployer"
    """Name of the RoleBinding."""

    network: RayDeployerNetworkSettings | None = None
    """What the pods that the account creates may connect to. Default: nothing but DNS and the tenant's
    `network.egress`, and nothing connects to them."""

    persistent_volume_claims: RayDeployerClaimsSettings | None = None
    """The PersistentVolumeClaims that the account may create. Default: none."""


Rule = dict[str, Any]

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")

RAY_WRITE = "ray:write"
"""Ray's own verb on a RayCluster: the right to use the cluster. Ray checks it for callers with a Kubernetes token
(src/ray/rpc/authentication/k8s_util.cc). The stack's admission policy checks it at the creation of a RayJob."""

RUN = "ray-platform:run"
"""A verb of this stack's own on the RayCronJob that holds a job template: the right to run it. The stack's admission
policy checks it at the creation of a run."""


@dataclass(frozen=True)
class NamedCluster:
    """The access properties of a RayCluster of the stack file."""

    name: str

    secret: str | None = None
    """Secret with its token. None: callers show a Kubernetes token, or no token."""

    accounts: tuple[str, ...] = ()
    """The ServiceAccounts of its pods, if callers show a Kubernetes token."""


def rule(group: str, resources: Sequence[str], verbs: Iterable[str], names: Iterable[str] = ()) -> Rule:
    """One rule. `names`: only objects of these names."""
    named = sorted(names)
    made: Rule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**made, "resourceNames": named} if named else made


RAY_GROUP = "ray.io"
RAY_KINDS = ("rayclusters", "rayjobs", "rayservices")
ALL_RAY_KINDS = (*RAY_KINDS, "raycronjobs")

_LOOK_AROUND = (rule("", ["pods", "services", "events"], READ), rule("", ["pods/log"], ["get"]))
"""The state of a RayCluster: its pods with their logs, its Services, and KubeRay's events."""

_WHY_IT_WAITS = (
    rule("", ["resourcequotas"], READ),
    rule("kueue.x-k8s.io", ["workloads", "localqueues"], READ),
    rule("scheduling.volcano.sh", ["podgroups"], READ),
)
"""Quota and queue of a namespace: what `status` needs for why something waits."""

CLUSTER_ADMIN = (
    rule(RAY_GROUP, ALL_RAY_KINDS, READ),
    rule("scheduling.volcano.sh", ["queues"], (*READ, *WRITE)),
    rule("scheduling.volcano.sh", ["podgroups"], READ),
    rule("kueue.x-k8s.io", ["clusterqueues", "cohorts", "resourceflavors", "localqueues"], (*READ, *WRITE)),
)
"""In the whole cluster: read KubeRay's kinds, manage queues of Volcano and Kueue, read Volcano's PodGroups.

Cluster admins create RayClusters in tenants' namespaces, as Ray cluster admins. Elsewhere, as in the operator's
namespace or in kube-system, the pods of a RayCluster could run as accounts with more rights than any persona.
"""

CLUSTER_ADMIN_INSIDE = (
    *_LOOK_AROUND,
    rule("apps", ["deployments", "statefulsets"], READ),
    rule("apps", ["statefulsets/scale"], ["get", "update", "patch"]),
    rule("", ["pods"], ["delete"]),
)
"""In the namespaces of the operator, Redis, Prometheus and the log store: read, scale a StatefulSet, restart a pod.
Only the stack file may create or change workloads there, because a pod of the operator's namespace can use the
operator's account."""


def redis_admin(name: str) -> tuple[Rule, ...]:
    """Where the shared Redis is: change its StatefulSet `name`, as far as the admission policy `redis` allows. There is
    no `pods/exec`: its pods have the passwords of all tenants."""
    return (rule("apps", ["statefulsets"], ["update", "patch"], [name]),)


def scheduler_admin(configuration: str) -> tuple[Rule, ...]:
    """In the namespace of Volcano or Kueue: change its configuration, see whether it is accepted, restart a pod.
    `configuration`: name of the ConfigMap."""
    return (
        rule("", ["configmaps"], ["get", "update", "patch"], [configuration]),
        *_LOOK_AROUND,
        rule("", ["pods"], ["delete"]),
    )


def ray_cluster_admin(clusters: Iterable[NamedCluster], ingresses: bool = False) -> tuple[Rule, ...]:
    """In the tenant's namespace: create all objects of a tenant's own stack, and the rights of a Ray user.

    `ingresses`: whether Ingresses may be created.
    """
    return (
        rule(RAY_GROUP, ALL_RAY_KINDS, (*READ, *WRITE)),
        rule("policy", ["poddisruptionbudgets"], (*READ, *WRITE)),
        # KubeRay creates PodGroups. A patch changes their queue and priority.
        rule("scheduling.volcano.sh", ["podgroups"], ["patch"]),
        *([rule("networking.k8s.io", ["ingresses"], (*READ, *WRITE))] if ingresses else []),
        *_LOOK_AROUND,
        *_WHY_IT_WAITS,
        *RAY_PORT_FORWARDER,
        *use_of(clusters),
    )


RAY_USER = (rule(RAY_GROUP, ALL_RAY_KINDS, READ), *_LOOK_AROUND, *_WHY_IT_WAITS)
"""In the tenant's namespace: read KubeRay's kinds, their state, pods, events and logs, and why they wait."""

RAY_JOB_SUBMITTER = (rule(RAY_GROUP, ["rayjobs"], ["create", "delete"]),)
"""In the tenant's namespace: create RayJobs and delete one's own. Admission policies allow only runs of job templates,
and jobs on clusters that the user may use."""


def run_of(template: str) -> tuple[Rule, ...]:
    return (rule(RAY_GROUP, ["raycronjobs"], [RUN], [template]),)


LOCAL_CODE = (rule("", ["configmaps"], ["create"]),)
"""In the tenant's namespace: bring code to a run. An admission policy allows only the ConfigMap of a run of one's own.
RBAC knows no names of objects that do not exist."""


def schedule_of(template: str, held: str) -> tuple[Rule, ...]:
    """For the account that runs a job template on schedule. It sees the runs; the admission policies leave to it those
    that it creates. `held`: the RayCronJob that holds the template in the size of its runs."""
    return (
        rule(RAY_GROUP, ["raycronjobs"], ["get"], [held]),
        *run_of(template),
        rule(RAY_GROUP, ["rayjobs"], ["list", "create", "delete"]),
    )


RAY_PORT_FORWARDER = (rule("", ["pods/portforward"], ["get", "create"]),)
"""In the tenant's namespace: `kubectl port-forward`. It asks for `create`, and since 1.31, over WebSocket, for `get`.

Heads have random names, so RBAC cannot restrict the pods: the right is for any pod of the namespace. There is no access
to the Services there through the API server's proxy: it is not needed, and its requests come from the API server's
address.
"""


def use_of(clusters: Iterable[NamedCluster]) -> tuple[Rule, ...]:
    """Use of RayClusters that authenticate callers: by their tokens, or by Ray's own verb."""
    clusters = list(clusters)
    if not clusters:
        return ()
    secrets = [cluster.secret for cluster in clusters if cluster.secret]
    return (
        *([rule("", ["secrets"], ["get"], secrets)] if secrets else []),
        rule(RAY_GROUP, ["rayclusters"], [RAY_WRITE], [cluster.name for cluster in clusters]),
    )


def itself(cluster: NamedCluster) -> tuple[Rule, ...]:
    """For the accounts of a RayCluster's pods that authenticate to each other by Kubernetes tokens."""
    return (rule(RAY_GROUP, ["rayclusters"], [RAY_WRITE], [cluster.name]),)


_DEPLOYS = ("get", "list", "watch", "create", "delete", "update", "patch")

RAY_DEPLOYER = (
    *(
        rule(group, resources, _DEPLOYS)
        for group, resources in (("", ["pods", "services"]), ("apps", ["deployments"]), (RAY_GROUP, ["rayclusters"]))
    ),
    rule("", ["persistentvolumeclaims"], READ),
)
"""Monitoring, creating, deleting and updating of pods, Deployments, Services and RayClusters, as in ado's guide for
actuators that deploy to Kubernetes; ado's actuator for vLLM looks for the claim that it mounts. No Secrets, no
pods/exec, nothing outside the namespace."""

CLAIMS = (rule("", ["persistentvolumeclaims"], ["create", "delete"]),)
"""Creates and deletes PersistentVolumeClaims. An admission policy restricts what they ask for, and deletion to those
with the label of what the account creates, because RBAC cannot tell them from the tenant's storage. It changes none."""

_STATUS = tuple(f"{kind}/status" for kind in ALL_RAY_KINDS)

VIEW = (rule(RAY_GROUP, ALL_RAY_KINDS, READ), rule(RAY_GROUP, _STATUS, ["get"]))
"""Added to Kubernetes' own role `view`, and so to `edit` and `admin`: as KubeRay's viewer roles
(ray-operator/config/rbac/ray_*_viewer_role.yaml), for RayClusters as well."""

EDIT = (rule(RAY_GROUP, ALL_RAY_KINDS, WRITE),)
"""Added to Kubernetes' own role `edit`, and so to `admin`: as KubeRay's editor roles, for RayClusters as well."""
