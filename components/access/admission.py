"""Admission policies, in CEL, for tenants' namespaces where RBAC is too coarse. Pure functions.

The policies serve all tenants of a stack, and each asks the API server about the author of a request:

- `scaling-only`, `ray-jobs` and `job-templates` restrict who may patch RayClusters, or create RayJobs, without being
  allowed to create RayClusters. The operator can create any pod, so both rights would be more than they look.
- `deletions` keeps them from deleting RayJobs of others, and everybody from leaving behind what an object has made.
- `own-workers` restricts who may patch pods without being allowed to create them.
- `neighbours` refuses what a RayCluster may do to others: evict their pods, take their traffic, delete objects; and
  `ingress-hosts` the host names of others. They do not apply to those who may do what KubeRay's operator does
  (`update` on `rayclusters/finalizers`): the operator itself, Kubernetes' garbage collector, and Kubernetes
  administrators.
- `local-code` leaves to those who may create ConfigMaps but not change them the code of their own runs.
- `ray-deployer` bounds what the account of `rayDeployer` creates, where the stack file opens the network of its pods
  or allows it claims.
- `redis` restricts cluster admins, who may change the StatefulSet of Redis: its pods could run as any account of the
  namespace, which may be the operator's.
- `connected` only warns: of RayClusters, RayJobs and RayServices whose pods no NetworkPolicy lets reach each other.

They need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

import re
from collections.abc import Iterator, Sequence

from components.access.deployers import deployers
from components.access.ingresses import own_hosts
from components.access.neighbours import (
    BY_AN_ACCOUNT,
    LONGEST_TEXT,
    MAY_NOT_MAKE_ANY,
    NO_CONTROLLER,
    RAY_CLUSTERS,
    neighbours,
)
from components.access.personas import ALL_RAY_KINDS, RAY_GROUP, RAY_WRITE, RUN
from components.access.restricted import Restricted, by_namespace
from components.bodies import FIELD_MANAGER_ANNOTATION
from components.job_template.manifests import (
    AUTHOR_ANNOTATION,
    CODE_ANNOTATION,
    CODE_URI,
    CODE_VOLUME,
    LETTERS,
    LONGEST_CODE,
    OPTIONS_ANNOTATION,
    RANDOM,
    SIZE_LABEL,
    SIZES_ANNOTATION,
    TEMPLATE_LABEL,
    size_name,
)
from components.job_template.settings import CODE_FILE, WORD
from components.objects import Object
from components.payloads.idle_termination import NAME as IDLE_TERMINATION
from components.ray_cluster.manifests import API_VERSION as RAY_VERSION
from components.ray_cluster.pods import CLUSTER_LABEL, NODE_TYPE_LABEL
from components.redis.connection import NAME as REDIS
from components.tenant.settings import named, of_tenants
from core.body import Body
from policies.cel import listed

API_VERSION = "admissionregistration.k8s.io/v1"


NETWORKED = ("rayclusters", "rayjobs", "rayservices")
"""Kinds of KubeRay with pods that have to reach each other."""


def restrictions(stack: str, admitted: Restricted) -> Iterator[Object]:
    """The policies of a stack, each with its binding; places are below `ray-platform:`.

    `stack`: its name, so that stacks on one cluster have policies of their own. What leaves some RayJobs to others
    comes after these: the policy for other RayJobs, and the binding for the runs of a template without a size.
    """
    made = _restrictions(stack, admitted)
    sized = admitted.sizes.items()
    leaves = {_binding_of_runs(name): tuple(_binding_of_runs(name, size) for size in sizes) for name, sizes in sized}
    leaves[_OTHER_JOBS] = tuple(name for name in made if name.startswith(_OF_RUNS))
    for name, body in made.items():
        place = ("redis",) if name.startswith(_REDIS) else ("tenants",)
        yield Object(name, body, place, leaves.get(name, ()))


def _restrictions(stack: str, admitted: Restricted) -> dict[str, Body]:
    own = re.sub("[^a-z0-9]+", "-", stack.lower()).strip("-")
    tenants = of_tenants(admitted.namespaces)
    policies = [
        ("scaling-only", _scaling_only(), tenants),
        ("ray-jobs", _jobs_on_usable_clusters(), tenants),
        ("deletions", _deletions(), tenants),
        ("own-workers", _own_workers(), tenants),
        ("neighbours", neighbours(admitted), tenants),
    ]
    if admitted.local_code:
        policies.append(("local-code", _local_code(), tenants))
    if admitted.hosts:
        policies.append(("ingress-hosts", own_hosts(admitted), named("In", admitted.hosts)))
    if admitted.deployers:
        policies.append(("ray-deployer", deployers(admitted.deployers), named("In", admitted.deployers)))
    if admitted.redis:
        policies.append((_REDIS, _scaled_redis(), named("In", [admitted.redis])))
    if admitted.connected:
        policies.append((_CONNECTED, _connected(admitted), named("In", admitted.connected)))
    made: dict[str, Body] = {}
    for name, spec, where in policies:
        whole = f"ray-platform.{own}.{name}"
        made[f"{name}-policy"] = _body("ValidatingAdmissionPolicy", whole, spec)
        made[f"{name}-policy-binding"] = _binding(whole, whole, where, "Warn" if name == _CONNECTED else "Deny")
    if names := sorted(set(admitted.templates)):
        whole = f"ray-platform.{own}.job-templates"
        others = {"matchExpressions": [{"key": TEMPLATE_LABEL, "operator": "NotIn", "values": names}]}
        made[_OTHER_JOBS]["spec"]["matchResources"]["objectSelector"] = others
        made[f"{_OF_RUNS}-policy"] = _body("ValidatingAdmissionPolicy", whole, _runs_of_templates())
        for name in names:
            sizes = sorted(admitted.sizes.get(name, ()))
            for of in ((name,), *((name, size) for size in sizes)):
                binding = _binding(".".join([whole, *of]), whole, tenants)
                binding["spec"]["paramRef"] = {"name": size_name(*of), "parameterNotFoundAction": "Deny"}
                binding["spec"]["matchResources"]["objectSelector"] = _compared(sizes, *of)
                made[_binding_of_runs(*of)] = binding
    return made


def _binding_of_runs(*of: str) -> str:
    """Name of the resource. `of`: the template, and the size."""
    return f"{_OF_RUNS}:{'.'.join(of)}-binding"


def _compared(sizes: Sequence[str], template: str, size: str | None = None) -> Body:
    """Selects the runs that are compared with a size. Those of an unknown one are compared with the template itself,
    which they do not equal."""
    labels = {TEMPLATE_LABEL: template, **({SIZE_LABEL: size} if size else {})}
    others = [] if size else [{"key": SIZE_LABEL, "operator": "NotIn", "values": list(sizes)}]
    return {"matchLabels": labels, **({"matchExpressions": others} if others and sizes else {})}


_OTHER_JOBS = "ray-jobs-policy-binding"
"""The binding that leaves runs of job templates to the policies for them."""

_OF_RUNS = "job-template"
"""Prefix of the objects for runs of job templates."""

_REDIS = "redis"
"""The policy for the StatefulSet of the shared Redis."""

_CONNECTED = "connected"
"""The policy that only warns."""


def _binding(name: str, policy: str, where: Body, action: str = "Deny") -> Body:
    spec = {
        "policyName": policy,
        "validationActions": [action],
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
    same_group = _same_but("group", "before", listed(SCALED_OF_GROUPS))
    of_the_spec = f"({listed(SCALED)} + ({_SUSPENDS} ? ['suspend'] : []))"
    own = (
        f"{_SUSPENDS} || {_is_account_of('object.metadata.name')}"
        f" || object.spec.headGroupSpec.template.spec.?serviceAccountName.orValue('') == {_ACCOUNT}"
    )
    unchanged = (
        *_same_but("object.spec", "oldObject.spec", of_the_spec),
        f"{groups[0]}.size() == {groups[1]}.size()",
        f"{groups[0]}.all(group, {groups[1]}.exists(before, {' && '.join(same_group)}))",
        *(f"object.metadata.?{field} == oldObject.metadata.?{field}" for field in ("labels", "annotations")),
        own,
    )
    message = (
        f"this account may only scale the RayCluster of its pod: {' and '.join(SCALED_OF_GROUPS)} of "
        "worker groups are its to change"
    )
    return policy(
        ("rayclusters", "UPDATE"),
        [_OF_THE_NAMESPACE, _MAY_NOT_MAKE_ANY],
        [{"expression": expression, "message": message} for expression in unchanged],
    )


_ACCOUNT = "request.userInfo.username.split(':')[3]"
"""CEL: the name of the account that asks."""


def _is_account_of(cluster: str) -> str:
    """CEL: whether KubeRay has made the account that asks for the head of the RayCluster of that name.

    The head's pod template may name another (ray-operator/controllers/ray/utils/util.go: CheckName,
    GetHeadGroupServiceAccountName). The name is that of kuberay/formats.py: derived.
    """
    last = f"[{cluster}].map(name, name.size() > 50 ? name.substring(name.size() - 50) : name)"
    return f"{last}.exists(name, {_ACCOUNT} == (name.matches('^[a-z]') ? name : 'r' + name.substring(1)))"


def _own_workers() -> Body:
    """Accounts of the namespace that may patch but not create pods can only annotate and resize workers of their own
    RayCluster.

    KubeRay allows the head's account to patch every pod of its namespace, as the autoscaler resizes workers in place.
    Another image would run with the account of that pod, and other labels would give a pod the connections of another.
    """
    labels = "oldObject.metadata.?labels.orValue({})"
    cluster = f"{labels}[?'{CLUSTER_LABEL}'].orValue('')"
    own = (
        f"{labels}[?'{NODE_TYPE_LABEL}'].orValue('') == 'worker'"
        f" && ({_is_account_of(cluster)} || oldObject.spec.?serviceAccountName.orValue('') == {_ACCOUNT})"
    )
    now, before = (_annotations(each) for each in ("object", "oldObject"))
    unchanged = (
        own,
        "request.?subResource.orValue('') == 'resize' || object.spec == oldObject.spec",
        *(f"object.metadata.?{each} == oldObject.metadata.?{each}" for each in _KEPT),
        f"{now}.all(key, key.startsWith('ray.io/') || key in {before} && {now}[key] == {before}[key])",
        f"{before}.all(key, key.startsWith('ray.io/') || key in {now})",
    )
    message = (
        "this account may only resize workers of its own RayCluster, and set their annotations ray.io/...: to change a "
        "pod, change what it is made from"
    )
    made = policy(
        ("pods", "UPDATE"),
        [_OF_THE_NAMESPACE, _MAY_NOT_MAKE_PODS],
        [{"expression": expression, "message": message} for expression in unchanged],
    )
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods", "pods/resize"]}
    return {**made, "matchConstraints": {"resourceRules": [rule]}}


_RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""Annotation by which `kubectl rollout restart` replaces pods."""


