"""Makes the applications of a cluster as they are set: looks, decides, acts, and looks again, until nothing differs."""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from components.cml.applications import Application
from components.cml.client import Client, CmlError, ConflictError, NotAnsweredError, NotFoundError, QuotaError
from components.cml.decisions import Nodes, Step, decide
from components.cml.head import Head
from components.cml.manifests import NODE, THE_HEAD, TOKEN, Inputs, Member, application, member_of, script, script_path
from components.waiting import report

_AT_ONCE = 8
"""Requests at a time."""

_TRIES = 3
"""Applications of one place that may fail in one `up`."""

_REFUSALS = 5
"""Creations of one place that may be refused for a name in use or a quota, before `up` fails."""

_UNANSWERED = 20
"""Creations of one place that the server may leave without an answer or answer with an error of its own, before `up`
fails: more than a minute."""

PAUSES = (0.5, 1, 2, 3, 5)
"""Seconds between two looks; the last one again and again."""

_CLEAN_SECONDS = 600

Report = Callable[[str], None]

Pauses = tuple[float, ...]


class NotReadyError(CmlError):
    """The cluster is not as set in time; the message has what differs."""


ABSENT = "none of its applications exists, as after `ray-platform cml stop`: `up` creates them"
"""Of a cluster that a state has."""


