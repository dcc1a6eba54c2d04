"""Redis and Valkey that a stack runs for Ray, recognized by the name of their image."""

import itertools
import re
from collections.abc import Iterator

from core.types import Settings
from policies.rule import Severity, Violations, rule
from policies.values import Node, Object
from policies.walk import Container, Pod, Stack, containers

_PERSISTENCE = "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/"
_SENTINEL = "https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/"
_PROGRAMS = ("Deployment", "StatefulSet", "Pod", "ReplicaSet")
_IMAGES = ("redis", "valkey", "redis-stack", "redis-stack-server")
_OTHER_PROGRAM = re.compile(r"\b(?:redis|valkey)-(?:cli|benchmark|check-\w+)\b|^(?:sleep|tail|true)\b|_exporter\b")
_SERVER = re.compile(r"\b(?:redis|valkey)(?:-stack)?-(?:server|sentinel)\b")


def _is_redis(container: Container) -> bool:
    """Whether a container runs a server of Redis or Valkey: its image's program, or one that its command names."""
    name = (container.image.text or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    if container.role != "container" or name not in _IMAGES or container.pod.ray is not None:
        return False
    command = " ".join(_words(container))
    return bool(_SERVER.search(command)) or not _OTHER_PROGRAM.search(command)


def _words(container: Container) -> Iterator[str]:
    for key in ("command", "args"):
        yield from (each.text or "" for each in container.node.at(key).items())


def _runs_redis(owner: Object) -> bool:
    return any(_is_redis(each) for each in containers(owner))


@rule(
    "redis-persistent",
    Severity.HIGH,
    what="Redis keeps its data on a volume that outlives its pods.",
    why="Otherwise the loss of all pods at once, as in an upgrade of nodes, loses every cluster's state.",
    source=_PERSISTENCE,
    fix="Run it as a StatefulSet with volumeClaimTemplates, with appendonly yes.",
    kinds=_PROGRAMS,
)
def persistent(owner: Object) -> Violations:
    """Requires a PersistentVolumeClaim, from a template or by name."""
    if not _runs_redis(owner) or list(owner.root.at("spec", "volumeClaimTemplates").items()):
        return
    volumes = Pod(owner, owner.root if owner.kind == "Pod" else owner.root.at("spec", "template")).spec.at("volumes")
    if not any(each.at("persistentVolumeClaim").is_set or each.at("ephemeral").is_set for each in volumes.items()):
        yield volumes.wrong("has no PersistentVolumeClaim")


class Topology(Settings):
    """Options of redis-topology."""

    nodes: int = 3
    """The least number of nodes."""


@rule(
    "redis-topology",
    Severity.MEDIUM,
    what="Redis has three nodes, so that two are a majority when one is lost.",
    why="Ray's GCS stops while Redis is unavailable; a single node is unavailable for as long as its machine is.",
    source=_SENTINEL,
    fix="Set replicas: 3, with a Sentinel beside each and a quorum of 2.",
    kinds=("StatefulSet", "Deployment"),
)
def topology(owner: Object, options: Topology) -> Violations:
    """`replicas` is not less than the option."""
    replicas = owner.root.at("spec", "replicas")
    if _runs_redis(owner) and (1 if replicas.number is None else replicas.number) < options.nodes:
        yield replicas.wrong(f"{replicas.shown() if replicas.is_set else 1} is less than {options.nodes}")


@rule(
    "redis-spread",
    Severity.MEDIUM,
    what="Nodes of Redis run on different machines.",
    why="The loss of a machine with two of three nodes is the loss of the majority.",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/",
    fix="Set topologySpreadConstraints or a podAntiAffinity on kubernetes.io/hostname.",
    kinds=("StatefulSet", "Deployment"),
)
def spread(owner: Object) -> Violations:
    """Requires either setting if there is more than one replica."""
    spec = owner.root.at("spec", "template", "spec")
    several = (owner.root.at("spec", "replicas").number or 1) > 1
    is_spread = list(spec.at("topologySpreadConstraints").items()) or spec.at("affinity", "podAntiAffinity").is_set
    if several and _runs_redis(owner) and not is_spread:
        yield spec.at("topologySpreadConstraints").wrong("nothing keeps its pods apart")


@rule(
    "redis-pdb",
    Severity.MEDIUM,
    what="At most one node of Redis at a time is evicted.",
    why="`kubectl drain` of two machines at once removes the majority, and every cluster's GCS stops.",
    source="https://kubernetes.io/docs/tasks/run-application/configure-pdb/",
    fix="Add a PodDisruptionBudget with maxUnavailable: 1 that selects its pods.",
)
def disruption_budget(stack: Stack) -> Violations:
    """If there are several replicas, a budget in the namespace selects the pods."""
    budgets = list(stack.of("PodDisruptionBudget"))
    for owner in stack.of("StatefulSet", "Deployment"):
        if not _runs_redis(owner) or (owner.root.at("spec", "replicas").number or 1) < 2:
            continue
        labels = owner.root.at("spec", "template", "metadata", "labels")
        selected = any(
            budget.namespace == owner.namespace and _selects(budget.root.at("spec", "selector"), labels)
            for budget in budgets
        )
        if not selected:
            yield labels.wrong("no PodDisruptionBudget selects its pods")


def _selects(selector: Node, labels: Node) -> bool:
    """Whether a selector selects pods with these labels. One that is not set selects none, an empty one all."""
    required = selector.at("matchLabels").entries()
    return (
        selector.is_set
        and all(labels.at(key).value == value.value for key, value in required)
        and all(_matches(each, labels) for each in selector.at("matchExpressions").items())
    )


def _matches(expression: Node, labels: Node) -> bool:
    label = labels.at(expression.at("key").text or "")
    listed = label.text in [each.text for each in expression.at("values").items()]
    match expression.at("operator").text:
        case "In":
            return listed
        case "NotIn":
            return not listed
        case "Exists":
            return label.is_set
        case _:
            return not label.is_set


_EVICTING = ("allkeys-", "volatile-")


@rule(
    "redis-noeviction",
    Severity.HIGH,
    what="Redis evicts no key when its memory is full.",
    why="For the GCS an evicted key never existed: nodes and actors vanish.",
    source="https://redis.io/docs/latest/develop/reference/eviction/",
    fix="Set maxmemory-policy noeviction.",
    kinds=(*_PROGRAMS, "ConfigMap"),
)
def no_eviction(owner: Object) -> Violations:
    """Rejects policies that evict, in arguments or in the redis.conf of a ConfigMap."""
    for line, place in _settings(owner):
        name, _, value = line.partition(" ")
        if name == "maxmemory-policy" and value.strip().startswith(_EVICTING):
            yield place.wrong("maxmemory-policy evicts keys")


@rule(
    "redis-aof",
    Severity.MEDIUM,
    what="Redis logs every change to its append-only file.",
    why="A snapshot every few minutes lacks the newest actors, whose workers are then lost.",
    source=_PERSISTENCE,
    fix="Set appendonly yes.",
    kinds=(*_PROGRAMS, "ConfigMap"),
)
def append_only(owner: Object) -> Violations:
    """Rejects `appendonly no`, in arguments or in the redis.conf of a ConfigMap."""
    for line, place in _settings(owner):
        if line.split() == ["appendonly", "no"]:
            yield place.wrong("appendonly is no")


@rule(
    "redis-password",
    Severity.CRITICAL,
    what="Redis has a password, and none is in a command line or a ConfigMap.",
    why="Without one every client is the GCS of every cluster. Whoever may read pods and ConfigMaps reads these.",
    source="https://redis.io/docs/latest/operate/oss_and_stack/management/security/; docker-library/redis: its image"
    " turns protected-mode off",
    fix="Mount a Secret with an ACL file, or take the password from valueFrom.secretKeyRef.",
    kinds=(*_PROGRAMS, "ConfigMap"),
)
def password(owner: Object) -> Violations:
    """Rejects a literal `requirepass` or `masterauth`, an empty one, users with `nopass`, ALLOW_EMPTY_PASSWORD, and a
    server with none of these, no ACL file and no file of settings. Messages never show the value."""
    for line, place in _settings(owner):
        name, _, value = line.partition(" ")
        given = value.strip().strip("'\"")
        if name in ("requirepass", "masterauth") and not given.startswith("$"):
            yield place.wrong(f"{name} {'has a password in plain text' if given else 'is empty'}")
        elif name == "user" and {"on", "nopass"} <= set(given.split()):
            yield place.wrong("a user needs no password")
    if owner.kind == "ConfigMap":
        yield from _open_file(owner)
        return
    for container in containers(owner):
        if _is_redis(container):
            yield from _without_password(container)


def _open_file(owner: Object) -> Violations:
    lines = list(_settings(owner))
    opened = [place for line, place in lines if line.split() == ["protected-mode", "no"]]
    if opened and not any(_SETS_PASSWORD.search(line) for line, _ in lines):
        yield opened[0].wrong("protected-mode is off, and there is no password")


def _without_password(container: Container) -> Violations:
    allowed = container.env("ALLOW_EMPTY_PASSWORD")
    if allowed is not None and allowed.at("value").text in ("yes", "true", "1"):
        yield allowed.at("value").wrong("allows an empty password")
        return
    variables = [each.at(key) for each in container.node.at("env").items() for key in ("name", "value")]
    texts = (*_words(container), *(each.text or "" for each in variables))
    sets_one = any(_SETS_PASSWORD.search(each) for each in texts)
    if not sets_one and not list(container.node.at("envFrom").items()):
        yield container.node.at("args").wrong("sets no password, no ACL file and no file of settings")


_SETS_PASSWORD = re.compile(
    r"requirepass|aclfile|\buser\b|\.conf\b|PASSWORD|PASS\b|\binclude\b|^/|\.sh\b", re.IGNORECASE
)
"""What an argument or a variable has where the password comes from it. A script or a file of settings may
set it, too."""


def _settings(owner: Object) -> Iterator[tuple[str, Node]]:
    """Lines of the Redis configuration, each with the node that contains it. The name is in lower case, and the words
    have no quotes."""
    if owner.kind == "ConfigMap":
        for key, text in owner.root.at("data").entries():
            if key.endswith(".conf") and ("redis" in key or "valkey" in key):
                yield from ((_plain(line.split()), text) for line in (text.text or "").splitlines())
        return
    for container in containers(owner):
        if _is_redis(container):
            nodes = [each for key in ("command", "args") for each in container.node.at(key).items()]
            words = [(word, node) for node in nodes for word in (node.text or "").replace("=", " ").split() or [""]]
            for (word, _), (value, node) in itertools.pairwise(words):
                if word.startswith("--"):
                    yield _plain([word.removeprefix("--"), value]), node


def _plain(words: list[str]) -> str:
    name, *values = [word.strip("'\"") for word in words] or [""]
    return " ".join([name.lower(), *values])
