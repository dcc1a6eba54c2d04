"""The Ray clusters of a stack on Cloudera ML, as its API and their heads show them now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from components.cml.applications import Application
from components.cml.decisions import Nodes, Step, decide
from components.cml.manifests import (
    ALIVE,
    NODE,
    THE_HEAD,
    TOKEN,
    Inputs,
    head_url,
    log_path,
    nodes,
    records_path,
)
from components.cml.serving import Served
from components.cml.settings import HEAD, CmlSettings


class CmlState(StrEnum):
    READY = "ready"
    SUSPENDED = "suspended"
    NOT_READY = "not ready"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ApplicationStatus:
    name: str
    status: str
    """As Cloudera ML has it: STARTING, RUNNING, STOPPING, STOPPED, FAILED or UNKNOWN."""
    node: str | None
    """State of its Ray node: IDLE, RUNNING, DRAINING or DEAD; None if Ray does not know it, or does not answer."""


@dataclass(frozen=True)
class CmlStatus:
    """The status of a cluster."""

    name: str
    state: CmlState
    url: str
    """Of its dashboard and jobs."""
    head: str | None = None
    """Status of the head's application, as RUNNING; None if there is none."""
    joined: int = 0
    desired: int = 0
    """Workers: in the cluster, and in the stack file."""
    gpus: int | None = None
    """Held by applications that run or start; None if they could not be read."""
    reasons: tuple[str, ...] = ()
    """What differs, and why; a line each."""
    applications: tuple[ApplicationStatus, ...] = ()
    """Those that exist, in the order of their names."""

    @property
    def ok(self) -> bool:
        return self.state in (CmlState.READY, CmlState.SUSPENDED)


def cml_statuses(settings: CmlSettings, stack: str) -> Iterator[CmlStatus]:
    """Asks the API with the key in CML_API_KEY, and each head for its nodes. What cannot be read has its reason."""
    return (look(nodes(settings, cluster, stack)) for cluster in settings.clusters)


def look(inputs: Inputs, configured: str | None = None) -> CmlStatus:
    """The status of a cluster now; UNKNOWN if it cannot be read. `configured`: a key, if CML_API_KEY is not set."""
    from components.cml.client import CmlError

    try:
        live = _applications(inputs, configured)
        return cml_status(inputs, live, *_asked(inputs, live))
    except CmlError as error:
        url, reasons = head_url(inputs), (str(error),)
        return CmlStatus(inputs["cluster"], CmlState.UNKNOWN, url, desired=_desired(inputs), reasons=reasons)


def inputs_of(settings: CmlSettings | None, stack: str, name: str) -> Inputs | None:
    """What the cluster of that name is made from; None if there is none."""
    if settings is None:
        return None
    return next((nodes(settings, each, stack) for each in settings.clusters if each.name == name), None)


def head_log(inputs: Inputs, tail: int | None, *, follow: bool) -> Iterator[bytes]:
    """The log of Ray at a cluster's head. `tail`: only that many last lines. Raises CmlError, also without a head."""
    from components.cml.client import CmlError
    from components.cml.head import Head

    live = _applications(inputs, None)
    name = f"{inputs['prefix']}{THE_HEAD}"
    with closing(Head(inputs)) as head:
        if head.nodes(live) is None:
            status = next((each.status for each in live if each.name == name), "missing")
            raise CmlError(f"{name} is {status} and does not answer: Cloudera ML has its output, at Applications")
        # Ray shows the whole log for 0.
        yield from head.log(-1 if tail is None else max(tail, 1), follow=follow)


def address_of_head(inputs: Inputs) -> tuple[str, str]:
    """Where a cluster's head is reached now, and Ray's token. Raises CmlError, also without a head that runs."""
    from components.cml.client import CmlError

    live = _applications(inputs, None)
    head = next((each for each in live if each.name == f"{inputs['prefix']}{THE_HEAD}"), None)
    if head is None or head.status != "RUNNING" or TOKEN not in head.environment:
        status = head.status if head else "missing"
        raise CmlError(f"{inputs['prefix']}{THE_HEAD} is {status}: `ray-platform cml status` has the reason")
    return f"https://{head.body['subdomain']}.{inputs['host'].removeprefix('https://')}", head.environment[TOKEN]


