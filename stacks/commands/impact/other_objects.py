"""What an edit does to the objects of a stack other than RayClusters (these: `ray_cluster`). Pure functions.

An object that is created or deleted together with a shown one is not shown by itself: with its Namespace all objects in
it and all others of its tenant, with a RayCluster its own objects, with Redis its Services, with a queue of Kueue its
LocalQueues, and with an admission policy its binding. An object whose deletion is a loss of its own is always shown: a
queue, Redis, a volume.

Rights are shown by subject. No Role or binding is shown by itself: a Role without a subject grants nothing.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.access.manifests import AUTH_DELEGATOR, PREFIX
from components.access.personas import RAY_WRITE, RUN, Rule, rule
from components.job_template.manifests import SIZES_ANNOTATION
from components.kueue.manifests import METRICS_READER
from components.objects import Object
from components.ray_job.manifests import RUN_ANNOTATION
from components.redis.connection import NAME as REDIS
from core.body import Body
from core.messages import may_be_secret
from core.problems import Path, few, in_one_line
from kuberay.edits import Steps, Verdict, differences
from stacks.commands.impact.effects import Effect, Kind, ObjectImpact, impact
from stacks.commands.impact.kinds import ANOTHER_AUTHORITY, AS_RIGHTS, CONNECTION_CHECK, WIDENED, kind_of
from stacks.commands.impact.network import only_widens
from stacks.commands.impact.ray_cluster import of_ray_service
from stacks.objects.stack import Key, Objects

_SHOWN = 6
"""The number of fields that an effect names."""

_LONGEST = 60
"""The largest number of characters of a value that is shown with its field."""

_GENERATED = ("pulumi.com/", "ray-platform/scripts", SIZES_ANNOTATION)
"""Prefixes of annotations that follow from other fields: hashes, names, and what Pulumi waits for."""

_OWNERS = frozenset({"Namespace", "RayCluster", "RayCronJob", "RayJob", "RayService"})
"""Kinds whose objects are created and deleted together with everything below their place in the stack file."""


_RUN_ONCE = frozenset({"RayJob", "Job"})
"""Kinds that run once, until another run replaces them."""


def of_objects(before: Objects, after: Objects, authorities: Container[str] = ()) -> Iterator[ObjectImpact]:
    """The effects on each object. `authorities`: the Secrets with the authorities that the stack has created, by
    `<namespace>/<name>`."""
    places = {id(each): _places(each) for each in (before, after)}
    for key in dict.fromkeys([*before, *after]):
        was, will = before.get(key), after.get(key)
        if key[0] in AS_RIGHTS or key[0] == "RayCluster" or was is will:
            continue
        kind = kind_of((was or after[key]).body)
        if was is None or will is None:
            with_it, without_it, one = (after, before, will) if will else (before, after, was)
            if one is None or (
                key[0] != "RayCronJob"
                and kind.losing is Verdict.REMOVES
                and _follows_owner(key, one, places[id(with_it)], with_it, without_it)
            ):
                continue
        if key[0] == "Certificate" and was is None and key[1] in authorities:
            yield impact(*key, [ANOTHER_AUTHORITY])
            continue
        if key[0] in _RUN_ONCE and was and will:
            yield impact(*key, of_job(kind, was.body, will.body))
            continue
        if key[0] == "RayService" and was and will:
            yield impact(*key, of_ray_service(was.body, will.body))
            continue
        yield impact(*key, _effects(kind, was.body if was else None, will.body if will else None))


def _places(objects: Objects) -> Mapping[Path, Key]:
    return {each.place: key for key, each in objects.items() if key[0] in _OWNERS}


def _follows_owner(key: Key, one: Object, places: Mapping[Path, Key], with_it: Objects, without_it: Objects) -> bool:
    """Whether its owner is created or deleted, too. `with_it`: the objects that include it. `without_it`: the objects
    that do not."""
    kind, name = key
    namespace, _, own = name.rpartition("/")
    owners = [("Namespace", namespace), places.get(one.place[:2]), places.get(one.place[:4])]
    owners += [("StatefulSet", f"{namespace}/{REDIS}")] if one.place[:1] == ("redis",) else []
    owners += [("ClusterQueue", own)] if kind == "LocalQueue" else []
    owners += [("ValidatingAdmissionPolicy", name)] if kind == "ValidatingAdmissionPolicyBinding" else []
    return any(each in with_it and each not in without_it for each in owners if each and each != key)


def _effects(kind: Kind, before: Any, after: Any) -> Iterator[Effect]:
    if after is None:
        yield Effect(kind.losing, kind.gone, safer=kind.safer)
    elif before is None:
        yield Effect(Verdict.CREATES, kind.made)
    elif before != after and (paths := list(_differences(before, after))):
        shown = _step_of_run if after["kind"] == "RayCronJob" else _step
        listed = few(list(dict.fromkeys(shown(path, before, after) for path in paths)), _SHOWN)
        if after["kind"] == "NetworkPolicy" and only_widens(before, after):
            kind = replace(kind, changed=WIDENED)
        yield _changed(kind, after["kind"], paths, listed)


def of_job(kind: Kind, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Effect]:
    """The job starts again if its settings have changed, or is suspended or resumed. Nothing else reaches it."""
    was, will = ((body["metadata"].get("annotations") or {}).get(RUN_ANNOTATION) for body in (before, after))
    suspended, suspends = (bool(body["spec"].get("suspend")) for body in (before, after))
    if was != will and kind is CONNECTION_CHECK:
        yield Effect(Verdict.IN_PLACE, kind.changed)
    elif was != will:
        yield Effect(
            Verdict.REPLACES,
            "its settings or its runId change: the job stops if it runs, and starts again from the beginning",
            "no change is applied to a job that exists",
            "let the job end first",
            "ray-operator/controllers/ray/rayjob_controller.go: getOrCreateRayClusterInstance"
            if after["kind"] == "RayJob"
            else "kubernetes pkg/apis/batch/validation/validation.go: ValidateJobSpecUpdate",
        )
    elif suspends and not suspended:
        yield Effect(Verdict.DELETES, "is suspended: its job stops if it runs, and its cluster is deleted")
    elif suspended and not suspends:
        yield Effect(Verdict.IN_PLACE, "is resumed: its job starts from the beginning")


def _differences(before: Any, after: Any) -> Iterator[Steps]:
    """The paths that differ, without those that follow from another field."""
    suspended = (after.get("spec") or {}).get("suspend") is True
    for path in differences(_configured(before), _configured(after)):
        # Objects that never run by themselves have no times.
        if not (suspended and path == ("spec", "schedule")):
            yield path


def _configured(value: Any) -> Any:
    """A body without generated values."""
    if isinstance(value, Mapping):
        found = {key: _configured(each) for key, each in value.items() if not key.startswith(_GENERATED)}
        return {key: each for key, each in found.items() if key != "annotations" or each}
    if isinstance(value, list | tuple):
        return [_configured(each) for each in value]
    return value


def _changed(kind: Kind, name: str, paths: list[Steps], listed: str) -> Effect:
    fixed = kind.fixed
    if fixed and any(path[1] in fixed.fields for path in paths if path[0] == "spec" and len(path) > 1):
        return Effect(fixed.verdict, f"{listed}: {fixed.replaced}", fixed.reason, fixed.safer, fixed.source)
    if name != "StatefulSet":
        return Effect(Verdict.IN_PLACE, f"{listed}: {kind.changed}")
    if all(path[:2] == ("spec", "replicas") for path in paths):
        return Effect(Verdict.IN_PLACE, f"{listed}: pods of Redis are added or removed; the others continue to run")
    return Effect(
        Verdict.ROLLING,
        f"{listed}: {kind.changed}",
        "the pod template changes",
        "",
        "docs/redis.md",
    )


def _step(path: Steps, before: Any, after: Any) -> str:
    """A field, with its values if they are short and no secrets."""
    if may_be_secret(path):
        return ".".join(path)
    values = [_shown(_at(body, path)) for body in (before, after)]
    change = in_one_line(" -> ".join(str(value) for value in values))
    return f"{'.'.join(path)} {change}" if None not in values and len(change) <= _LONGEST else ".".join(path)


_RUNS = ("spec", "jobTemplate")
"""The RayJob that a job template has for its runs."""


def _step_of_run(path: Steps, before: Any, after: Any) -> str:
    """A field of a job template as people call it: `cpu 8 -> 16 of worker group cpu`."""
    match path[len(_RUNS) :] if path[: len(_RUNS)] == _RUNS else ():
        case ("rayClusterSpec", "workerGroupSpecs", group, *below):
            of = f"worker group {group}"
        case ("rayClusterSpec", "headGroupSpec", *below):
            of = "the head"
        case _:
            return _step(path, before, after)
    if not below:
        return of
    if below[:3] == ["template", "spec", "containers"]:
        below = below[4:] or below
    name = below[-1] if below[0] == "resources" else ".".join(below)
    values = [_shown(_in_names(body, path)) for body in (before, after)]
    change = in_one_line(" -> ".join(str(value) for value in values))
    shown = None not in values and len(change) <= _LONGEST and not may_be_secret(path)
    return f"{name} {change} of {of}" if shown else f"{name} of {of}"


def _in_names(body: Any, path: Steps) -> Any:
    """The value at a path whose steps into lists are the names of their items."""
    for step in path:
        if isinstance(body, list | tuple):
            body = next((each for each in body if step in (each.get("name"), each.get("groupName"))), None)
        else:
            body = body.get(step) if isinstance(body, Mapping) else None
    return body


def _shown(value: Any) -> str | None:
    """A value in a line; None for values that are not scalars."""
    if value is None:
        return "none"
    if isinstance(value, str | int | bool):
        return str(value)
    words = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return ", ".join(value) or "none" if words else None


def _at(body: Any, path: Steps) -> Any:
    for step in path:
        if not isinstance(body, Mapping):
            return body if body is None else [body]
        body = body.get(step)
    return body


RIGHTS = "Rights of"
"""Stands for the kind of object where a subject's rights change."""