class Applications:
    """The applications of one cluster, in all its projects."""

    def __init__(
        self,
        client: Client,
        inputs: Inputs,
        token: str,
        projects: Iterable[str] = (),
        *,
        former: Iterable[str] = (),
        all_tokens: bool = True,
        served: bool = False,
    ) -> None:
        """`token`: Ray's, by which the applications of this stack are known; and `former`: tokens before it.
        `all_tokens`: False if the cluster may have newer ones, so that applications with others are left alone.
        `projects`: also looked into, if they still exist. `served`: whether the stack has sent a Serve config
        before."""
        self._client, self._inputs, self._token, self._all_tokens = client, inputs, token, all_tokens
        self._tokens = [each.encode() for each in (token, *former)]
        self._serves = served or bool(inputs.get("serve"))
        self._projects = tuple(dict.fromkeys([*inputs["projects"], *projects]))
        self._gone: set[str] = set()

    @property
    def unseen(self) -> bool:
        """Whether none of its projects was found."""
        return self._gone.issuperset(self._projects)

    def live(self) -> list[Application]:
        """Those that exist. Raises CmlError, also if another stack has made one."""
        beginning = self._inputs["prefix"]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            listed = list(pool.map(self._listed, self._projects))
        found = [each for of_project in listed for each in of_project if member_of(each.name, beginning)]
        others = [each for each in found if not self._is_own(each)]
        if others and self._all_tokens:
            raise CmlError(
                f"application {others[0].name!r} of project {others[0].project} exists, and this stack did not create "
                "it: delete it in Cloudera ML, or give the cluster another name"
            )
        return [each for each in found if each not in others]

    def _is_own(self, application: Application) -> bool:
        shown = application.environment.get(TOKEN, "").encode()
        return any(secrets.compare_digest(shown, own) for own in self._tokens)

    def _listed(self, project: str) -> list[Application]:
        """Its applications. A project that was deleted has none, unless the cluster is to be in it."""
        try:
            return self._client.applications(project, self._inputs["prefix"])
        except NotFoundError:
            if project in self._inputs["projects"]:
                raise
        if project not in self._gone:
            self._gone.add(project)
            report(
                f"warning: project {project!r} of {self._inputs['cluster']} was not found (404): if it still exists, "
                "and the key's user does not see it, delete the applications of the cluster there"
            )
        return []

    def make(self, show: Report = report, pauses: Pauses | None = None) -> dict[str, Any]:
        """Creates, drains and deletes until nothing differs. Returns what is live (`summary`). Raises CmlError."""
        with closing(Head(self._inputs)) as head:
            self._upload()
            return self._until_done(head, show, pauses or PAUSES)

    def look(self) -> tuple[list[Application], Nodes | None, Step]:
        """What is live, and what differs. Raises CmlError."""
        with closing(Head(self._inputs)) as head:
            return self._look(head)

    def clean(self, show: Report = report, pauses: Pauses | None = None) -> None:
        """Deletes all applications and the script, running tasks or not. Raises CmlError."""
        deadline, look, pauses = time.monotonic() + _CLEAN_SECONDS, 0, pauses or PAUSES
        while live := self.live():
            if time.monotonic() > deadline:
                raise NotReadyError(f"{_named(live)} are not deleted yet: run `pulumi destroy` again")
            show(f"{self._inputs['cluster']}: {len(live)} applications to delete")
            self._each(self._client.delete, live)
            time.sleep(pauses[min(look, len(pauses) - 1)])
            look += 1
        for project in self._projects:
            self._client.remove(project, script_path(self._inputs))

    def _look(self, head: Head) -> tuple[list[Application], Nodes | None, Step]:
        live = self.live()
        nodes = head.nodes(live)
        served = head.served() if self._serves and nodes is not None else None
        if self._serves and served is None:
            # Ray starts, or restarts.
            nodes = None
        return live, nodes, decide(self._inputs, live, nodes, served)

    def _upload(self) -> None:
        if not self._inputs["suspend"]:
            for project in self._inputs["projects"]:
                self._client.upload(project, script_path(self._inputs), script())

    def _until_done(self, head: Head, show: Report, pauses: Pauses) -> dict[str, Any]:
        since, phase, shown, look, sent = time.monotonic(), "", "", 0, ""
        created: Counter[Member] = Counter()
        refused: Counter[Member] = Counter()
        unanswered: Counter[Member] = Counter()
        while True:
            live, nodes, step = self._look(head)
            # Ray may write what it has in another way than it was sent.
            step.serving.differs &= step.serve != sent
            if step.done:
                return summary(step, live, nodes, suspended=self._inputs["suspend"])
            line = f"{self._inputs['cluster']}: {step}"
            if line != shown:
                show(line)
                shown = line
            before = phase
            # A head that does not answer one look begins no other phase: its time limit would begin again each time.
            if nodes is not None or not phase or THE_HEAD in step.create:
                phase = "leaving" if step.leaving else "joining" if step.differs else "serving"
            if phase != before:
                since = time.monotonic()
            if time.monotonic() - since > self._inputs["drainSeconds" if phase == "leaving" else "readySeconds"]:
                raise NotReadyError(f"Ray cluster {self._inputs['cluster']}: {_why(step, live)}")
            for member in step.create:
                if created[member] == _TRIES:
                    raise NotReadyError(
                        f"application {self._inputs['prefix']}{member} has failed {_TRIES} times: read its log in "
                        "Cloudera ML, correct the reason, and run `pulumi up` again"
                    )
            if step.create:
                # A new head has no config, and what failed without this worker may run with it.
                sent = ""
            if step.serve != sent:
                if (step.serving.differs or step.serving.failed) and head.serve(step.serve):
                    sent = step.serve
            elif step.serving.failed and not step.differs:
                raise NotReadyError(f"Ray cluster {self._inputs['cluster']} does not serve: {step.serving}")
            self._each(self._client.delete, step.delete)
            head.drain(step.idle, step.busy, self._inputs["drainSeconds"])
            created.update(self._create(step, refused, unanswered))
            time.sleep(pauses[min(look, len(pauses) - 1)])
            look += 1

    def _create(self, step: Step, refused: Counter[Member], unanswered: Counter[Member]) -> list[Member]:
        """Creates applications. Returns those that the server has created. `refused`, `unanswered`: how often each
        was."""

        def create(member: Member) -> Member | None:
            body = application(self._inputs, member, self._token, secrets.token_hex(4))
            group = self._inputs["groups"].get(member.group) or self._inputs["head"]
            try:
                self._client.create(group["project"], body)
            except NotAnsweredError:
                unanswered[member] += 1
                if unanswered[member] == _UNANSWERED:
                    raise
                # The next look shows whether it exists.
                return None
            except (ConflictError, QuotaError):
                # Applications that are deleted meanwhile still have their names and resources for a while.
                leaving = step.leaving or step.delete
                if refused[member] >= _REFUSALS and not leaving:
                    raise
                refused[member] = 0 if leaving else refused[member] + 1
                return None
            return member

        return [member for member in self._each(create, step.create) if member]

    def _each(self, call: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Calls in parallel; all calls end before the first error is raised."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            futures = [pool.submit(call, item) for item in items]
        return [future.result() for future in futures]


def summary(step: Step, live: Iterable[Application], nodes: Nodes | None, *, suspended: bool) -> dict[str, Any]:
    """`applications`: by name, their statuses, and those of their nodes if they have joined. `state`: `ready`,
    `suspended`, or None; `joined`: the number of workers."""
    state = ("suspended" if suspended else "ready") if step.done else None
    states = {each.name: (each.status, (nodes or {}).get(each.environment.get(NODE, ""))) for each in live}
    applications = {name: {"status": status, "node": _joined(node)} for name, (status, node) in sorted(states.items())}
    return {"applications": applications, "state": state, "joined": step.joined}


def difference(step: Step) -> str:
    """What differs of a cluster that a state has, for people."""
    return ABSENT if step.absent else str(step)


def _joined(node: str | None) -> str | None:
    """Whether a task runs is not a difference for a preview."""
    return "ALIVE" if node in ("IDLE", "RUNNING") else node


def _why(step: Step, live: Iterable[Application]) -> str:
    if step.leaving:
        return (
            f"{', '.join(step.leaving)} still run tasks, which neither `up` nor `cml stop` ends: run it again when "
            "they have ended, or set a longer drainTimeout"
        )
    if not step.differs:
        return (
            f"does not serve in time: {step.serving}. Read the logs in its dashboard, or set a longer readyTimeout, "
            "then run `pulumi up` again"
        )
    states = {each.name: each.status for each in live}
    waiting = ", ".join(f"{name} ({states.get(name, 'missing')})" for name in step.waiting)
    return f"{waiting or step} not ready in time: read the logs in Cloudera ML, or set a longer readyTimeout"


def _named(live: Iterable[Application]) -> str:
    return ", ".join(sorted(each.name for each in live))
