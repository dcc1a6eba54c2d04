"""Admission policies, in CEL, for tenants' namespaces where RBAC is too coarse. Pure functions.

The policies serve all tenants of a stack, and each asks the API server about the author of a request:

- `scaling-only`, `ray-jobs` and `job-templates` restrict who may patch RayClusters, or create RayJobs, without being
  allowed to create RayClusters. The operator can create any pod, so both rights would be more than they look.
  `own-ray-jobs` keeps them from deleting RayJobs of others.
- `neighbours` refuses what a RayCluster may do to others: evict their pods, take their traffic, delete objects; and
  `ingress-hosts` the host names of others. They do not apply to those who may do what KubeRay's operator does
  (`update` on `rayclusters/finalizers`): the operator itself, Kubernetes' garbage collector, and Kubernetes
  administrators.

They need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.access.cel import MAY_NOT_MAKE_ANY, OF_THE_NAMESPACE, policy, same_but
from components.access.neighbours import neighbours, own_hosts
from components.access.ray_jobs import jobs_on_usable_clusters, own_jobs, runs_of_templates
from components.idle_termination.in_pod import NAME as IDLE_TERMINATION
from components.job_template.manifests import TEMPLATE_LABEL
from components.objects import Object
from components.tenant.settings import named, of_tenants
from policies.cel import listed

Body = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Restricted:
    """What is admitted in the namespaces of a stack's tenants."""

    namespaces: Sequence[str] | None = None
    """The tenants' namespaces. None: the stack creates all of them, and their label selects them."""

    classes: Sequence[str] = ()
    """PriorityClasses that tenants' RayClusters may have."""

    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Host names of Ingresses, by the namespaces of the tenants that may have any."""

    volcano: bool = False
    """Whether the operator schedules with Volcano."""

    templates: Sequence[str] = ()
    """Names of the job templates of all tenants."""


def restrictions(stack: str, admitted: Restricted) -> Iterator[Object]:
    """The policies of a stack, each with its binding; places are below `ray-platform:`.

    `stack`: its name, so that stacks on one cluster have policies of their own. The policy for other RayJobs leaves
    runs of job templates to the policies for them, and so comes after these.
    """
    made = _restrictions(stack, admitted)
    of_runs = tuple(name for name in made if name.startswith(_OF_RUNS))
    for name, body in made.items():
        yield Object(name, body, ("tenants",), of_runs if name == _OTHER_JOBS else ())


def _restrictions(stack: str, admitted: Restricted) -> dict[str, Body]:
    own = re.sub("[^a-z0-9]+", "-", stack.lower()).strip("-")
    tenants = of_tenants(admitted.namespaces)
    policies = [
        ("scaling-only", _scaling_only(), tenants),
        ("ray-jobs", jobs_on_usable_clusters(), tenants),
        ("own-ray-jobs", own_jobs(), tenants),
        ("neighbours", neighbours(admitted.classes, admitted.volcano), tenants),
    ]
    if admitted.hosts:
        policies.append(("ingress-hosts", own_hosts(admitted.hosts), named("In", admitted.hosts)))
    made: dict[str, Body] = {}
    for name, spec, where in policies:
        whole = f"ray-platform.{own}.{name}"
        made[f"{name}-policy"] = _body("ValidatingAdmissionPolicy", whole, spec)
        made[f"{name}-policy-binding"] = _binding(whole, whole, where)
    if names := sorted(set(admitted.templates)):
        whole = f"ray-platform.{own}.job-templates"
        others = {"matchExpressions": [{"key": TEMPLATE_LABEL, "operator": "NotIn", "values": names}]}
        made[_OTHER_JOBS]["spec"]["matchResources"]["objectSelector"] = others
        made[f"{_OF_RUNS}-policy"] = _body("ValidatingAdmissionPolicy", whole, runs_of_templates())
        for name in names:
            binding = _binding(f"{whole}.{name}", whole, tenants)
            binding["spec"]["paramRef"] = {"name": name, "parameterNotFoundAction": "Deny"}
            binding["spec"]["matchResources"]["objectSelector"] = {"matchLabels": {TEMPLATE_LABEL: name}}
            made[f"{_OF_RUNS}:{name}-binding"] = binding
    return made


_OTHER_JOBS = "ray-jobs-policy-binding"
"""The binding that leaves runs of job templates to the policies for them."""

_OF_RUNS = "job-template"
"""Prefix of the objects for runs of job templates."""


def _binding(name: str, policy: str, where: Body) -> Body:
    spec = {
        "policyName": policy,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchExpressions": [where]}},
    }
    return _body("ValidatingAdmissionPolicyBinding", name, spec)


def _body(kind: str, name: str, spec: Body) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


SCALED = ("workerGroupSpecs", "idleSuspend")
SCALED_OF_GROUPS = ("replicas", "scaleStrategy")
"""Fields of a RayCluster's spec and of its worker groups that an autoscaler writes."""

_SUSPENDS = f"request.userInfo.username.endsWith(':{IDLE_TERMINATION}')"
"""CEL: whether the request is by the account that suspends idle RayClusters."""


def _scaling_only() -> Body:
    """Accounts of the namespace that may patch but not create RayClusters can only scale them.

    The account of the pod that suspends idle RayClusters may also suspend and wake them.

    KubeRay allows the head's account to patch every RayCluster of its namespace (ray-operator/controllers/ray/common/
    rbac.go). Without this policy anybody with its token could add a worker group whose pods mount any Secret, or run as
    any account, of the namespace.
    """
    groups = ("object.spec.?workerGroupSpecs.orValue([])", "oldObject.spec.?workerGroupSpecs.orValue([])")
    same_group = same_but("group", "before", listed(SCALED_OF_GROUPS))
    of_the_spec = f"({listed(SCALED)} + ({_SUSPENDS} ? ['suspend'] : []))"
    unchanged = (
        *same_but("object.spec", "oldObject.spec", of_the_spec),
        f"{groups[0]}.size() == {groups[1]}.size()",
        f"{groups[0]}.all(group, {groups[1]}.exists(before, {' && '.join(same_group)}))",
        *(f"object.metadata.?{field} == oldObject.metadata.?{field}" for field in ("labels", "annotations")),
    )
    message = (
        f"this account may only scale RayClusters: {' and '.join(SCALED_OF_GROUPS)} of worker groups are its to change"
    )
    return policy(
        ("rayclusters", "UPDATE"),
        [OF_THE_NAMESPACE, MAY_NOT_MAKE_ANY],
        [{"expression": expression, "message": message} for expression in unchanged],
    )