def _scaled_redis() -> Body:
    """Cluster admins change the number and the resources of Redis' nodes, and restart them."""
    template, earlier = "object.spec.template", "oldObject.spec.template"
    now, before = f"{template}.spec.containers", f"{earlier}.spec.containers"
    same = " && ".join(_same_but("c", "before", listed(["resources"])))
    unchanged = (
        *_same_but("object.spec", "oldObject.spec", listed(["replicas", "template"])),
        *_same_but(f"{template}.spec", f"{earlier}.spec", listed(["containers"])),
        *_same_but(f"{template}.metadata", f"{earlier}.metadata", listed(["annotations"])),
        *_same_but(_annotations(template), _annotations(earlier), listed([_RESTARTED])),
        f"{now}.size() == {before}.size()",
        f"{now}.all(c, {before}.exists(before, {same}))",
        *(f"object.metadata.?{each} == oldObject.metadata.?{each}" for each in _KEPT),
    )
    message = (
        "cluster admins may set replicas and resources of Redis, and restart it: change everything else in redis of "
        "the stack file"
    )
    rule = {
        # With a version the API server would warn of maps that its schema has as objects.
        **{"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["statefulsets"]},
        "resourceNames": [REDIS],
    }
    return {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [NO_CONTROLLER],
        "validations": [{"expression": expression, "message": message} for expression in unchanged],
    }


_KEPT = ("labels", "ownerReferences", "finalizers")
"""Metadata that decides what an object belongs to, and when it is gone."""


CLUSTER_SELECTOR = "ray.io/cluster"
"""Key with which a RayJob names its RayCluster (constant.go: RayJobClusterSelectorKey)."""

_RAY_JOBS = f"authorizer.group('{RAY_GROUP}').resource('rayjobs')"
_RAY_JOB_TEMPLATES = f"authorizer.group('{RAY_GROUP}').resource('raycronjobs')"

_AUTHOR = f"object.metadata.?annotations[?'{AUTHOR_ANNOTATION}']"
"""CEL: who creates a RayJob, by its annotation."""


LONGEST_ANNOTATIONS = 64 * 2**10
"""Characters of all annotations of a RayJob of those who may not create RayClusters. Kubernetes allows four times as
many."""


def _jobs_on_usable_clusters() -> Body:
    """Users who may create RayJobs but not RayClusters must select a RayCluster that they may use, without pod
    templates.

    A RayJob can contain its own RayCluster and a pod template for its submitter. Their pods could use any account and
    any Secret of the namespace. In the name of somebody else only that user could delete it (_deletions), and `runs`
    would show it as run by that user.
    """
    cluster, annotations = f"object.spec.clusterSelector['{CLUSTER_SELECTOR}']", _annotations("object")
    return policy(
        ("rayjobs", "CREATE"),
        [_MAY_NOT_MAKE_ANY],
        [
            _absent("rayClusterSpec"),
            _absent("submitterPodTemplate"),
            {
                "expression": f"object.spec.?clusterSelector[?'{CLUSTER_SELECTOR}'].hasValue()",
                "message": f"name the RayCluster that it runs on: clusterSelector: {{{CLUSTER_SELECTOR}: NAME}}",
            },
            {
                "expression": f"!object.spec.?clusterSelector[?'{CLUSTER_SELECTOR}'].hasValue() || "
                f"{RAY_CLUSTERS}.namespace(request.namespace).name({cluster}).check('{RAY_WRITE}').allowed()",
                "messageExpression": f"'you may not use RayCluster ' + {cluster} + ': the stack file does not name you "
                "among its users'",
                "message": "you may not use this RayCluster",
            },
            {
                "expression": f"{_AUTHOR}.orValue(request.userInfo.username) == request.userInfo.username",
                "message": f"annotation {AUTHOR_ANNOTATION} is the name of the user who creates it: leave it out",
            },
            {
                "expression": f"{annotations}.map(key, size(key) + size({annotations}[key])).sum()"
                f" <= {LONGEST_ANNOTATIONS}",
                "message": "annotations are too long, for all who share the API server: use at most "
                f"{LONGEST_ANNOTATIONS} characters",
            },
        ],
    )


_EQUALS, _ALL = "a run equals its template", ", labels and annotations included, except for arguments"


def _runs_of_templates() -> Body:
    """Users who may create RayJobs but not RayClusters run job templates as they are, with arguments and in their own
    name. The parameter is the RayCronJob that holds the template.
    """
    template = "params.spec.jobTemplate"
    arguments = f"object.spec.entrypoint.substring(size({template}.entrypoint))"
    options = f"params.metadata.?annotations[?'{OPTIONS_ANNOTATION}']"
    given, brings = (f"{of}.metadata.?annotations[?'{CODE_ANNOTATION}']" for of in ("object", "params"))
    submitter, equals = "submitterPodTemplate", f"{_EQUALS}{_ALL}"
    sizes = f"params.metadata.?annotations[?'{SIZES_ANNOTATION}']"
    named = f"({sizes}.hasValue() ? ' or one of its sizes (' + {sizes}.orValue('') + ')' : '')"
    same = [
        *_same_but("object.spec", template, listed(["entrypoint", "suspend", submitter])),
        f"{brings}.hasValue() || object.spec.?{submitter} == {template}.?{submitter}",
        *(
            f"!{brings}.hasValue() || {each}"
            for each in _same_but_the_code(f"object.spec.{submitter}", f"{template}.{submitter}")
        ),
        "object.metadata.labels == params.metadata.labels",
        *_same_but(_annotations("object"), _annotations("params"), listed([AUTHOR_ANNOTATION, CODE_ANNOTATION])),
    ]
    rules = [
        (
            f"{_RAY_JOB_TEMPLATES}.namespace(request.namespace).name(params.metadata.labels['{TEMPLATE_LABEL}'])"
            f".check('{RUN}').allowed()",
            "you may not run this job template: the stack file does not name you among its users",
        ),
        *((each, equals) for each in same),
        (
            f"object.metadata.name.matches('^' + params.metadata.name + '-[{LETTERS}]{{{RANDOM}}}$')",
            f"a run is named as its template, with a hyphen and {RANDOM} of {LETTERS}",
        ),
        (
            f"object.spec.entrypoint.startsWith({template}.entrypoint) && {arguments}.matches('^( {WORD})*$')",
            "a run has the entrypoint of its template, and then arguments without characters that a shell interprets: "
            "letters, digits and _ @ % + = : , . / -, each after one blank",
        ),
        (
            f"!{options}.hasValue() || {arguments}.split(' ').all(word, !word.startsWith('-')"
            f" || word.split('=')[0] in {options}.orValue('').split(' '))",
            f"the template has a list of options (annotation {OPTIONS_ANNOTATION}), and this run gives another",
        ),
        (
            f"{brings}.hasValue() ? {given}.orValue('').matches('^{CODE_URI}$') : !{given}.hasValue()",
            f"a run has Ray's URI of its code (annotation {CODE_ANNOTATION}) if its template has localCode, and not "
            "otherwise",
        ),
        (
            f"{_AUTHOR}.orValue('') == request.userInfo.username",
            f"annotation {AUTHOR_ANNOTATION} of a run is the name of the user who creates it",
        ),
        (
            f"size({arguments}) <= {LONGEST_TEXT}",
            f"the list of arguments is too long, for all who share the API server: use at most {LONGEST_TEXT} "
            "characters, and put the rest into a file that the job reads",
        ),
        *(
            (f"object.metadata.?{each}.orValue([]).size() == 0", f"{each} are KubeRay's: leave them out")
            for each in ("ownerReferences", "finalizers")
        ),
    ]
    spec = policy(
        ("rayjobs", "CREATE"),
        [_MAY_NOT_MAKE_ANY],
        [
            {
                "expression": expression,
                "message": message,
                **({"messageExpression": f"'{_EQUALS}' + {named} + '{_ALL}'"} if message == equals else {}),
            }
            for expression, message in rules
        ],
    )
    labelled = {"matchExpressions": [{"key": TEMPLATE_LABEL, "operator": "Exists"}]}
    return {
        **spec,
        "paramKind": {"apiVersion": RAY_VERSION, "kind": "RayCronJob"},
        # Until the API server knows the parameter's kind, it refuses all that the policy is for.
        "matchConstraints": {**spec["matchConstraints"], "objectSelector": labelled},
    }


_NAME_OF_CODE = "'.' + '%x'.format([request.userInfo.username])"
"""CEL: what follows a run's name in the name of the ConfigMap with its code (job_template/manifests.py: code_of)."""


def _same_but_the_code(now: str, before: str) -> tuple[str, ...]:
    """CEL: two pod templates are equal except for the ConfigMap with the code, which is the author's own."""
    volumes, earlier = (f"{each}.spec.?volumes.orValue([])" for each in (now, before))
    own = (
        *_same_but("volume", "before", listed(["configMap"])),
        *_same_but("volume.configMap", "before.configMap", listed(["name"])),
        f"volume.configMap.name == object.metadata.name + {_NAME_OF_CODE}",
    )
    return (
        f"has({now})",
        *_same_but(now, before, listed(["spec"])),
        *_same_but(f"{now}.spec", f"{before}.spec", listed(["volumes"])),
        f"{volumes}.size() == {earlier}.size()",
        f"{volumes}.all(volume, {earlier}.exists(before,"
        f" volume.name == '{CODE_VOLUME}' ? {' && '.join(own)} : volume == before))",
    )


def _local_code() -> Body:
    """Who may create ConfigMaps, but not change them, creates only the code of a run of their own. Without labels and
    annotations no controller takes it for its configuration, and with its owner it is deleted."""
    owner = "object.metadata.ownerReferences[0]"
    owned = (
        "object.metadata.?ownerReferences.orValue([]).size() == 1",
        f"{owner}.apiVersion == '{RAY_VERSION}' && {owner}.kind == 'RayJob'",
        *(f"{owner}.?{each}.orValue(false) == false" for each in ("controller", "blockOwnerDeletion")),
        f"object.metadata.?name.orValue('') == {owner}.name + {_NAME_OF_CODE}",
    )
    alone = (
        *(f"object.metadata.?{each}.orValue({{}}).size() == 0" for each in ("labels", "annotations")),
        "object.metadata.?finalizers.orValue([]).size() == 0",
        "object.?immutable.orValue(false) == true && object.?data.orValue({}).size() == 0",
        f"object.?binaryData.orValue({{}}).size() == 1 && '{CODE_FILE}' in object.binaryData",
    )
    most = (LONGEST_CODE + 2) // 3 * 4
    rules = (
        (
            " && ".join((*owned, *alone)),
            "you may only create the ConfigMap with the code of a run of yours, which is immutable and has the run as "
            "its owner: use `ray-platform run --working-dir`",
        ),
        (
            f"object.?binaryData.orValue({{}}).all(key, size(object.binaryData[key]) <= {most})",
            f"the code of a run has at most {LONGEST_CODE // 2**10} KiB, packed",
        ),
    )
    here, everywhere = ".namespace(request.namespace)", ""
    # A condition for each, because an expression has the cost of two questions to the authorizer. Controllers of the
    # cluster may create ConfigMaps everywhere.
    may_only_create = [
        {
            "name": f"may-not-{verb}",
            "expression": f"!authorizer.group('').resource('configmaps'){where}.check('{verb}').allowed()",
        }
        for verb, where in (("update", here), ("patch", here), ("create", everywhere))
    ]
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": may_only_create,
        "validations": [{"expression": expression, "message": message} for expression, message in rules],
    }


