"""What only the head of a Ray cluster has: Ray's own view of its jobs, their events, and the drivers' logs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .api import MOST_SECONDS, ApiServer, ask_head
from .log import Log

Body = Any

TOKEN_KEY = "auth_token"  # noqa: S105 (a key, as in components/ray_cluster/manifests.py)

_MOST_EVENTS = 500

_LONGEST_DERIVED = 50
"""Of the names that KubeRay derives (util.go: CheckName)."""


class Head:
    """The dashboard of a head, with its token. All methods raise OSError or ValueError, and what follows from an answer
    of another form."""

    def __init__(
        self, url: str, token: str | None, authority: str | None = None, seconds: float = MOST_SECONDS
    ) -> None:
        """`authority`: certificates, as PEM, of the one that has signed the head's; None: those of the system.
        `seconds`: within which each answer has to come."""
        self._url, self._token, self._authority, self._seconds = url, token, authority, seconds

    def jobs(self) -> list[Body]:
        """Ray's view of all jobs and drivers that the head knows (ray/dashboard/modules/job/job_head.py: list_jobs)."""
        return list(self._ask("/api/jobs/"))

    def job(self, identifier: str) -> Body:
        """Ray's view of a job (ray/dashboard/modules/job/pydantic_models.py: JobDetails)."""
        return self._ask(f"/api/jobs/{quote(identifier, safe='')}")

    def events(self) -> list[Body]:
        """The cluster's events."""
        result = self._ask(f"/api/v0/cluster_events?limit={_MOST_EVENTS}")["data"]["result"]["result"]
        return list(result)

    def log(self, identifier: str, size: int) -> Log:
        """The last bytes of the log of a job's driver."""
        path = f"/api/jobs/{quote(identifier, safe='')}/logs"
        answer = ask_head(self._url + path, self._token, size, self._authority, self._seconds)
        if len(answer) < size:
            return Log(str(json.loads(answer)["logs"]).encode(), cut=False)
        # The end of {"logs": "..."}, from its first whole line on.
        _, _, lines = answer.rpartition(b'"}')[0].partition(b"\\n")
        return Log(str(json.loads(b'"' + lines + b'"')).encode(), cut=True)

    def _ask(self, path: str) -> Body:
        return json.loads(ask_head(self._url + path, self._token, None, self._authority, self._seconds))


def token_of(api: ApiServer, namespace: str, cluster: str, spec: Mapping[str, Any]) -> str | None:
    """The token of a RayCluster, None if it has none; `spec`: its own. Raises OSError, ValueError or LookupError."""
    options = spec.get("authOptions") or {}
    if options.get("enableK8sTokenAuth"):
        raise ValueError("its RayCluster asks for tokens of Kubernetes")
    if options.get("mode") != "token":
        return None
    return read_secret(api, namespace, options.get("secretName") or _derived(cluster), TOKEN_KEY)


def read_secret(api: ApiServer, namespace: str, name: str, key: str) -> str:
    """A text of a Secret. Raises OSError, ValueError or LookupError."""
    secret = api.read(f"/api/v1/namespaces/{namespace}/secrets/{name}")
    return base64.b64decode(secret["data"][key]).decode().strip()


def _derived(name: str) -> str:
    last = name[-_LONGEST_DERIVED:]
    return last if last[0].isalpha() else f"r{last[1:]}"