_EVERYWHERE = "the whole cluster"

_WHERE_BOUND = "each namespace in which somebody has it"

_AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"
"""Prefix of the label by which Kubernetes aggregates a ClusterRole's rules into its own ClusterRole."""

_OF_OTHERS: Mapping[str, Sequence[Rule]] = {
    AUTH_DELEGATOR: (
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ),
    METRICS_READER: (rule("", ["/metrics"], ["get"]),),
}
"""ClusterRoles that Kubernetes itself creates (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go), and Kueue's
for readers of its metrics."""

Right = tuple[str, str, str]
"""Namespace, object (`secrets training`), and verb."""

Rights = dict[str, set[Right]]
"""By subject."""

Roles = dict[str, list[str]]
"""By namespace, the titles of a subject's roles."""


def of_rights(before: Objects, after: Objects) -> Iterator[ObjectImpact]:
    """For each subject whose rights change: what it gains, and what it loses."""
    had, has = rights(before), rights(after)
    had_roles, has_roles = roles(before), roles(after)
    for who in dict.fromkeys([*had, *has]):
        gained, lost = has.get(who, set()) - had.get(who, set()), had.get(who, set()) - has.get(who, set())
        were, are = had_roles.get(who, {}), has_roles.get(who, {})
        effects = [_right("gains", "now", where, what, were, are) for where, what in _listed(gained)]
        effects += [_right("loses", "no longer", where, what, are, were) for where, what in _listed(lost)]
        yield impact(RIGHTS, who, effects)


