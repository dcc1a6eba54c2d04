"""Settings of logs."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, Strict, WithJsonSchema

from components.network.settings import Egress
from components.operator.settings import ComputeResources
from core.problems import Problem
from core.secrets import FORMATS
from core.types import (
    METADATA_SERVICES,
    CheckedSettings,
    DnsLabel,
    DnsSubdomain,
    Image,
    Memory,
    NonEmptyText,
    Settings,
)

IMAGE = "docker.io/otel/opentelemetry-collector-contrib:0.165.0"

DEFAULT_NAMESPACE = "ray-logs"
"""Namespace of a log store of the stack's own."""

_OF_A_RECEIVER = frozenset({"exporter", "endpoint", "egress", "headers", "ca"})
"""Settings of a receiver that exists."""

_HEADER = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
"""Name of a header of HTTP (RFC 9110, 5.6.2: token)."""

_SECRET_HEADER = re.compile(
    r"authorization|cookie|token|secret|password|credential|(?:api|access)[-_]?key", re.IGNORECASE
)
"""Names of headers whose values are credentials."""

_BEYOND_RE2 = re.compile(r"\(\?(?:<?[=!]|>|\()|\\[1-9]|[*+?}]\+")
"""Parts of Python's regular expressions that those of Go lack: lookaround, back references, possessive quantifiers
(pkg.go.dev/regexp/syntax)."""


def _readable(pattern: str) -> str:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression ({error}): correct it") from None
    if _BEYOND_RE2.search(pattern):
        raise ValueError(
            f"{pattern!r} has lookaround, a back reference or a possessive quantifier, which the collector's regular "
            "expressions (RE2) lack: write it without"
        )
    if compiled.search(""):
        raise ValueError(f"{pattern!r} matches the empty text, so it would mask between all characters: correct it")
    return pattern


def _of_another_machine(endpoint: str) -> str:
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(f"{endpoint!r} has no port between 1 and 65535: correct it") from None
    if port == 0:
        raise ValueError(f"{endpoint!r} has no port between 1 and 65535: correct it")
    if host in ("localhost", *METADATA_SERVICES) or re.match(r"127\.|::1$|0\.0\.0\.0$|::$", host):
        raise ValueError(f"{host} is not the address of a receiver of logs: write it as pods reach it")
    return endpoint


_OF_THE_EXPORTER = ("connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding")


def _further(name: str) -> str:
    if name.lower() in _OF_THE_EXPORTER:
        raise ValueError(f"the exporter sets {name!r} itself: remove it")
    return name


HeaderText = Annotated[str, Field(pattern=r"^[^\x00-\x08\x0a-\x1f\x7f]*$")]
"""A header's text, without characters that end it."""

Pattern = Annotated[str, Field(min_length=1), AfterValidator(_readable), WithJsonSchema({"type": "string"})]
"""A regular expression in the syntax of RE2."""


class SecretKey(Settings):
    """A value in a Secret, which exists in the namespace of each tenant."""

    secret: DnsSubdomain
    """Name of the Secret."""

    key: NonEmptyText
    """Key in it."""


class RotationSettings(Settings):
    """How Ray rotates its log files."""

    size: Memory = "64Mi"
    """Size from which Ray begins another file."""

    files: Annotated[int, Strict(), Field(ge=1, le=100)] = 2
    """Number of older files that are kept of each log."""


class LogStoreSettings(Settings):
    """A log store of the stack's own, and for each tenant a proxy to it that writes and shows the tenant's logs
    alone."""

    image: Image = "docker.io/victoriametrics/victoria-logs:v1.52.1"
    """Image of VictoriaLogs."""

    proxy_image: Image = "docker.io/victoriametrics/vmauth:v1.151.0"
    """Image of the tenants' proxies, vmauth."""

    resources: ComputeResources = ComputeResources(cpu="500m", memory="1Gi")
    """CPU request and memory of VictoriaLogs. Its memory follows what queries read."""

    storage: Memory = "20Gi"
    """Size of its volume, of which logs fill four fifths at most. A change replaces the StatefulSet; an existing volume
    keeps its size, so enlarge its claim first."""

    storage_class_name: DnsSubdomain | None = None
    """StorageClass of the volume. Default: the cluster's default one."""

    retention_days: Annotated[int, Strict(), Field(ge=1, le=3650)] = 30
    """Days after which logs are deleted."""


