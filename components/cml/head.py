"""Asks the head of a cluster for the states of its nodes and for what it serves, drains nodes, and sends it a Serve
config, through HTTPS at its subdomain."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus

import httpx

from components.cml.applications import Application
from components.cml.client import CmlError, proxy, tls
from components.cml.decisions import Nodes
from components.cml.manifests import THE_HEAD, TOKEN, Inputs
from components.cml.serving import Served
from components.payloads.cml_application import DRAIN, NODES

_SERVE = "/api/serve/applications/"
"""Path of the dashboard (ray, python/ray/dashboard/modules/serve/serve_head.py)."""

_LOGS, _LOG = "/api/v0/logs", "gcs_server.out"
"""Path of the dashboard (ray, python/ray/dashboard/modules/state/state_head.py), and a file of the head's logs."""

_WITHOUT_SERVE = (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.NOT_FOUND)
"""The dashboard's answer there: Ray is installed without `serve`, or without `default`."""

_LONGEST_MESSAGE = 1000

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


class Head:
    """The head of a cluster, as `up` reaches it."""

    def __init__(self, inputs: Inputs) -> None:
        """Raises CmlError if the file of authorities has none."""
        self._host, self._prefix, self._url = inputs["host"], inputs["prefix"], ""
        self._cluster = inputs["cluster"]
        self._http = httpx.Client(
            timeout=_TIMEOUT,
            transport=httpx.HTTPTransport(verify=tls(inputs["caFile"]), proxy=proxy(inputs["host"])),
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def nodes(self, live: Iterable[Application]) -> Nodes | None:
        """The states of Ray's nodes by their names; None if the head does not answer yet, or there is none.

        `live`: the applications of the cluster. A head that is to move to another project, or to get another token, is
        asked where it runs now, with the token that it has.
        """
        name = f"{self._prefix}{THE_HEAD}"
        running = [each for each in live if each.name == name and each.status == "RUNNING"]
        if not running:
            return None
        try:
            self._url = f"https://{running[0].body['subdomain']}.{self._host.removeprefix('https://')}"
            self._http.headers["Authorization"] = f"Bearer {running[0].environment[TOKEN]}"
            answer = self._http.get(self._url + NODES)
            return dict(answer.json()["nodes"]) if answer.is_success else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
            return None

    def drain(self, idle: Iterable[str], busy: Iterable[str], seconds: float) -> None:
        """Drains nodes of the head that was asked last: those in `idle` only if they are still idle.

        `seconds`: the time that nodes in `busy` are given, from now; Ray does nothing at its end. What fails is tried
        again by the caller's next look.
        """
        drain = {**dict.fromkeys(idle), **dict.fromkeys(busy, seconds)}
        if drain:
            try:
                self._http.post(self._url + DRAIN, json={"drain": drain})
            except httpx.HTTPError:
                return

    def log(self, lines: int, *, follow: bool) -> Iterator[bytes]:
        """The log of Ray's GCS, which has what happens to nodes, jobs and actors, of the head that was asked last.

        `lines`: only that many last ones, all if it is -1. Raises CmlError.
        """
        try:
            address = self._http.get(self._url + NODES).json()["address"].rpartition(":")[0]
            params = {"node_ip": address, "filename": _LOG, "lines": str(lines)}
            place, timeout = f"{self._url}{_LOGS}/{'stream' if follow else 'file'}", httpx.Timeout(60.0, read=None)
            with self._http.stream("GET", place, params=params, timeout=timeout) as answer:
                if not answer.is_success:
                    reason = answer.read().decode(errors="replace")[:_LONGEST_MESSAGE]
                    raise CmlError(f"Ray's dashboard does not show the log of {self._cluster}'s head: {reason}")
                yield from answer.iter_bytes()
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise CmlError(f"the head of Ray cluster {self._cluster} does not answer any more: {error}") from None

    def served(self) -> Served | None:
        """The applications of Serve on the head that was asked last; None if Ray does not answer yet. A runtime without
        Ray Serve has none."""
        try:
            answer = self._http.get(self._url + _SERVE)
            if answer.status_code in _WITHOUT_SERVE:
                return {}
            return dict(answer.json()["applications"]) if answer.is_success else None
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return None

    def serve(self, config: str) -> bool:
        """Sends a Serve config, as JSON. Returns whether Ray has it. Raises CmlError if Ray refuses it, or if the
        runtime has no Ray Serve."""
        try:
            answer = self._http.put(self._url + _SERVE, content=config, headers={"Content-Type": "application/json"})
        except httpx.HTTPError:
            return False
        if answer.status_code in _WITHOUT_SERVE:
            raise CmlError(
                f"the runtime of Ray cluster {self._cluster} has no Ray Serve: use a runtime with it, or run "
                "`pip install 'ray[default,serve]==VERSION'` in a session of the project"
            )
        if answer.status_code == HTTPStatus.BAD_REQUEST:
            reason = answer.text[:_LONGEST_MESSAGE]
            raise CmlError(f"Ray refuses the Serve config of Ray cluster {self._cluster}: {reason}")
        return answer.is_success
