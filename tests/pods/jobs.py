"""Ray jobs, submitted as by users: through the dashboard's API, with a token."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import urllib3

from testbed.pods.steps import until

HTTP = urllib3.PoolManager(timeout=30.0)


class Jobs:
    """The jobs of a RayCluster, with a user's token."""

    def __init__(self, address: str, token: str | None) -> None:
        """`address`: of the dashboard. `token`: None: requests have none."""
        self._url = f"{address}/api/jobs/"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def submit(self, entrypoint: str) -> urllib3.BaseHTTPResponse:
        """The dashboard's answer to a new job."""
        return HTTP.request("POST", self._url, json={"entrypoint": entrypoint}, headers=self._headers)

    def run(self, entrypoint: str) -> str:
        """The output of a job. Fails the test unless it succeeds."""
        answer = self.submit(entrypoint)
        assert answer.status == HTTPStatus.OK, answer.data
        job = answer.json()["submission_id"]
        until(lambda: self._read(job)["status"] in ("SUCCEEDED", "FAILED"), "the job ends")
        logs: str = self._read(f"{job}/logs")["logs"]
        assert self._read(job)["status"] == "SUCCEEDED", logs
        return logs

    def _read(self, path: str) -> Mapping[str, Any]:
        answer = HTTP.request("GET", f"{self._url}{path}", headers=self._headers)
        assert answer.status == HTTPStatus.OK, answer.data
        found: Mapping[str, Any] = answer.json()
        return found
