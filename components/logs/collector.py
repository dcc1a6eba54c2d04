"""The configuration of the collectors (opentelemetry.io, Collector: Configuration), in a ConfigMap. Pure functions.

In it `${env:NAME}` is a variable of the container; other dollar signs are doubled (Configuration: Environment
variables).
"""

import json
from collections.abc import Iterable
from typing import Any

from components.logs.manifests import CA_FILE, CONFIG_FILE, CONFIG_MAP, STATE, header_variable
from components.logs.redaction import redactions
from components.logs.settings import LogsSettings, SecretKey
from core.yaml_writer import go_yaml

Config = dict[str, Any]

SESSIONS = "/tmp/ray/session_2*"  # noqa: S108 (Ray's own folder)
"""Folders of Ray's sessions, `session_<date>_<time>_<process>`, without the link `session_latest`."""

NAMES = {
    "k8s.namespace.name": "POD_NAMESPACE",
    "k8s.pod.name": "POD_NAME",
    "k8s.node.name": "NODE_NAME",
    "ray.cluster": "RAY_CLUSTER",
    "ray.node_type": "RAY_NODE_TYPE",
    "ray.group": "RAY_GROUP",
    # Loki and others index it, and take it for the origin of a record.
    "service.name": "RAY_CLUSTER",
}
"""Attributes of each record with what the container's variables have. Names of OpenTelemetry where it has one
(opentelemetry.io, Semantic conventions: Kubernetes)."""

QUEUED_BYTES = 64 << 20
"""Bytes of records that wait for the receiver. Beyond that the collector stops reading: the files keep the rest."""

_CONTINUED = (
    r"^\s|^$|^Traceback \(most recent call last\):|^(?:During handling of|The above exception)|^-----END "
    r"|^(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration)(?:\(\w+\))?(?::|$)"
    r"|^[A-Za-z0-9+/]{70}$|^(?:[A-Za-z0-9+/]{4}){4,16}$|^[A-Za-z0-9+/]{2,62}={1,2}$"
)
"""Lines that belong to the record before: those of tracebacks, and those of keys in PEM, so that a key is masked as a
whole. Lines of PEM have 64 characters, of OpenSSH 70; the last one has fewer."""

_JOB = r"^worker-[0-9a-f]+-(?P<job_id>[0-9a-f]{8})-\d+\."
"""Names of workers' files (ray/_private/worker.py: get_worker_log_file_name)."""

_NO_JOB = "-ffffffff-"
"""Part of the name if the worker has started before its first job."""

_SUBMISSION = r"^job-driver-(?P<submission_id>.+)\.log"

_SEVERITY = (
    r"^\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+\s+(?:\[?)"
    r"(?P<severity>DEBUG|INFO|WARNING|ERROR|CRITICAL|[DIWECF])\b"
)
"""Begin of Ray's own lines, of Python and of C++ (src/ray/util/logging.cc)."""


def config_map(settings: LogsSettings, tenant: str) -> Config:
    """The ConfigMap for the tenant of that name."""
    content = go_yaml(collector_config(settings, tenant), sort_keys=False, width=1000)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "labels": {"app.kubernetes.io/name": CONFIG_MAP}},
        "data": {CONFIG_FILE: content},
    }


def collector_config(settings: LogsSettings, tenant: str) -> Config:
    """The configuration for the pods of a tenant."""
    exporter, options = _exporter(settings)
    return {
        "extensions": {"file_storage": {"directory": STATE}},
        "receivers": {"file_log": _files(settings, tenant)},
        "exporters": {exporter: options},
        "service": {
            "extensions": ["file_storage"],
            "pipelines": {"logs": {"receivers": ["file_log"], "exporters": [exporter]}},
            # Its own metrics would take a port of the pod.
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "warn"}},
        },
    }


