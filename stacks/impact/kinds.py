"""What happens to what runs when an object beside RayClusters comes, goes or is another. Data and pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .differences import differences
from .effects import Effect, ObjectImpact, Verdict, impact
from .objects import Key

_SHOWN = 6
"""Fields that an effect names."""

_FIXED = frozenset({"serviceName", "podManagementPolicy", "selector", "volumeClaimTemplates"})
"""Of a StatefulSet's spec: the API server refuses to change them (kubernetes, pkg/apis/apps/validation/validation.go:
ValidateStatefulSetUpdate), so Pulumi deletes it and makes it anew."""


@dataclass(frozen=True)
class Kind:
    """What it means for what runs."""

    made: str
    changed: str
    gone: str
    losing: Verdict = Verdict.IN_PLACE
    """Of its deletion."""
    safer: str = ""
    """When it goes."""


KINDS = {
    "Namespace": Kind(
        "is made",
        "pods that run stay; with a stricter Pod Security level, new ones that do not keep to it are refused",
        "is deleted with everything in it: RayClusters, their pods, Secrets, tokens, volumes",
        Verdict.DELETES,
        "end what runs there first; a tenant that still runs something is not removed without allowDelete",
    ),
    "ResourceQuota": Kind(
        "bounds what is in the namespace from now on; what is there beyond it stays, and nothing new starts until it "
        "has gone",
        "holds from now on; what is there beyond it stays, and nothing new starts until it has gone",
        "nothing bounds the namespace any more",
    ),
    "LimitRange": Kind(
        "holds for pods that are made from now on",
        "holds for pods that are made from now on",
        "pods that are made from now on have no default amounts",
    ),
    "NetworkPolicy": Kind(
        "holds at once, for what runs, too: connections that no policy allows are cut",
        "holds at once, for what runs, too: connections that it allows no more are cut",
        "connections that no other policy allows are cut at once",
    ),
    "PriorityClass": Kind(
        "is there for pods that are made from now on",
        "holds for pods that are made from now on",
        "pods that run keep their priority; none can be made with it",
    ),
    "PodDisruptionBudget": Kind(
        "the head is not evicted any more when its node is drained",
        "holds at once",
        "the head may be evicted when its node is drained, and what runs on its RayCluster ends then",
    ),
    "Queue": Kind(
        "is there for RayClusters to wait in",
        "holds for what waits; what runs stays, unless other queues may reclaim what it has beyond its share",
        "is deleted; `pulumi up` refuses while a RayCluster names it",
        Verdict.REFUSED,
        "move its RayClusters to another queue in an `up` of its own, and remove it then",
    ),
    "ClusterQueue": Kind(
        "is there for RayClusters to wait in",
        "holds for what waits; what runs stays, unless other queues may reclaim what it has borrowed",
        "is deleted; `pulumi up` refuses while a RayCluster names it",
        Verdict.REFUSED,
        "another queue means that a RayCluster is made anew: do it when nothing runs, and remove the queue then",
    ),
    "StatefulSet": Kind(
        "Redis is made",
        "Redis' pods are made anew one after the other, and another becomes the primary: RayClusters with fault "
        "tolerance lose their connection for seconds",
        "Redis is deleted: RayClusters that keep their tables in it fail within a minute",
        Verdict.DELETES,
        "remove the RayClusters with fault tolerance in an `up` of its own first",
    ),
}


def of_objects(before: Mapping[Key, Any], after: Mapping[Key, Any]) -> Iterator[ObjectImpact]:
    """What happens to each object."""
    for key in dict.fromkeys([*before, *after]):
        yield impact(*key, _effects(KINDS[key[0]], before.get(key), after.get(key)))


def _effects(kind: Kind, before: Any, after: Any) -> Iterator[Effect]:
    if after is None:
        yield Effect(kind.losing, kind.gone, safer=kind.safer)
    elif before is None:
        yield Effect(Verdict.CREATES, kind.made)
    elif paths := list(differences(before, after)):
        more = len(paths) - _SHOWN
        listed = ", ".join(_step(path, before, after) for path in paths[:_SHOWN]) + (f" and {more} more" * (more > 0))
        yield _changed(kind, before, paths, listed)


def _changed(kind: Kind, before: Any, paths: list[tuple[str, ...]], listed: str) -> Effect:
    if before["kind"] != "StatefulSet":
        return Effect(Verdict.IN_PLACE, f"{listed}: {kind.changed}")
    if any(path[1] in _FIXED for path in paths if len(path) > 1):
        return Effect(
            Verdict.REPLACES,
            f"{listed}: all of Redis' pods end at once, and are made anew on the volumes that they had; "
            "RayClusters with fault tolerance stand still meanwhile, and fail if it takes more than a minute",
            "Kubernetes does not change these fields of a StatefulSet",
            "do it when nothing runs",
            "kubernetes pkg/apis/apps/validation/validation.go: ValidateStatefulSetUpdate",
        )
    if all(path[:2] == ("spec", "replicas") for path in paths):
        return Effect(Verdict.IN_PLACE, f"{listed}: pods of Redis are added or taken away; the others run on")
    return Effect(
        Verdict.ROLLING,
        f"{listed}: {kind.changed}",
        "the pod template is another",
        "",
        "docs/redis.md",
    )


def _step(path: tuple[str, ...], before: Any, after: Any) -> str:
    """A field, with its values where they are short words."""
    values = [_at(body, path) for body in (before, after)]
    said = " -> ".join("none" if value is None else str(value) for value in values)
    plain = all(value is None or isinstance(value, str | int | bool) for value in values) and len(said) <= 60
    return f"{'.'.join(path)} {said}" if plain else ".".join(path)


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(body, Mapping):
            return body if body is None else [body]
        body = body.get(step)
    return body