def _deletions() -> Body:
    """Users who may not create RayClusters delete runs of job templates that they created, and RayJobs on RayClusters
    that they may use, where they may stop any job. Nobody deletes an object alone: without an owner a RayCluster has
    no deadline, and pods are nobody's to delete.

    Others are Kubernetes' garbage collector, and its namespace controller, which may delete whole collections.
    """
    author = f"oldObject.metadata.?annotations[?'{AUTHOR_ANNOTATION}']"
    selected = f"oldObject.spec.?clusterSelector[?'{CLUSTER_SELECTOR}']"
    usable = f"{RAY_CLUSTERS}.namespace(request.namespace).name({selected}.orValue('')).check('{RAY_WRITE}').allowed()"
    collections = {
        "name": "may-not-delete-collections",
        "expression": f"!{_RAY_JOBS}.namespace(request.namespace).check('deletecollection').allowed()",
    }
    own = f"{author}.hasValue() ? {author}.orValue('') == request.userInfo.username"
    return policy(
        (*ALL_RAY_KINDS, "DELETE"),
        [NO_CONTROLLER, collections],
        [
            {
                "expression": f"request.kind.kind != 'RayJob' || !({MAY_NOT_MAKE_ANY})"
                f" || ({own} : {selected}.hasValue() && {usable})",
                "message": "this RayJob is not yours: you may delete runs of job templates that you created, and "
                "RayJobs on RayClusters that you may use",
            },
            {
                "expression": "request.?options.?propagationPolicy.orValue('') != 'Orphan'"
                " && request.?options.?orphanDependents.orValue(false) != true",
                "message": "what it has made would stay without an owner: delete it without --cascade=orphan",
            },
        ],
    )