def _right(verb: str, now: str, where: str, what: str, before: Roles, after: Roles) -> Effect:
    """What changes in a place: by the names of roles, with each right as the detail; or by its rights alone."""
    names = [each for each in after.get(where, ()) if each not in before.get(where, ())]
    if not names:
        return Effect(Verdict.IN_PLACE, f"{verb} in {where}: {what}")
    return Effect(Verdict.IN_PLACE, f"{now} {', '.join(names)} in {where}", detail=f"{verb}: {what}")


_ADMINS = {"cluster-admin": "cluster admin", "ray-cluster-admin": "Ray cluster admin"}
_USERS = ("ray-user", "ray-port-forwarder", "ray-job-submitter", "ray-job-template")
"""Roles of people by the names of their grants (docs/access.md)."""


def roles(manifests: Objects) -> dict[str, Roles]:
    """What the objects of a stack make of people, by subject: an admin, or a user who may do this and that."""
    found: dict[str, Roles] = defaultdict(lambda: defaultdict(list))
    for (kind, name), each in manifests.items():
        if kind in ("RoleBinding", "ClusterRoleBinding"):
            namespace = name.rpartition("/")[0]
            grant = each.body["roleRef"]["name"].removeprefix(PREFIX).partition(":")[0]
            titles = [_ADMINS[grant]] if grant in _ADMINS else []
            if grant in _USERS:
                titles = list(_uses(_rules(each.body["roleRef"], namespace, manifests)))
            for subject in each.body["subjects"] if titles else ():
                found[_who(subject)][f"namespace {namespace}" if namespace else _EVERYWHERE] += titles
    return found


