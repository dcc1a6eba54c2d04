"""The configuration of the collectors (opentelemetry.io, Collector: Configuration), in a ConfigMap, and the secrets
that they mask, as regular expressions in the common syntax of RE2 and Python. Pure functions.

In the configuration `${env:NAME}` is a variable of the container; other dollar signs are doubled (Configuration:
Environment variables). Masked are the secrets that are known by their look (core/secrets.py), values behind a name that
tells what they are, and Ray's own tokens.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from components.logs.manifests import CA_FILE, CONFIG_FILE, CONFIG_MAP, STATE, header_variable
from components.logs.settings import LogsSettings, SecretKey
from core.secrets import FORMATS
from core.yaml_writer import go_yaml

MASK = "***"


@dataclass(frozen=True)
class Redaction:
    """Texts to mask.

    Fields: `replacement`: what remains, with `$1` for the first group of the pattern; `has`: texts in lower case, one
    of which is in each match, whatever its case; empty: unknown. Nearly all lines have none, and looking for them takes
    less time than the pattern (docs/measurements/logs.md).
    """

    name: str
    pattern: str
    replacement: str = MASK
    has: tuple[str, ...] = ()

    @property
    def replacement_of_python(self) -> str:
        """The replacement for Python's `re.sub`."""
        return re.sub(r"\$(\d)", r"\\g<\1>", self.replacement)


_NAMES = (
    "(?:token|passwords?|passwd|passphrase|secret|credentials?|connection_string|[_-]pwd"
    r"|(?:api|access|private|secret|encryption|signing|account|storage|auth)[_-]?key)(?:_?\d+)?"
)
"""Ends of names of variables, options and fields with a secret. Not `tokens`, which language models count."""

_HAVE_NAMES = ("token", "passw", "passphrase", "secret", "credential", "connection_string", "pwd", "key")

_QUOTE = r"""\\*["']"""
"""Also escaped, as in JSON within JSON, however deep."""

_COLOUR = r"(?:\x1b\[[\d;]*m)*"
"""Colours of a terminal, which some loggers write around names and values."""

_IS = rf"{_COLOUR}(?:{_QUOTE})?\s*(?:=>|[=:])\s*{_COLOUR}"
"""Between a name and its value."""

_NEXT = rf"{_QUOTE}\s*,\s*(?:(?:{_QUOTE})?value(?:{_QUOTE})?\s*[=:]\s*)?"
"""Between a name and its value in a tuple, a list of arguments, or an `env` of Kubernetes."""

_QUOTED = (
    r"[bruf]{0,2}(?:"
    r"""(\\+")[^"]*"|(\\+')[^']*'|(")(?:[^"\\]|(?s:\\.))*"|(')(?:[^'\\]|(?s:\\.))*'"""
    # One without its end.
    r"""|\\*["'][^\n]*)"""
)
"""A value in quotes, which are its four groups."""

_WORD = r"""[^\s"',;})\]&\\]+"""

_MASKED = f"$1$2$3$4$5{MASK}$2$3$4$5"
"""What remains of a name, the first group, and its value, `_QUOTED` or not."""

_SCHEME = "(?:bearer|basic|token|apikey)"

_CREDENTIAL = r"""[^\s"',;})\]\\]+"""

_OF_HEADER = rf"(?:{_IS}|{_NEXT})(?:[bruf]{{0,2}}{_QUOTE})?"
"""Between the name of a header and its value."""

_KEY = "[A-Z0-9 ]*PRIVATE KEY-----"
"""The end of both marks of a private key in PEM."""

_LOOKS = (
    *(look for name, look in FORMATS.items() if name not in ("a private key", "a password in a URL")),
    # NVIDIA, npm, PyPI, Docker and Google.
    r"\b(?:nvapi-[\w-]{40}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{40}|dckr_pat_[\w-]{20}|ya29\.[\w-]{20})[\w-]*",
)

_HAVE_LOOKS = (
    *("hf_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "sk-", "akia", "asia", "aiza", "xox"),
    *("eyj", "nvapi-", "npm_", "pypi-", "dckr_pat_", "ya29."),
)

REDACTIONS = (
    # The whole key, also as one line with \n in it, and one whose end is missing.
    Redaction(
        "a private key",
        rf"-----BEGIN {_KEY}(?:[\w\s+/=:,.\\-]*?-----END {_KEY}|[\s\w+/=\\]*)",
        has=("-----begin",),
    ),
    # Of a scheme that is not known here, its name is masked too. A cookie is masked up to the end of its line.
    Redaction(
        "a header",
        rf"(?i)(authorization{_OF_HEADER})(?:({_SCHEME}\s+){_CREDENTIAL}|{_CREDENTIAL}(?:[ \t]+{_CREDENTIAL})?)"
        rf"|(cookie{_OF_HEADER})[^\s\"'\\][^\"'\\\n]*",
        f"$1$2$3{MASK}",
        has=("authorization", "cookie"),
    ),
    Redaction("a bearer token", r"(?i)\b(bearer\s+)[\w.~+/=-]{16,}", f"$1{MASK}", has=("bearer",)),
    # FORMATS knows placeholders, and a password up to its first @. In a log, all is masked up to the last one.
    Redaction("a password in a URL", r"""://[^/\s:@]*:[^/\s"']*@""", f"://{MASK}@", has=("://",)),
    Redaction(
        "a signature in a URL",
        rf"(?i)([?&](?:sig|(?:x-amz-|x-goog-)?signature)=){_WORD}",
        f"$1{MASK}",
        has=("sig=", "signature="),
    ),
    Redaction("a secret known by its look", "|".join(_LOOKS), has=_HAVE_LOOKS),
    Redaction(
        "a value of a name",
        rf"(?i)({_NAMES}(?:{_IS}|{_NEXT}))(?:{_QUOTED}|(?:{_SCHEME}[ \t]+)?{_WORD})",
        _MASKED,
        has=_HAVE_NAMES,
    ),
    # It begins a word: Python would try each of many hyphens.
    Redaction(
        "an option of a command",
        rf"(?i)((?:^|[^\w-])--[\w-]*{_NAMES}\s+)(?:{_QUOTED}|[^\s\"'-]\S*)",
        _MASKED,
        has=("--",),
    ),
    # 32 random bytes in base64 (ray-operator/controllers/ray/raycluster_controller.go: generateRandomToken).
    Redaction("a token of KubeRay", r"(^|[^\w+/])[A-Za-z0-9+/]{43}=", f"$1{MASK}", has=("=",)),
    # 32 random bytes in hexadecimal (ray/_private/authentication/authentication_token_generator.py). A checksum looks
    # the same; `sha256:...` remains. In a URL the character before may be `%3D`.
    Redaction("a token of Ray", r"(^|[^\w:]|\D:|%[0-9A-Fa-f]{2})[0-9a-f]{64}\b", f"$1{MASK}"),
)
"""In this order. An authorization header is masked before what is in it."""


def redactions(further: Iterable[str]) -> tuple[Redaction, ...]:
    """All redactions. `further`: regular expressions of the stack file."""
    return (*REDACTIONS, *(Redaction(pattern, pattern) for pattern in further))


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
    content = go_yaml(collector_config(settings, tenant), sort_keys=False, width=1000)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "labels": {"app.kubernetes.io/name": CONFIG_MAP}},
        "data": {CONFIG_FILE: content},
    }


def collector_config(settings: LogsSettings, tenant: str) -> Config:
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
