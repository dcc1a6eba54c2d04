"""Runs in a pod with Ray's own Python: connects to an external Ray cluster, and runs a job there if it is passed one.

Never imported by the stack. Its argument is JSON: `address`; `cluster`, its name; `seconds` to try to connect; perhaps
`version`, the expected one; `ca`, a file; `job`, keywords of Ray's submit_job; `deadline`, the job's in seconds.

Its termination message is the result: of a check JSON, of a job its last status, else why it failed. It ends with 0, or
with ENDED if another pod would fail in the same way, or with 1. A pod that is deleted stops its job: nothing goes on
without an owner. A pod that is lost with its node does not, and the next one follows the same job.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from ray.job_submission import JobSubmissionClient

MESSAGE = Path("/dev/termination-log")
RUNNING = Path("/tmp/running")  # noqa: S108 - alone in its container
"""Exists when Ray runs the job; the pod is Ready then."""

ENDED = 3

PAUSE = 2.0
LOST = 300.0
"""Seconds without an answer after which the pod gives up, so that the next one tries."""

SETTLED = 30.0
"""Seconds to wait for the resources of nodes that have just started."""

LONGEST = 3000
"""Characters of a message; Kubernetes keeps 4096 bytes."""

DELETED = "the pod was deleted, so the job was stopped"

UNKNOWN = "status code 404"
"""In Ray's error for a job that the cluster does not have (dashboard/modules/dashboard_sdk.py: _raise_error). A job's
name may have the number, too."""

OVER = ("SUCCEEDED", "FAILED", "STOPPED")


class NotConnectedError(Exception):
    """Why there is no connection now; it may come."""


def main(task: dict[str, Any]) -> None:
    """Connects, and submits the job or reports what the cluster is."""
    signal.signal(signal.SIGTERM, lambda *_: end(1, "the pod was stopped before it was connected"))
    client, version = connected(task)
    expected = task.get("version", version)
    if version != expected:
        end(ENDED, f"{task['cluster']} runs Ray {version} and not {expected}: set its rayVersion to {version}")
    if "job" not in task:
        end(0, json.dumps({"rayVersion": version, **nodes(client)}))
    identity = f"{os.environ['NAMESPACE']}-{os.environ['JOB']}-{os.environ['RUN'][:8]}"
    signal.signal(signal.SIGTERM, lambda *_: stop(client, identity))
    submit(client, identity, task["job"])
    asyncio.run(follow(client, identity, task.get("deadline")))


def end(code: int, message: str) -> NoReturn:
    """Ends the pod with its message."""
    print(message, file=sys.stderr)
    with suppress(OSError):
        MESSAGE.write_text(message if len(message) <= LONGEST else f"{message[:200]} ... {message[-LONGEST + 205 :]}")
    sys.exit(code)


def stop(client: Any, identity: str) -> NoReturn:
    """Ends a pod that is deleted while it submits the job, which Ray may have by then."""
    with suppress(Exception):
        client.stop_job(identity)
    end(ENDED, DELETED)


def connected(task: dict[str, Any]) -> tuple[Any, str]:
    """A client of the jobs API that accepts the token, and the version of the cluster."""
    deadline = time.monotonic() + task["seconds"]
    while True:
        try:
            return connect(task)
        except NotConnectedError as error:
            if time.monotonic() > deadline:
                end(1, f"{task['cluster']} at {task['address']} cannot be reached: {error}")
            print(f"not connected yet: {error}", flush=True)
        time.sleep(PAUSE)


def connect(task: dict[str, Any]) -> tuple[Any, str]:
    """The same, tried once. Raises NotConnectedError."""
    place = urlsplit(task["address"])
    try:
        # Ray's client has no time limit of its own, and a NetworkPolicy drops packets without an answer.
        socket.create_connection((place.hostname, place.port), timeout=5.0).close()
        client = JobSubmissionClient(task["address"], verify=task.get("ca", True))
        client.list_jobs()
        return client, client._do_request("GET", "/api/version").json()["ray_version"]
    except Exception as error:
        if type(error).__name__ == "AuthenticationError":
            refused = "refuses the token" if os.environ.get("RAY_AUTH_TOKEN") else "requires a token: set tokenSecret"
            end(ENDED, f"{task['cluster']} at {task['address']} {refused}: {str(error).splitlines()[0]}")
        cause = error.__context__ if isinstance(error, ConnectionError) and error.__context__ else error
        raise NotConnectedError(f"{type(cause).__name__}: {cause}") from error


def nodes(client: Any) -> dict[str, Any]:
    """The number of its workers and the GPUs of its largest node; nothing if it does not report them.

    A node that has just started has no resources yet.
    """
    deadline = time.monotonic() + SETTLED
    try:
        while True:
            listed = client._do_request("GET", "/api/v0/nodes?limit=10000").json()["data"]["result"]["result"]
            alive = [each for each in listed if each["state"] == "ALIVE"]
            if (alive and all(each.get("resources_total") for each in alive)) or time.monotonic() > deadline:
                break
            time.sleep(PAUSE)
        gpus = [int((each.get("resources_total") or {}).get("GPU", 0)) for each in alive]
        return {"workers": sum(not each["is_head_node"] for each in alive), "largestGpus": max(gpus, default=0)}
    except Exception as error:
        print(f"its nodes are not known: {error}", flush=True)
        return {}


def submit(client: Any, identity: str, job: dict[str, Any]) -> None:
    """Submits the job, unless a pod before this one has."""
    try:
        client.get_job_info(identity)
    except RuntimeError as error:
        if UNKNOWN not in str(error):
            end(1, f"the jobs API does not answer: {error}")
    else:
        print(f"following job {identity}, which is submitted already", flush=True)
        return
    try:
        client.submit_job(submission_id=identity, **job)
    except Exception as error:
        end(1, f"the job is not accepted: {error}")
    print(f"submitted job {identity}", flush=True)


async def follow(client: Any, identity: str, seconds: int | None) -> None:
    """Prints the job's log until it has ended, and stops it at its deadline or if the pod is deleted."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[str] = loop.create_future()

    def stop_soon(why: str) -> None:
        if not stopped.done():
            stopped.set_result(why)

    loop.add_signal_handler(signal.SIGTERM, stop_soon, DELETED)
    if seconds:
        loop.call_later(seconds, stop_soon, f"the job was stopped at its deadline of {seconds} s")
    log = asyncio.create_task(show_log(client, identity))
    info, seen = None, time.monotonic()
    while info is None or info.status not in OVER:
        await asyncio.wait({stopped}, timeout=PAUSE)
        try:
            if stopped.done():
                client.stop_job(identity)
                end(ENDED, stopped.result())
            info, seen = client.get_job_info(identity), time.monotonic()
        except RuntimeError as error:
            if UNKNOWN in str(error):
                end(ENDED, f"the cluster no longer knows the job, because it has started again: {error}")
        except OSError as error:
            print(f"no answer: {error}", flush=True)
        if stopped.done():
            # It could not be stopped; the pause above is over at once.
            await asyncio.sleep(PAUSE)
        if time.monotonic() - seen > LOST:
            end(1, f"the cluster has not answered for {LOST:.0f} s; the job may continue there")
        if info is not None and info.status == "RUNNING":
            RUNNING.touch()
    await asyncio.wait({log}, timeout=10.0)
    if info.status == "SUCCEEDED":
        end(0, "SUCCEEDED")
    end(ENDED, f"{info.status}: {info.message}")


async def show_log(client: Any, identity: str) -> None:
    """Prints the log of the job as it grows; after a lost connection, what has not been printed."""
    shown = 0
    while True:
        read = 0
        try:
            async for text in client.tail_job_logs(identity):
                print(text[max(shown - read, 0) :], end="", flush=True)
                read += len(text)
                shown = max(shown, read)
        except Exception as error:
            print(f"the log is interrupted: {error}", flush=True)
            await asyncio.sleep(PAUSE)
        else:
            return


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
