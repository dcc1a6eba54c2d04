"""A receiver of logs: an OpenTelemetry Collector that writes what it receives into a file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PORT = 4318
"""The port of OTLP over HTTP (opentelemetry.io, OTLP Specification)."""


@dataclass(frozen=True)
class Record:
    """A record of a log, with the attributes of its resource and its own."""

    body: str
    attributes: Mapping[str, str]
    severity: str


def receiver_config(address: str, file: Path) -> str:
    """The configuration of a collector that receives at `address` and writes to the file, a line for each request."""
    return yaml.safe_dump(
        {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": address}}}},
            "exporters": {"file": {"path": str(file), "flush_interval": "100ms"}},
            "service": {
                "pipelines": {"logs": {"receivers": ["otlp"], "exporters": ["file"]}},
                "telemetry": {"metrics": {"level": "none"}},
            },
        }
    )


def records(file: Path) -> list[Record]:
    """The records that a receiver has written so far."""
    return list(_records(file)) if file.exists() else []


def _records(file: Path) -> Iterator[Record]:
    for line in file.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            return  # it is being written
        for resource in json.loads(line)["resourceLogs"]:
            of_resource = _attributes(resource["resource"])
            for scope in resource["scopeLogs"]:
                for each in scope["logRecords"]:
                    body = each["body"]["stringValue"]
                    yield Record(body, {**of_resource, **_attributes(each)}, each.get("severityText", ""))


def _attributes(of: Mapping[str, Any]) -> dict[str, str]:
    return {each["key"]: str(each["value"].get("stringValue", "")) for each in of.get("attributes", ())}
