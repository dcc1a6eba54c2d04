"""What only the head of a job's RayCluster has: Ray's own view of the job, its events, and the driver's log."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .api import ApiServer, ask_head
from .log import Log

Body = Any

TOKEN_KEY = "auth_token"  # noqa: S105 (a key, as in components/ray_cluster/manifests.py)

_MOST_EVENTS = 500

_LONGEST_DERIVED = 50
"""Of the names that KubeRay derives (util.go: CheckName)."""


class Head:
    """The dashboard of the head of a RayJob's RayCluster, with its token."""

    def __init__(self, api: ApiServer, namespace: str, job: Body, cluster_spec: Mapping[str, Any]) -> None:
        """Reads the token. Raises OSError or ValueError, as all methods do."""
        self._url = f"http://{job['status']['dashboardURL']}"
        self._job = quote(str(job["status"]["jobId"]), safe="")
        self._token: str | None = None
        options = cluster_spec.get("authOptions") or {}
        if options.get("enableK8sTokenAuth"):
            raise ValueError("its RayCluster asks for tokens of Kubernetes")
        if options.get("mode") == "token":
            name = options.get("secretName") or _derived(str(job["status"]["rayClusterName"]))
            secret = api.read(f"/api/v1/namespaces/{namespace}/secrets/{name}")
            self._token = base64.b64decode(secret["data"][TOKEN_KEY]).decode()

    def job(self) -> Body:
        """Ray's view of the job (ray/dashboard/modules/job/pydantic_models.py: JobDetails)."""
        return self._ask(f"/api/jobs/{self._job}")

    def events(self) -> list[Body]:
        """The cluster's events."""
        result = self._ask(f"/api/v0/cluster_events?limit={_MOST_EVENTS}")["data"]["result"]["result"]
        return list(result)

    def log(self, size: int) -> Log:
        """The last bytes of the driver's log."""
        answer = ask_head(f"{self._url}/api/jobs/{self._job}/logs", self._token, size)
        if len(answer) < size:
            return Log(str(json.loads(answer)["logs"]).encode(), cut=False)
        # The end of {"logs": "..."}, from its first whole line on.
        _, _, lines = answer.rpartition(b'"}')[0].partition(b"\\n")
        return Log(str(json.loads(b'"' + lines + b'"')).encode(), cut=True)

    def _ask(self, path: str) -> Body:
        return json.loads(ask_head(self._url + path, self._token))


def _derived(name: str) -> str:
    last = name[-_LONGEST_DERIVED:]
    return last if last[0].isalpha() else f"r{last[1:]}"
