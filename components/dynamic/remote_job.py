"""The dynamic resources of a job that `up` submits, and their providers.

The ID of a run is in the state before the run is submitted. So a killed `up` that is repeated finds the job in Ray by
its ID, and the deletion of the ID stops what runs under it, also after an `up` that failed while it waited.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from pulumi import Output, ResourceOptions
from pulumi.dynamic import ConfigureRequest, CreateResult, DiffResult, ReadResult, UpdateResult

from components.dynamic import Provider, Resource
from components.pulumi_internals import without_traceback
from components.remote_job.jobs import LOST, OVER, UNKNOWN, Found, Jobs, RemoteJobError, UnreachableError
from components.waiting import report

_RANDOM_BYTES = 4

_TARGET = ("cluster", "address", "token", "tokenVariable", "caFile", "seconds")
"""Inputs by which the cluster is reached."""

_SECRET = ResourceOptions(additional_secret_outputs=["token"])


class _Provider(Provider):
    def configure(self, req: ConfigureRequest) -> None:
        without_traceback()


@contextmanager
def _jobs(props: Mapping[str, Any]) -> Iterator[Jobs]:
    with closing(Jobs(props)) as jobs:
        yield jobs


class RunProvider(_Provider):
    """The ID of a run. Its deletion stops the job.

    Inputs: the target, `prefix` and `run` (components/remote_job/manifests.py). Outputs: the same, and `submission`.
    """

    replacing = ("prefix", "run")

    def create(self, props: dict[str, Any]) -> CreateResult:
        submission = f"{props['prefix']}-{secrets.token_hex(_RANDOM_BYTES)}"
        return CreateResult(submission, {**props, "submission": submission})

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        moved = self.moved(olds, news)
        changes = bool(moved) or any(olds.get(key) != news.get(key) for key in _TARGET)
        return DiffResult(changes=changes, replaces=moved, delete_before_replace=True)

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({**news, "submission": olds["submission"]})

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        try:
            with _jobs(props) as jobs:
                jobs.stop(props["submission"])
        except UnreachableError as error:
            # A cluster that no longer exists must not keep the job in the state for ever.
            report(
                f"warning: {error}\nwarning: if it still runs, so may the job: "
                f"`ray job stop --address {props['address']} {props['submission']}`"
            )


class SubmissionProvider(_Provider):
    """The submitted job.

    Inputs: the target, `submission`, `job`, `waitFor` and `waitSeconds`. Outputs: the same, `status` and `message`.
    """

    replacing = ("submission",)
    compared = (*_TARGET, "waitFor", "waitSeconds")

    def create(self, props: dict[str, Any]) -> CreateResult:
        with _jobs(props) as jobs:
            found = jobs.submit(props["submission"], json.loads(props["job"]), report)
            return CreateResult(props["submission"], _with(props, _waited(jobs, props, found)))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        before = Found(olds.get("status") or UNKNOWN, olds.get("message") or "")
        if before.over:
            return UpdateResult(_with(news, before))
        with _jobs(news) as jobs:
            return UpdateResult(_with(news, _waited(jobs, news, jobs.find(news["submission"]) or before)))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        if props.get("status") in OVER:
            return ReadResult(id_, props)
        try:
            with _jobs(props) as jobs:
                found = jobs.find(props["submission"])
        except RemoteJobError as error:
            report(f"warning: job {props['submission']} was not read: {error}")
            return ReadResult(id_, props)
        return ReadResult(id_, _with(props, found or LOST))


def _waited(jobs: Jobs, props: Mapping[str, Any], found: Found) -> Found:
    if props["waitFor"] == "nothing":
        return found
    return jobs.wait(props["submission"], props["waitFor"], float(props["waitSeconds"]), report)


def _with(props: Mapping[str, Any], found: Found) -> dict[str, Any]:
    return {**props, "status": found.status, "message": found.message}


class RemoteJobRun(Resource, module="ray-platform", name="RemoteJobRun"):
    """The ID of a run in Ray, another for each run. Its deletion stops the job.

    Outputs:
        submission: the ID.
    """

    submission: Output[str]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: ResourceOptions | None = None) -> None:
        props = {**inputs, "submission": None}
        super().__init__(RunProvider(), name, props, ResourceOptions.merge(opts, _SECRET))


class RemoteJobSubmission(Resource, module="ray-platform", name="RemoteJobSubmission"):
    """A job that Ray has.

    Outputs:
        status: in Ray's words as of the last `up` that waited, or refresh; UNKNOWN if the cluster has lost the job.
        message: Ray's message with it.
    """

    status: Output[str]
    message: Output[str]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: ResourceOptions | None = None) -> None:
        props = {**inputs, "status": None, "message": None}
        super().__init__(SubmissionProvider(), name, props, ResourceOptions.merge(opts, _SECRET))