def _uses(rules: Sequence[Rule]) -> Iterator[str]:
    """What a user may do, with the names of RayClusters and job templates."""
    for each in rules:
        [resource, *_], verbs, names = each["resources"], each["verbs"], each.get("resourceNames", ())
        if resource == "rayclusters" and RAY_WRITE in verbs:
            yield from (f"uses RayCluster {name}" for name in names)
        elif resource == "rayclusters" and "list" in verbs:
            yield "sees Ray's objects"
        elif resource == "raycronjobs" and RUN in verbs:
            yield from (f"runs job template {name}" for name in names)
        elif resource == "rayjobs" and "create" in verbs:
            yield "creates RayJobs"


def rights(manifests: Objects) -> Rights:
    """The rights that the objects of a stack grant, by subject (`group:NAME` and so on); by `clusterRole:NAME` for all
    subjects of that ClusterRole of Kubernetes."""
    found: Rights = defaultdict(set)
    for (kind, name), each in manifests.items():
        if kind in ("RoleBinding", "ClusterRoleBinding"):
            namespace = name.rpartition("/")[0]
            where = f"namespace {namespace}" if namespace else _EVERYWHERE
            given = _given(where, _rules(each.body["roleRef"], namespace, manifests))
            for subject in each.body["subjects"]:
                found[_who(subject)] |= given
        elif kind == "ClusterRole":
            for label in each.body["metadata"].get("labels") or {}:
                if label.startswith(_AGGREGATED):
                    found[f"clusterRole:{label.removeprefix(_AGGREGATED)}"] |= _given(_WHERE_BOUND, each.body["rules"])
    return found


def _rules(ref: Mapping[str, Any], namespace: str, manifests: Objects) -> Sequence[Rule]:
    kind, name = ref["kind"], ref["name"]
    if kind == "ClusterRole" and name in _OF_OTHERS:
        return _OF_OTHERS[name]
    found: Sequence[Rule] = manifests[kind, f"{namespace}/{name}" if kind == "Role" else name].body["rules"]
    return found


def _given(where: str, rules: Sequence[Rule]) -> set[Right]:
    return {
        (where, _object(resource, group, name), verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def _who(subject: Body) -> str:
    """In the notation of a stack file."""
    if subject["kind"] == "ServiceAccount":
        return f"serviceAccount:{subject['namespace']}/{subject['name']}"
    return f"{subject['kind'].lower()}:{subject['name']}"


def _object(resource: str, group: str, name: str) -> str:
    kind = f"{resource}.{group}" if group else resource
    return f"{kind} {name}" if name else kind


def _listed(some: set[Right]) -> Iterator[tuple[str, str]]:
    """Namespace, and objects with their verbs: `get, list pods; get secrets training`."""
    verbs: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for where, what, verb in sorted(some):
        verbs[where][what].append(verb)
    for where, things in verbs.items():
        together: dict[str, list[str]] = defaultdict(list)
        for what, may in things.items():
            together[", ".join(may)].append(what)
        yield where, "; ".join(f"{may} {', '.join(what)}" for may, what in together.items())