def _files(settings: LogsSettings, tenant: str) -> Config:
    """The receiver, which reads the files."""
    kinds = "{log,out,err}"
    return {
        "include": [f"{SESSIONS}/logs/**/*.{kinds}", f"{SESSIONS}/logs/**/*.{kinds}.[0-9]*"],
        "start_at": "beginning",
        "poll_interval": "500ms",
        # A file is known by its beginning: workers of one job often begin with the same lines.
        "fingerprint_size": "8kib",
        "max_log_size": "1MiB",
        "preserve_leading_whitespaces": True,
        "storage": "file_storage",
        "retry_on_failure": {"enabled": True},
        "resource": {"ray.tenant": tenant, **{name: f"${{env:{variable}}}" for name, variable in NAMES.items()}},
        "operators": [
            {
                "type": "recombine",
                "combine_field": "body",
                "is_first_entry": _escaped(f"not (body matches `{_CONTINUED}`)"),
                "source_identifier": 'attributes["log.file.name"]',
                "max_log_size": "1MiB",
                "force_flush_period": "1s",
            },
            *(
                {
                    "type": "regex_replace",
                    "field": "body",
                    "regex": _escaped(each.pattern),
                    "replace_with": _escaped(each.replacement),
                    **({"if": _contains(each.has)} if each.has else {}),
                }
                for each in redactions(settings.redact)
            ),
            _parsed(
                'attributes["log.file.name"]', _JOB, f' and not (attributes["log.file.name"] contains "{_NO_JOB}")'
            ),
            _parsed('attributes["log.file.name"]', _SUBMISSION),
            {
                **_parsed("body", _SEVERITY),
                "severity": {
                    "parse_from": "attributes.severity",
                    "mapping": {"debug": "D", "info": "I", "warn": "W", "error": "E", "fatal": ["C", "F", "CRITICAL"]},
                },
            },
            *(
                {"type": "move", "from": f"attributes.{name}", "to": f'attributes["ray.{name}"]', "if": _has(name)}
                for name in ("job_id", "submission_id")
            ),
            {"type": "remove", "field": "attributes.severity", "if": _has("severity")},
        ],
    }


def _parsed(field: str, pattern: str, also: str = "") -> Config:
    """Named groups of the pattern as attributes, where it matches. `also`: the rest of the condition."""
    matches = _escaped(f"{field} matches `{pattern}`{also}")
    return {"type": "regex_parser", "parse_from": field, "regex": _escaped(pattern), "if": matches}


def _contains(texts: Iterable[str]) -> str:
    """That one of the texts, which are in lower case, is in the body in any case. Only both functions together have all
    letters that `(?i)` has: one of U+017F and U+212A is its own upper case, the other its own lower case."""
    return f"let text = lower(upper(body)); {' or '.join(f'text contains {json.dumps(each)}' for each in texts)}"


def _has(attribute: str) -> str:
    return f'"{attribute}" in attributes'


def _exporter(settings: LogsSettings) -> tuple[str, Config]:
    """The exporter's type and its options."""
    headers = {name: header_value(name, value) for name, value in settings.headers.items()}
    waiting = {
        "storage": "file_storage",
        "sizer": "bytes",
        "queue_size": QUEUED_BYTES,
        "block_on_overflow": True,
        "batch": {"flush_timeout": "1s", "sizer": "bytes", "max_size": 4 << 20},
    }
    options: Config = {
        "endpoint": _escaped(settings.endpoint.rstrip("/")) + ("/otlp" if settings.exporter == "loki" else ""),
        **({"headers": headers} if headers else {}),
        **({"tls": {"ca_file": CA_FILE}} if settings.ca else {}),
        "sending_queue": waiting,
    }
    if settings.exporter == "elasticsearch":
        return "elasticsearch", {**options, "retry": {"enabled": True, "max_retries": 0}}
    # The queue keeps what cannot be sent, so a record is never given up.
    return "otlp_http", {**options, "retry_on_failure": {"enabled": True, "max_elapsed_time": "0s"}}


def header_value(name: str, value: str | SecretKey) -> str:
    return f"${{env:{header_variable(name)}}}" if isinstance(value, SecretKey) else _escaped(value)


def _escaped(text: str) -> str:
    return text.replace("$", "$$")
