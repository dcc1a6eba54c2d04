"""A Prometheus that scrapes a stack with real pods."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import httpx

from components.monitoring.prometheus import NAME, PORT
from components.monitoring.settings import DEFAULT_NAMESPACE
from stacks.load import load
from testbed.machine import lacks
from testbed.pods.platform import Platform


class Prometheus:
    """A Prometheus at a URL."""

    def __init__(self, url: str) -> None:
        # One connection for all, each of which kubectl would announce in a pipe that nobody reads.
        self._client = httpx.Client(base_url=f"{url}/api/v1/", timeout=30, trust_env=False)

    @staticmethod
    def installed() -> bool:
        """Whether this machine has the program."""
        return shutil.which("prometheus") is not None

    @classmethod
    @contextmanager
    def installed_by(cls, platform: Platform) -> Iterator[Self]:
        """The stack's own, of mode `install`, with a port forwarded as for a cluster admin."""
        with platform.forwarded(NAME, PORT, DEFAULT_NAMESPACE) as address:
            yield cls(address)

    @classmethod
    def of(cls, platform: Platform) -> Self:
        """Starts that of `make up MONITORING=1`, in the network of the node, with the rules and targets of the stack.
        It reaches the pods whatever the NetworkPolicies are."""
        if not cls.installed():
            lacks("not on the PATH: prometheus; it is in the package prometheus")
        platform.rehearsal.monitor(load(platform.stack.file))
        return cls(platform.rehearsal.prometheus.url)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression, each with `metric` and `value`."""
        return list(self._asked("query", query=expression)["result"])

    def values(self, expression: str, label: str) -> dict[str, float]:
        """The values of an expression, by a label."""
        return {each["metric"].get(label, ""): float(each["value"][1]) for each in self.query(expression)}

    def not_evaluated(self) -> dict[str, str]:
        """The rules that it could not evaluate, or has not yet, with the error."""
        rules = [rule for group in self._asked("rules")["groups"] for rule in group["rules"]]
        assert rules
        return {rule["name"]: rule.get("lastError", "") for rule in rules if rule["health"] != "ok"}

    def firing(self) -> set[tuple[str, str]]:
        """The alerts that fire, by their names and namespaces."""
        firing = self.query('ALERTS{alertstate="firing"}')
        return {(each["metric"]["alertname"], each["metric"].get("namespace", "")) for each in firing}

    def first_fired(self, alert: str) -> dict[str, float]:
        """When an alert fired first within the last hour, in seconds since 1970, by namespace."""
        fires = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
        return self.values(f"min_over_time(timestamp({fires})[1h:1s])", "namespace")

    def _asked(self, what: str, **parameters: str) -> dict[str, Any]:
        return dict(self._client.get(what, params=parameters).raise_for_status().json()["data"])
