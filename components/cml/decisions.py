"""What to do next so that a cluster becomes as its stack file sets it. Pure functions: they only look at what is live.

Whoever acts on a step looks again afterwards. So it does not matter who was killed after which request.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from components.cml.applications import Application
from components.cml.manifests import ALIVE, NODE, THE_HEAD, Inputs, Member, is_current, member_of
from components.cml.serving import NOTHING, Served, Serving, serving

Nodes = Mapping[str, str]
"""The states of Ray's nodes by their names: RUNNING, IDLE, DRAINING or DEAD."""

_ENDS = ("STOPPING", "STOPPED", "FAILED")
_EASE = {"DRAINING": 1, "IDLE": 2, None: 3, "RUNNING": 4}
"""Which workers leave first, by their nodes: those that leave anyway, idle ones, then those that have not joined."""


@dataclass
class Step:
    """What to do now."""

    create: list[Member] = field(default_factory=list)
    delete: list[Application] = field(default_factory=list)

    idle: list[str] = field(default_factory=list)
    """Nodes to drain if they are still idle."""

    busy: list[str] = field(default_factory=list)
    """Nodes to drain that have work: they take no more, and their Ray ends once they have done it."""

    leaving: list[str] = field(default_factory=list)
    """Applications that wait for their nodes to become idle."""

    waiting: list[str] = field(default_factory=list)
    """Applications that start, or whose nodes have not joined yet."""

    lost: str = ""
    """What a head that ended by itself takes with it, and what stays; empty if none did."""

    joined: int = 0
    """Workers whose nodes are in the cluster, and stay."""

    serve: str = ""
    """Serve config that the head should have; empty if it is not asked for one."""

    serving: Serving = field(default_factory=Serving)
    """What of it the head does not do yet."""

    @property
    def differs(self) -> bool:
        """Whether an application differs, or is on its way."""
        return bool(self.create or self.delete or self.leaving or self.waiting)

    @property
    def absent(self) -> bool:
        """Whether applications should exist, and none does."""
        return self.create == [THE_HEAD] and not self.delete

    @property
    def done(self) -> bool:
        """Whether nothing differs, and nothing is on its way."""
        return not (self.differs or self.serving.differs or self.serving.waiting)

    def __str__(self) -> str:
        counts = (
            (len(self.create), "to create"),
            (len(self.delete), "to delete"),
            (len(self.waiting), "starting"),
            (len(self.leaving), "ending their tasks"),
        )
        rest = ", ".join(f"{count} {what}" for count, what in counts if count)
        parts = [f"{self.joined} workers have joined", *([f"applications: {rest}"] if rest else [])]
        serve = [f"Serve: {self.serving}"] if str(self.serving) else []
        return "; ".join([*([self.lost] if self.lost else []), *parts, *serve])


def decide(inputs: Inputs, live: Iterable[Application], nodes: Nodes | None, served: Served | None = None) -> Step:
    """The next step. `live`: the applications of the cluster. `nodes`: None if the head does not answer. `served`: what
    it serves; None if it was not asked, and nothing is to be changed."""
    step = Step()
    places: dict[Member, Application] = {}
    for each in sorted(live, key=_preference):
        member = member_of(each.name, inputs["prefix"])
        if member is None:
            continue
        if member in places:
            step.delete.append(each)
        else:
            places[member] = each
    head = places.pop(THE_HEAD, None)
    if head is None or head.status in _ENDS:
        # Ray of workers ends without its head, and their tasks with it.
        step.delete += [*places.values(), *([head] if head else [])]
        if not inputs["suspend"]:
            step.lost = _lost(head, places.values())
        if not inputs["suspend"] and head is None:
            step.create.append(THE_HEAD)
        return step
    ends = inputs["suspend"] or not is_current(inputs, THE_HEAD, head)
    if served is not None and nodes is not None:
        # Workers with replicas of Serve do not become idle.
        step.serve = NOTHING if ends else inputs["serve"] or NOTHING
        step.serving = serving(step.serve, served)
    if ends:
        _leave(step, list(places.values()), nodes)
        if not places:
            step.delete.append(head)
        return step
    if nodes is None:
        # Workers are created once they can find the head.
        step.waiting.append(head.name)
        return step
    _workers(step, inputs, places, nodes)
    return step


def _lost(head: Application | None, workers: Iterable[Application]) -> str:
    """What is lost with a head that ended by itself: it has failed, or its workers still run."""
    failed = head is not None and head.status == "FAILED"
    if not failed and not any(each.status in ALIVE for each in workers):
        return ""
    how = f"is {head.status}" if head else "was deleted"
    return (
        f"the head {how}, and with it tasks, actors, objects, jobs and what people deployed are lost; addresses, token "
        "and what the stack file serves stay"
    )


def _preference(application: Application) -> tuple[bool, str, str]:
    """Of two applications of one name the running one stays, or the one with the first id, in every look."""
    return application.status != "RUNNING", application.name, application.id


def _workers(step: Step, inputs: Inputs, places: Mapping[Member, Application], nodes: Nodes) -> None:
    staying: dict[str, dict[int, Application]] = {name: {} for name in inputs["groups"]}
    leaving = []
    for member, each in places.items():
        if each.status in _ENDS or _state(each, nodes) == "DEAD":
            step.delete.append(each)
        elif not is_current(inputs, member, each) or _state(each, nodes) == "DRAINING":
            leaving.append(each)
        else:
            staying[member.group][member.number] = each
    for name, group in inputs["groups"].items():
        own, count = staying[name], int(group["replicas"])
        order = sorted(own, key=lambda number: (_ease(own[number], nodes), -number))
        surplus = order[: max(0, len(own) - count)]
        leaving += [own.pop(number) for number in surplus]
        going = {member_of(each.name, inputs["prefix"]) for each in leaving}
        held = {member.number for member in going if member and member.group == name} | own.keys()
        free = (Member(name, number) for number in range(len(held) + count) if number not in held)
        missing = [next(free) for _ in range(count - len(own))]
        # The name of an application that is deleted now is free at a later look.
        step.create += [member for member in missing if member not in places]
        for each in own.values():
            if _state(each, nodes) is None or each.status != "RUNNING":
                step.waiting.append(each.name)
            else:
                step.joined += 1
    _leave(step, leaving, nodes)


def _leave(step: Step, applications: Sequence[Application], nodes: Nodes | None) -> None:
    for each in applications:
        match _state(each, nodes):
            case "DEAD":
                step.delete.append(each)
                continue
            case "IDLE":
                step.idle.append(_node(each))
            case "RUNNING":
                step.busy.append(_node(each))
            case None if each.status in _ENDS or (each.status == "STARTING" and nodes is not None):
                # Its script has ended, or does not run yet.
                step.delete.append(each)
                continue
            case _:
                pass
        step.leaving.append(each.name)


def _ease(application: Application, nodes: Nodes) -> int:
    state = _state(application, nodes)
    return 0 if state is None and application.status == "STARTING" else _EASE.get(state, 4)


def _node(application: Application) -> str:
    return application.environment.get(NODE, "")


def _state(application: Application, nodes: Nodes | None) -> str | None:
    """The state of its node; None if it has not joined, or nobody knows."""
    return (nodes or {}).get(_node(application)) if application.status in ALIVE else None
