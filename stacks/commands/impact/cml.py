"""What an edit does to the Ray clusters on Cloudera ML. Pure functions."""

import json
from collections.abc import Iterator

from components.cml.manifests import GENERATION, Inputs, digest, nodes
from components.cml.serving import NOTHING
from components.cml.settings import HEAD
from kuberay.edits import Verdict
from stacks.commands.impact.effects import Effect, ObjectImpact, impact
from stacks.settings import StackSettings

_STACK = "stack"
"""Name of the Pulumi stack in the names of applications: the stack file does not have it."""

_SOURCE = "components/cml/decisions.py"


def of_cml(before: StackSettings | None, after: StackSettings) -> Iterator[ObjectImpact]:
    """The clusters that differ."""
    was, will = _clusters(before), _clusters(after)
    for name in sorted({*was, *will}):
        if effects := list(_effects(was.get(name), will.get(name))):
            yield impact("CmlRayCluster", name, effects)


def _clusters(stack: StackSettings | None) -> dict[str, Inputs]:
    if stack is None or stack.cml is None:
        return {}
    return {each.name: nodes(stack.cml, each, _STACK) for each in stack.cml.clusters}


def _effects(was: Inputs | None, will: Inputs | None) -> Iterator[Effect]:
    if was is None or will is None:
        if will:
            yield Effect(Verdict.CREATES, "its head is created, then its workers")
        if was:
            yield Effect(
                Verdict.DELETES,
                "all its applications are deleted at once, with the tasks that run",
                "the cluster leaves the stack file",
                "set suspend: true before, and remove it after that `up`: busy workers end their tasks first",
                _SOURCE,
            )
        return
    if was["host"] != will["host"]:
        yield Effect(
            Verdict.DELETES,
            f"{was['host']} -> {will['host']}: the cluster is deleted there, with the tasks that run, and created here",
            "applications belong to a workspace",
            "add a cluster with another name, move the work, then remove this one",
            _SOURCE,
        )
        return
    if was["suspend"] != will["suspend"]:
        yield (
            Effect(Verdict.ROLLING, "is suspended: workers end their tasks, then all applications are deleted")
            if will["suspend"]
            else Effect(Verdict.CREATES, "starts again: its head, then its workers")
        )
    elif digest(was, HEAD) != digest(will, HEAD):
        token = "; callers need the new token and key of Serve" if was[GENERATION] != will[GENERATION] else ""
        yield Effect(
            Verdict.ROLLING,
            "settings of the head change: workers take no new tasks and end their present ones, then head and workers "
            f"are recreated; detached actors and what is stored in the cluster are lost{token}",
            "a head cannot be replaced below its workers",
            "make the edit while nothing runs",
            _SOURCE,
        )
        return
    for group in sorted({*was["groups"], *will["groups"]}):
        yield from _of_group(group, was, will)
    yield from _of_serve(was["serve"], will["serve"])


def _of_group(name: str, was: Inputs, will: Inputs) -> Iterator[Effect]:
    before, after = (int((each["groups"].get(name) or {"replicas": 0})["replicas"]) for each in (was, will))
    if after > before:
        yield Effect(Verdict.CREATES, f"creates {after - before} workers of group {name}", groups=(name,))
    elif after < before:
        text = f"removes {before - after} workers of group {name}: idle ones first, busy ones after their tasks"
        yield Effect(Verdict.ROLLING, text, groups=(name,), source=_SOURCE)
    if min(before, after) and digest(was, name) != digest(will, name):
        text = f"replaces the workers of group {name}: each takes no new tasks, and is deleted after its present ones"
        yield Effect(Verdict.ROLLING, text, groups=(name,), source=_SOURCE)


def _of_serve(was: str, will: str) -> Iterator[Effect]:
    """By the names of applications: Serve decides what of one it restarts."""
    before, after = (
        {each["name"]: each for each in json.loads(text or NOTHING)["applications"]} for text in (was, will)
    )
    for name in sorted({*before, *after}):
        if name not in after:
            yield Effect(Verdict.DELETES, f"application {name} of Serve ends, with the requests that run")
        elif name not in before:
            yield Effect(Verdict.CREATES, f"application {name} of Serve is deployed on the workers")
        elif before[name] != after[name]:
            yield Effect(Verdict.ROLLING, f"application {name} of Serve is updated by Serve; no node ends")