def kept(inputs: Inputs) -> dict[str, Any]:
    """The jobs that the heads of a cluster have recorded, by the IDs of their records. Raises CmlError."""
    from components.cml.client import CmlError

    content = _file(inputs, records_path(inputs))
    try:
        return dict(json.loads(content or b"{}"))
    except (ValueError, TypeError) as error:
        raise CmlError(f"{records_path(inputs)} in project {inputs[HEAD]['project']} has no records: {error}") from None


def kept_log(inputs: Inputs, record: str) -> bytes | None:
    """The end of the log of a recorded job; None if it was not kept. Raises CmlError."""
    return _file(inputs, log_path(inputs, record))


def _file(inputs: Inputs, path: str) -> bytes | None:
    from components.cml.client import Client, api_key

    with closing(Client(inputs["host"], api_key(), inputs["caFile"])) as client:
        return client.download(inputs[HEAD]["project"], path)


def cml_status(
    inputs: Inputs, live: Sequence[Application], found: Nodes | None, served: Served | None = None
) -> CmlStatus:
    """The status of a cluster. `live`: its applications; `found`: None if the head does not answer; `served`: None if
    it serves nothing for the stack."""
    step = decide(inputs, live, found, served)
    head = next((each for each in live if each.name == f"{inputs['prefix']}{THE_HEAD}"), None)
    if step.done:
        state = CmlState.SUSPENDED if inputs["suspend"] else CmlState.READY
    else:
        state = CmlState.NOT_READY if live else CmlState.MISSING
    return CmlStatus(
        inputs["cluster"],
        state,
        head_url(inputs),
        head.status if head else None,
        step.joined,
        _desired(inputs),
        sum(int(each.body.get("nvidia_gpu") or 0) for each in live if each.status in ALIVE),
        tuple(_reasons(inputs, step, live)),
        tuple(
            ApplicationStatus(each.name, each.status, (found or {}).get(each.environment.get(NODE, "")))
            for each in sorted(live, key=lambda each: each.name)
        ),
    )


def _applications(inputs: Inputs, configured: str | None) -> list[Application]:
    """Raises CmlError."""
    from components.cml.client import Client, api_key

    with closing(Client(inputs["host"], api_key(configured), inputs["caFile"])) as client:
        return [each for project in inputs["projects"] for each in client.applications(project, inputs["prefix"])]


def _asked(inputs: Inputs, live: Sequence[Application]) -> tuple[Nodes | None, Served | None]:
    """The nodes of Ray, and what Serve has. Raises CmlError.

    Whoever may read the applications may read Ray's token in their environment.
    """
    from components.cml.head import Head

    with closing(Head(inputs)) as head:
        found = head.nodes(live)
        return found, head.served() if inputs["serve"] and found is not None else None


def _desired(inputs: Inputs) -> int:
    return 0 if inputs["suspend"] else sum(int(group["replicas"]) for group in inputs["groups"].values())


def _reasons(inputs: Inputs, step: Step, live: Sequence[Application]) -> Iterator[str]:
    if step.absent:
        yield "none of its applications exists: `up` creates them; after `cml stop` so does `ray-platform cml start`"
        return
    if step.lost:
        yield step.lost
    statuses = {each.name: each.status for each in live}
    for name in step.waiting:
        status = statuses.get(name)
        joins = "the head does not answer yet" if name.endswith(f".{THE_HEAD}") else "its node has not joined yet"
        yield f"{name} is {status}" + (f", and {joins}" if status == "RUNNING" else "")
    for name in step.leaving:
        yield f"{name} is to leave, and its tasks have not ended yet"
    for each in step.delete:
        yield f"{each.name} is {each.status}, and `up` deletes it"
    for member in step.create:
        yield f"{inputs['prefix']}{member} does not exist: `up` creates it"
    for name, why in step.serving.waiting.items():
        yield f"application {name} of Serve is {why}"
    if step.serving.differs and not inputs["suspend"]:
        yield "Serve has another config: `up` sends that of the stack file"
