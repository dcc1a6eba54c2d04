"""Asks the head of a cluster for the states of its nodes, and drains nodes, through HTTPS at its subdomain."""

from collections.abc import Iterable

import httpx

from .applications import Application
from .client import proxy, tls
from .decisions import Nodes
from .in_application import DRAIN, NODES
from .manifests import THE_HEAD, Inputs

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


class Head:
    """The head of a cluster, as `up` reaches it."""

    def __init__(self, inputs: Inputs, token: str) -> None:
        """`token`: Ray's. Raises CmlError if the file of authorities has none."""
        self._host, self._prefix, self._url = inputs["host"], inputs["prefix"], ""
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            transport=httpx.HTTPTransport(verify=tls(inputs["caFile"]), proxy=proxy(inputs["host"])),
            trust_env=False,
        )

    def close(self) -> None:
        """Ends its connections."""
        self._http.close()

    def nodes(self, live: Iterable[Application]) -> Nodes | None:
        """The states of Ray's nodes by their names; None if the head does not answer yet, or there is none.

        `live`: the applications of the cluster. A head that is to move to another project is asked where it runs now.
        """
        name = f"{self._prefix}{THE_HEAD}"
        running = [each for each in live if each.name == name and each.status == "RUNNING"]
        if not running:
            return None
        try:
            self._url = f"https://{running[0].body['subdomain']}.{self._host.removeprefix('https://')}"
            answer = self._http.get(self._url + NODES)
            return dict(answer.json()["nodes"]) if answer.is_success else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
            return None

    def drain(self, idle: Iterable[str], busy: Iterable[str], until: float) -> None:
        """Drains nodes of the head that was asked last: those in `idle` only if they are still idle.

        `until`: seconds since 1970, the time that nodes in `busy` are given; Ray does nothing at that time. What fails
        is tried again by the caller's next look.
        """
        drain = {**dict.fromkeys(idle), **dict.fromkeys(busy, round(until * 1000))}
        if drain:
            try:
                self._http.post(self._url + DRAIN, json={"drain": drain})
            except httpx.HTTPError:
                return
