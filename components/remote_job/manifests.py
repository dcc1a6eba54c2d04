"""What the state of a stack has of a job that `up` submits. Pure functions."""

import json
from typing import Any

from components.ray_job.manifests import run, submitted
from components.remote_job.settings import RemoteClusterSettings, RemoteJobSettings
from core.types import seconds

READY_SECONDS = 120
"""For a head on Cloudera ML to answer: `up` has waited for it before."""


def target(cluster: RemoteClusterSettings) -> dict[str, Any]:
    """How an external cluster is reached. An unset text is empty: Pulumi does not send inputs that are None."""
    return {
        "cluster": cluster.name,
        "address": cluster.dashboard_address,
        "tokenVariable": cluster.token_variable or "",
        "token": "",
        "caFile": cluster.ca_file or "",
        "seconds": seconds(cluster.ready_timeout),
    }


def target_on_cml(name: str, url: str, token: Any, ca_file: str | None) -> dict[str, Any]:
    """How a head on Cloudera ML is reached. `token`: Ray's, an output of Pulumi."""
    return {
        "cluster": name,
        "address": url,
        "tokenVariable": "",
        "token": token,
        "caFile": ca_file or "",
        "seconds": READY_SECONDS,
    }


def claim(job: RemoteJobSettings, stack: str) -> dict[str, Any]:
    """The inputs that decide on a run: another value of one of them is another run."""
    return {"prefix": f"{stack}-{job.name}", "run": run(job)}


def submission(job: RemoteJobSettings) -> dict[str, Any]:
    """What is submitted, as JSON so that numbers stay as they are, and what `up` waits for."""
    return {
        "job": json.dumps(submitted(job), sort_keys=True),
        "waitFor": job.wait_for,
        "waitSeconds": seconds(job.wait_timeout),
    }