def _annotations(of: str) -> str:
    """CEL: the annotations of an object."""
    return f"{of}.metadata.?annotations.orValue({{}})"


def _absent(field: str) -> Body:
    return {
        "expression": f"!has(object.spec.{field})",
        "message": f"{field} is for those who may make RayClusters: leave it out, name a RayCluster in clusterSelector",
    }


_MAY_NOT_MAKE_ANY = {"name": "may-not-make-rayclusters", "expression": MAY_NOT_MAKE_ANY}
_MAY_NOT_MAKE_PODS = {
    "name": "may-not-make-pods",
    "expression": "!authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()",
}
_OF_THE_NAMESPACE = {
    "name": "account-of-the-namespace",
    "expression": BY_AN_ACCOUNT,
}


def _connected(admitted: Restricted) -> Body:
    """Workers wait for the head forever where a tenant's network is closed, and no event says why."""
    named = "request.resource.resource + '/' + object.metadata.?name.orValue('')"
    of_a_run = f"object.metadata.?labels[?'{TEMPLATE_LABEL}'].hasValue()"
    elsewhere = f"object.spec.?clusterSelector[?'{CLUSTER_SELECTOR}'].hasValue()"
    by_hand = (
        "object.metadata.?ownerReferences.orValue([]).size() == 0",  # the operator's have one
        # The policies of the stack's objects may come after them.
        f"!object.metadata.?annotations[?'{FIELD_MANAGER_ANNOTATION}'].hasValue()",
    )
    message = (
        "no NetworkPolicy of the tenant lets the pods of this object reach each other, so its workers will wait for "
        "the head: add its name to clusterNames, jobNames or serviceNames of the tenant in the stack file, or set "
        "network.otherClusters"
    )
    return policy(
        (*NETWORKED, "CREATE"),
        [{"name": "by-hand", "expression": " && ".join(by_hand)}],
        [
            {
                "expression": f"{named} in {by_namespace(admitted.connected)} || {of_a_run} || {elsewhere}",
                "message": message,
            }
        ],
    )


def policy(on: tuple[str, ...], conditions: Sequence[Body], validations: Sequence[Body]) -> Body:
    """The spec of a policy. `on`: plural names of KubeRay's kinds, and at the end the operation."""
    *resources, operation = on
    rules = [{"apiGroups": [RAY_GROUP], "apiVersions": ["v1"], "operations": [operation], "resources": resources}]
    return {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": list(conditions),
        "validations": list(validations),
    }


def _same_but(now: str, before: str, free: str) -> tuple[str, str]:
    """CEL: two mappings are equal except for the keys in the list `free`."""
    return (
        f"{now}.all(key, key in {free} || key in {before} && {now}[key] == {before}[key])",
        f"{before}.all(key, key in {free} || key in {now})",
    )
