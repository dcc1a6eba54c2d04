"""Options of Serve itself in a Serve config, and the base of all parts of one. `serve_config` has the applications."""

import difflib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

from core.problems import UNKNOWN_FIELD, Problem, Problems
from core.suggestions import keys_meant

Whole = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)]
Amount = Annotated[float, Field(ge=0, le=2**53)]
PositiveAmount = Annotated[float, Field(gt=0, le=2**53)]
Port = Annotated[int, Strict(), Field(ge=1, le=65535)]

_LONGEST_KEY = 100

LogAttribute = Literal[
    "args",
    "asctime",
    "created",
    "exc_info",
    "exc_text",
    "filename",
    "funcName",
    "levelname",
    "levelno",
    "lineno",
    "message",
    "module",
    "msecs",
    "msg",
    "name",
    "pathname",
    "process",
    "processName",
    "relativeCreated",
    "stack_info",
    "taskName",
    "thread",
    "threadName",
]
"""Attributes of Python's log records (ray, python/ray/_common/logging_constants.py: LOGRECORD_STANDARD_ATTRS)."""


class ServeModel(BaseModel):
    """Base of the parts of a Serve config: Ray's spelling, and keys of later versions of Ray.

    Ray ignores unknown keys. So a key that resembles a known one is refused, because it is misspelt.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, value: Any) -> Any:
        known = list(cls.model_fields)
        problems = []
        for key in value if isinstance(value, dict) else ():
            near = None if key in known or not isinstance(key, str) else _meant(key, known)
            if near:
                message = f"Ray would ignore key {key!r}: did you mean {near!r}? Known keys: {', '.join(known)}"
                problems.append(Problem((key,), None, message, UNKNOWN_FIELD))
        if problems:
            raise Problems(problems)
        return value


def _meant(key: str, known: list[str]) -> str | None:
    near = keys_meant(key, known) or difflib.get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.8)
    return near[0] if near else None


class ServeLoggingSettings(ServeModel):
    """The logs of Serve."""

    encoding: Literal["TEXT", "JSON"] = "TEXT"
    """Their format."""

    log_level: Literal["DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL", "NOTSET"] = "INFO"
    """Lowest level that is logged."""

    logs_dir: str | None = None
    """Folder of the logs. Default: that of Ray's session."""

    enable_access_log: bool = True
    """Whether each request is logged."""

    additional_log_standard_attrs: tuple[LogAttribute, ...] = ()
    """Further attributes of Python's log records."""


class HttpOptionsSettings(ServeModel):
    """The HTTP proxies. Serve reads these when it starts: a change needs another cluster."""

    host: str = "0.0.0.0"  # noqa: S104 (Ray's default; a Service and NetworkPolicies protect it)
    """Address that they listen on."""

    port: Port = 8000
    """Port that they listen on. It has to be the port `serve` of the head's container."""

    root_path: str = ""
    """Path that a proxy before Serve removes from requests."""

    request_timeout_s: PositiveAmount | None = None
    """Seconds after which a request fails. Default: none."""

    keep_alive_timeout_s: Whole = 5
    """Seconds for which idle connections stay open."""

    ssl_keyfile: str | None = None
    """Path of a private key in the pods, for HTTPS."""

    ssl_certfile: str | None = None
    """Path of its certificate."""

    ssl_keyfile_password: str | None = None
    """Password of the private key."""

    ssl_ca_certs: str | None = None
    """Path of the certificates of authorities, to verify clients."""


class GrpcOptionsSettings(ServeModel):
    """The gRPC proxies."""

    port: Port = 9000
    """Port that they listen on."""

    grpc_servicer_functions: tuple[str, ...] = ()
    """Import paths of the functions `add_..._servicer_to_server`. Default: none, so there is no gRPC."""

    request_timeout_s: PositiveAmount | None = None
    """Seconds after which a request fails. Default: none."""

    enable_reflection: bool = True
    """Whether clients may list the services."""


class TracingSettings(ServeModel):
    """Traces of requests."""

    enabled: bool = False
    """Whether they are exported."""

    exporter_import_path: str = ""
    """Import path of the exporter. Default: into files."""

    sampling_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of the requests."""