class LogsSettings(CheckedSettings):
    """Ray's log files in a log store, where they outlive their pods: one that exists, or one of the stack's own.

    In each pod of Ray an OpenTelemetry Collector reads them, masks secrets and sends the rest. Default: none, and the
    files end with their pods.
    """

    mode: Literal["existing", "install"] = "existing"
    """`existing`: the receiver at `endpoint`. `install`: a log store of the stack's own, where each tenant reads its
    logs."""

    store: LogStoreSettings | None = None
    """The log store of mode `install`. Default: with the defaults below."""

    namespace: DnsLabel | None = None
    """Namespace of the log store of mode `install`, which the stack creates. Default: `ray-logs`."""

    exporter: Literal["otlp", "loki", "elasticsearch"] = "otlp"
    """`otlp`: any receiver of OTLP over HTTP, such as a collector of yours. `loki`: Loki 3, which receives OTLP below
    `/otlp`. `elasticsearch`: Elasticsearch or OpenSearch by its bulk API."""

    endpoint: Annotated[
        str, Field(pattern=r"^https?://[A-Za-z0-9.\[\]:_-]+(/[^\s?#]*)?$"), AfterValidator(_of_another_machine)
    ] = ""
    """Address of the receiver, without the path that the exporter adds: `http://loki.loki.svc:3100`. Required with mode
    `existing`."""

    egress: tuple[Egress, ...] = ()
    """Where the collectors may connect to: the receiver, by namespace or address, with the ports of its pods. As a
    tenant's `network.egress`. Required with mode `existing` unless NetworkPolicies are off."""

    headers: dict[Annotated[str, Field(pattern=f"^{_HEADER}$"), AfterValidator(_further)], HeaderText | SecretKey] = (
        Field(default_factory=dict)
    )
    """Headers of each request: texts, and credentials as `{secret: NAME, key: KEY}`."""

    ca: SecretKey | None = None
    """Certificate authority of the receiver, if it is not a public one."""

    redact: tuple[Pattern, ...] = ()
    """Further texts to mask, as regular expressions (RE2). Known secrets are masked anyway: see docs/logs.md."""

    events: bool = False
    """True: Ray also writes its export events (submissions of jobs, tasks, actors, nodes), which are sent as logs.
    Ray 2.60 writes them; it changes the environment of all pods."""

    rotation: RotationSettings | None = None
    """How Ray rotates its log files. Default: Ray's own, 5 older files of 512Mi for each log."""

    tenants: tuple[DnsLabel, ...] = ()
    """Tenants whose pods have the collector, by name. Default: all."""

    image: Image = IMAGE
    """Image of the collector. It needs the components of `opentelemetry-collector-contrib`."""

    resources: ComputeResources = ComputeResources(cpu="100m", memory="256Mi")
    """CPU and memory of each collector. They count in each pod of Ray, and so in quotas and plans."""

    @property
    def installed(self) -> LogStoreSettings | None:
        """The log store of the stack's own; None: the receiver exists."""
        return (self.store or LogStoreSettings()) if self.mode == "install" else None

    @property
    def own_namespace(self) -> str | None:
        """The namespace that the stack creates for its log store; None: the receiver exists."""
        return (self.namespace or DEFAULT_NAMESPACE) if self.mode == "install" else None

    def problems(self) -> Iterator[Problem]:
        if self.mode == "install":
            for field in sorted(_OF_A_RECEIVER & self.model_fields_set):
                message = "is for a receiver that exists, and mode is install: remove it, or set mode to existing"
                yield Problem((field,), None, message, "logs-mode")
            return
        for field in sorted({"store", "namespace"} & self.model_fields_set):
            message = "is for a log store of the stack's own, and mode is existing: set mode to install, or remove it"
            yield Problem((field,), None, message, "logs-mode")
        if not self.endpoint:
            message = "needs endpoint, the address of the receiver, or mode: install for a log store of the stack's own"
            yield Problem((), None, message, "logs-mode")
        yield from _credentials(self.headers)
        if self.ca and self.endpoint and not self.endpoint.startswith("https:"):
            message = "the endpoint is not https, so there is no certificate to verify: remove ca, or use https"
            yield Problem(("ca",), None, message, "logs-tls")


def _credentials(headers: Mapping[str, str | SecretKey]) -> Iterator[Problem]:
    """Headers with a credential in plain text. The problems do not contain it."""
    for name, value in headers.items():
        if isinstance(value, str) and (
            _SECRET_HEADER.search(name) or any(re.search(pattern, value) for pattern in FORMATS.values())
        ):
            message = (
                f"{name!r} is a credential, and a stack file is plain text: keep it in a Secret of each tenant's "
                "namespace, and set {secret: NAME, key: KEY}"
            )
            yield Problem(("headers", name), None, message, "plaintext-secret")
