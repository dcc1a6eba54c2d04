"""A Prometheus that scrapes a stack with real pods."""

import json
import shutil
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import urlopen

from stacks.load import load
from testbed.machine import lacks
from testbed.pods.platform import Platform


class Prometheus:
    """The Prometheus of `make up MONITORING=1`, in the network of the node. It reaches the pods whatever the
    NetworkPolicies are. The port matrix tests those."""

    def __init__(self, url: str) -> None:
        self._url = url

    @staticmethod
    def installed() -> bool:
        """Whether this machine has the program."""
        return shutil.which("prometheus") is not None

    @classmethod
    def of(cls, platform: Platform) -> Self:
        """Starts it with the rules and targets of the stack."""
        if not cls.installed():
            lacks("not on the PATH: prometheus; it is in the package prometheus")
        platform.rehearsal.monitor(load(platform.stack.file))
        return cls(platform.rehearsal.prometheus.url)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression, each with `metric` and `value`."""
        asked = f"{self._url}/api/v1/query?{urlencode({'query': expression})}"
        with urlopen(asked, timeout=30) as answer:  # noqa: S310 -- its own URL
            return list(json.load(answer)["data"]["result"])

    def values(self, expression: str, label: str) -> dict[str, float]:
        """The values of an expression, by a label."""
        return {each["metric"].get(label, ""): float(each["value"][1]) for each in self.query(expression)}

    def not_evaluated(self) -> dict[str, str]:
        """The rules that it could not evaluate, or has not yet, with the error."""
        with urlopen(f"{self._url}/api/v1/rules", timeout=30) as answer:  # noqa: S310 -- its own URL
            groups = json.load(answer)["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
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
