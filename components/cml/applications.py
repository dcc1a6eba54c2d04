"""An application of Cloudera ML, as its API returns it. Plain data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Application:
    """An application as the API returns it."""

    id: str
    project: str
    name: str
    status: str
    """Without its prefix: UNKNOWN, STARTING, RUNNING, STOPPING, STOPPED or FAILED."""

    body: Mapping[str, Any]

    environment: Mapping[str, str]
    """Its variables; the API returns them as a text of JSON."""

    @classmethod
    def of(cls, project: str, body: Mapping[str, Any]) -> Self:
        status = str(body.get("status") or "UNKNOWN").upper().removeprefix("APPLICATION_")
        return cls(body["id"], project, body.get("name") or "", status, body, _environment(body.get("environment")))


def _environment(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return {}
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, Mapping) else {}
