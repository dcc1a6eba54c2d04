"""Shows recorded runs on a terminal or in a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from components.payloads.run_history.record import seconds
from core.problems import in_one_line
from stacks.commands.plan.report import Table
from stacks.commands.runs.history import Histories, Run
from stacks.commands.status.text import open_console, table_lines

Record = Mapping[str, Any]

_LONGEST = 80
"""Characters of a reason in the list."""

_COLUMNS = ("Run", "On", "Status", "Started", "Took", "GPU-hours", "By", "Why")


def show(histories: Histories, last: int) -> None:
    """Prints the newest runs, and what the histories could not record."""
    out = open_console()
    listed = histories.runs[:last]
    if listed:
        for line in table_lines(Table("", _COLUMNS, tuple(map(_row, listed))), out.width):
            out.print(line)
    out.print(total(histories, len(listed)))
    for namespace, problems in histories.problems.items():
        for each in problems:
            out.print(in_one_line(f"- namespace {namespace}: {each}"))


def show_one(record: Record) -> None:
    out = open_console()
    first, *others = lines(record)
    out.print(in_one_line(first))
    for line in others:
        out.print(f"  {in_one_line(line)}")


def total(histories: Histories, listed: int) -> str:
    """The sum of all runs, in a line."""
    known = [each.record["gpuHours"] for each in histories.runs if each.record.get("gpuHours") is not None]
    older = len(histories.runs) - listed
    return "".join(
        (
            f"{len(histories.runs)} runs, {sum(known):.2f} GPU-hours",
            f" (not known of {len(histories.runs) - len(known)})" if len(known) < len(histories.runs) else "",
            f"; {older} older ones: --last {len(histories.runs)}" if older else "",
        )
    )


def lines(record: Record) -> Iterator[str]:
    """All that people look for in a run."""
    yield f"{record['namespace']}/{record['name']}: {status(record)}{_because(record)}"
    facts = {
        "template": record.get("template"),
        "size": record.get("size"),
        "by": record.get("author"),
        "code": record.get("code"),
        "entrypoint": record.get("entrypoint"),
        "runtime environment": json.dumps(record["runtimeEnv"]) if record.get("runtimeEnv") else None,
        "image": record.get("image"),
        "on cluster": record.get("onCluster"),
        "created": record.get("created"),
        "started": record.get("started"),
        "began in Ray": record.get("startedInRay"),
        "ended": record.get("ended"),
        "last seen": record.get("lastSeen"),
        "took": took(record) if record.get("ended") else None,
        "GPU-hours": _hours(record),
        "exit code": record.get("exitCode"),
    }
    yield from (f"{name}: {value}" for name, value in facts.items() if value not in (None, ""))
    for number, each in enumerate(record.get("attempts") or (), 1):
        kept = each["log"]
        log = f"log of {kept['bytes']} bytes{', its end' if kept['cut'] else ''}" if kept else "no log"
        yield f"attempt {number}: job {each['jobId']} on cluster {each['cluster']}, {log}"
    for pod in sorted((record.get("pods") or {}).values(), key=lambda each: str(each["from"])):
        held = f"{pod['from']} to {pod['until']}" if pod["from"] else "never had a node"
        yield f"pod {pod['name']}: {pod['gpus']:g} GPUs, {held}{', ' + pod['why'] if pod['why'] else ''}"
    over = record.get("ended") or record.get("complete")
    yield from (f"not recorded: {each}" for each in record.get("missing") or () if over)
    for title, key in (("event", "events"), ("event of Ray", "rayEvents")):
        for each in (record.get(key) or {}).values():
            about = each.get("object") or each["reason"]
            yield f"{title} {each['time']} {each['type']} {about}: {each['message']}"


def status(record: Record) -> str:
    """The state in the words of KubeRay or Ray: that of the job, or of its deployment before it runs; and whether that
    is not its end, because the job is deleted or its cluster gone."""
    failed = record["deploymentStatus"] in ("Failed", "ValidationFailed") and record["status"] != "SUCCEEDED"
    known = "FAILED" if failed else record["status"] or record["deploymentStatus"] or "New"
    gone = ", deleted" if record.get("deleted") else ", last seen" if record.get("lastSeen") else ""
    return f"{known}{gone}"


def took(record: Record) -> str:
    """From the creation of its cluster to its end, or `-`."""
    if not (record.get("started") and record.get("ended")):
        return "-"
    whole = int(seconds(record["ended"]) - seconds(record["started"]))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m{rest:02}s" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def _row(run: Run) -> tuple[str, ...]:
    record = run.record
    why = _because(record).removeprefix(": ")
    shown = why if len(why) <= _LONGEST else f"{why[: _LONGEST - 1]}…"
    by = record.get("author") or "-"
    on = record.get("onCluster") or "own"
    return (run.title, on, status(record), str(record.get("started") or "-"), took(record), _hours(record), by, shown)


def _because(record: Record) -> str:
    reasons = [record.get("reason"), record.get("message")] if status(record).startswith(("FAILED", "STOPPED")) else []
    joined = ": ".join(each for each in reasons if each)
    return f": {joined}" if joined else ""


def _hours(record: Record) -> str:
    known = record.get("gpuHours")
    return "-" if known is None else f"{known:.2f}"
