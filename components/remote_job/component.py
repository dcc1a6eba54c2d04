"""How a job is submitted by `up` itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.dynamic.remote_job import RemoteJobRun, RemoteJobSubmission
from components.remote_job.manifests import claim, submission
from components.remote_job.settings import RemoteJobSettings


@dataclass(frozen=True)
class RemoteJobArgs:
    settings: RemoteJobSettings

    target: Mapping[str, Any]
    """How its cluster is reached (manifests.target)."""


class RemoteJob(pulumi.ComponentResource):
    """A job that the machine of `up` submits to a Ray cluster: once, and again when its settings or its `runId` change.
    Then and when it is deleted, a running job is stopped.

    Outputs:
        summary: its cluster, `jobsUrl`, its `submissionId` in Ray, and `status` and `message` as of the last `up` that
            waited for it, or refresh.
    """

    summary: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: RemoteJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RemoteJob", name, None, opts)
        below_self = pulumi.ResourceOptions(parent=self)
        target, settings = dict(args.target), args.settings
        run = RemoteJobRun(f"{name}-run", {**target, **claim(settings, pulumi.get_stack())}, below_self)
        inputs = {**target, "submission": run.submission, **submission(settings)}
        job = RemoteJobSubmission(f"{name}-submission", inputs, below_self)
        self.summary = pulumi.Output.all(run.submission, job.status, job.message).apply(
            lambda known: {
                "cluster": target["cluster"],
                "jobsUrl": target["address"],
                "submissionId": known[0],
                "status": known[1],
                "message": known[2],
            }
        )
        self.register_outputs({"summary": self.summary})
