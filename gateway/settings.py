"""Settings of the gateway: environment variables with the prefix `REDIS_GATEWAY_`."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

PREFIX = "REDIS_GATEWAY_"

SERVICE_LINKS = (f"{PREFIX}SERVICE_", f"{PREFIX}PORT")
"""Prefixes of variables that Kubernetes sets in all pods of a namespace with a Service `redis-gateway`."""

JOURNAL_SECONDS = 600
"""How long a journal outlives its last write. No command is held or kept for so long, so the journal still exists."""

LONGEST_HOLD = JOURNAL_SECONDS // 2


class Address(NamedTuple):
    """Host and port of a listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class SettingsError(Exception):
    """The environment is not valid; the text names each variable, what is wrong and what is allowed."""


def _address(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    host, colon, port = value.strip().rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{value!r} is not HOST:PORT, for example redis-0.redis:6379, with a port from 1 to 65535")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def _addresses(value: Any) -> Any:
    return tuple(_address(part) for part in value.split(",") if part.strip()) if isinstance(value, str) else value


OneAddress = Annotated[Address, BeforeValidator(_address)]
Addresses = Annotated[tuple[Address, ...], BeforeValidator(_addresses)]


class Settings(BaseModel):
    """Settings of the gateway. Durations are in seconds, sizes in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    listen: OneAddress = Address("127.0.0.1", 6399)
    """Address for Redis clients. Not port 6379 in the pod of a Ray head: the GCS listens there."""

    http_listen: OneAddress = Address("0.0.0.0", 9399)  # noqa: S104 - the kubelet and Prometheus come from outside the pod
    """Address of `/livez`, `/readyz` and `/metrics`."""

    sentinels: Addresses = ()
    """All Sentinels, HOST:PORT separated by commas. The gateway asks them for the master, and subscribes to changes."""

    master_name: str = Field(default="mymaster", min_length=1)
    """Name of the master in the configuration of the Sentinels."""

    redis: Addresses = ()
    """The Redis nodes, instead of Sentinels. The gateway uses the node that reports the role of master."""

    redis_username: str = "default"
    """User for the nodes."""

    redis_password_file: Path | None = None
    """File with the password for the nodes, read again for each connection. Several, one per line, the newest first,
    are tried in turn. None: they require none."""

    sentinel_username: str = "default"
    """User for the Sentinels."""

    sentinel_password_file: Path | None = None
    """File with the password for the Sentinels, as `redis_password_file`. None: they require none."""

    client_username: str = "default"
    """User name of clients; a client that sends only a password has this one."""

    client_password_file: Path | None = None
    """File with the passwords of clients, one per line, read again for each login. None: clients need none."""

    tls_ca_file: Path | None = None
    """CA of the certificates of nodes and Sentinels. If set, connections to them use TLS only."""

    tls_cert_file: Path | None = None
    """Client certificate for nodes and Sentinels, with `tls_key_file`."""

    tls_key_file: Path | None = None
    """Its key."""

    listen_tls_cert_file: Path | None = None
    """Server certificate for clients, with `listen_tls_key_file`. If set, clients must use TLS."""

    listen_tls_key_file: Path | None = None
    """Its key."""

    listen_tls_ca_file: Path | None = None
    """CA of client certificates. If set, clients must present one."""

    journal_prefix: str = Field(default="redis-gateway:", min_length=1, pattern="^[!-~]+$")
    """Prefix of the keys of journals. If several users share a Redis, only this user may write to it."""

    wait_replicas: int = Field(default=1, ge=0, le=16)
    """How many replicas must have a write before the client gets the answer (WAIT of Redis). 0: none."""

    wait_seconds: float = Field(default=1, gt=0, le=60)
    """How long one WAIT lasts before `unreplicated` decides."""

    unreplicated: Literal["hold", "answer"] = "hold"
    """Handling of a write that too few replicas have in time. `hold` continues to wait, up to `hold_seconds`: no
    acknowledged write is lost while replicas are missing. `answer` answers anyway, and counts it in a metric."""

    hold_seconds: float = Field(default=60, gt=0, le=LONGEST_HOLD)
    """How long a command is held while there is no master. After that the client gets an error."""

    reply_seconds: float = Field(default=5, gt=0, le=60)
    """How long a node may leave commands unanswered before the gateway closes the connection."""

    connect_seconds: float = Field(default=1, gt=0, le=30)
    """Timeout for connecting to a node or Sentinel, and for one answer of a Sentinel."""

    poll_seconds: float = Field(default=5, gt=0, le=60)
    """Interval of asking Sentinels without a notification."""

    max_clients: int = Field(default=64, ge=1, le=10_000)
    """Maximum number of connected clients."""

    max_held_bytes: int = Field(default=16 << 20, ge=1 << 10)
    """Maximum size of the unanswered commands of one client. Beyond it the gateway stops reading from the client."""

    max_command_bytes: int = Field(default=512 << 20, ge=1 << 10, le=512 << 20)
    """Largest command; 512 MiB is the limit of Redis. Ray stores a package of a runtime environment in one value."""

    drain_seconds: float = Field(default=25, ge=0)
    """How long clients may stay after SIGTERM. Less than terminationGracePeriodSeconds of the pod (30 if not set)."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of log lines."""

    @model_validator(mode="after")
    def _one_way_to_the_master(self) -> Self:
        if bool(self.sentinels) == bool(self.redis):
            which = "both" if self.redis else "neither"
            raise ValueError(f"{which} of {PREFIX}SENTINELS and {PREFIX}REDIS is set: set one of them")
        if self.wait_seconds >= self.reply_seconds:
            wait, reply = _variable("wait_seconds"), _variable("reply_seconds")
            raise ValueError(f"{wait} is {self.wait_seconds:g}: it has to be less than {reply}, {self.reply_seconds:g}")
        for first, second in (("tls_cert_file", "tls_key_file"), ("listen_tls_cert_file", "listen_tls_key_file")):
            if bool(getattr(self, first)) != bool(getattr(self, second)):
                raise ValueError(f"{_variable(first)} and {_variable(second)} belong together: set both or none")
        if self.tls_cert_file and not self.tls_ca_file:
            raise ValueError(f"{_variable('tls_cert_file')} without {_variable('tls_ca_file')}: set the authority too")
        if self.listen_tls_ca_file and not self.listen_tls_cert_file:
            raise ValueError(f"{_variable('listen_tls_ca_file')} needs {_variable('listen_tls_cert_file')}")
        return self

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """The settings in an environment.

        Raises:
            SettingsError: A variable is unknown or not valid, or its file cannot be read.
        """
        # A manifest has `value: ""` for an optional variable without a value: it is not set.
        values = {
            name.removeprefix(PREFIX).lower(): text
            for name, text in environment.items()
            if name.startswith(PREFIX) and text and not name.startswith(SERVICE_LINKS)
        }
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError("; ".join(_message(problem) for problem in error.errors())) from None
        for name in cls.model_fields:
            file = getattr(settings, name)
            if isinstance(file, Path):
                _readable(name, file)
        return settings

    def upstream_tls(self) -> ssl.SSLContext | None:
        """TLS context for nodes and Sentinels; created for each connection, so that it has renewed certificates."""
        if self.tls_ca_file is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.tls_ca_file)
        if self.tls_cert_file and self.tls_key_file:
            context.load_cert_chain(self.tls_cert_file, self.tls_key_file)
        return context

    def listen_tls(self) -> ssl.SSLContext | None:
        """TLS context for clients."""
        if self.listen_tls_cert_file is None or self.listen_tls_key_file is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.listen_tls_ca_file)
        context.load_cert_chain(self.listen_tls_cert_file, self.listen_tls_key_file)
        if self.listen_tls_ca_file:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _variable(field: str) -> str:
    return PREFIX + field.upper()


def _message(problem: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        known = ", ".join(sorted(_variable(name) for name in Settings.model_fields))
        return f"{_variable(where)}: there is no such setting; there are {known}"
    text = str(problem["msg"]).removeprefix("Value error, ")
    return f"{_variable(where)}: {text}" if where else text


def _readable(name: str, file: Path) -> None:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise SettingsError(f"{_variable(name)}: {file} cannot be read: {error.strerror}") from None
    if name.endswith("password_file") and not text.strip():
        raise SettingsError(f"{_variable(name)}: {file} is empty; write the password into it, or unset the variable")
