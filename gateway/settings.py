"""What the gateway is told: environment variables, all with the prefix `REDIS_GATEWAY_`."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

PREFIX = "REDIS_GATEWAY_"

SERVICE_LINKS = (f"{PREFIX}SERVICE_", f"{PREFIX}PORT")
"""Kubernetes sets such variables in all pods of a namespace that has a Service `redis-gateway`."""

JOURNAL_SECONDS = 600
"""How long a journal outlives its last write. Nothing is held or kept for so long, so no journal is missed."""

LONGEST_HOLD = JOURNAL_SECONDS // 2


class Address(NamedTuple):
    """Where something listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class SettingsError(Exception):
    """The environment does not say how to run; the text names each variable, what is wrong and what is allowed."""


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
    """How to run. Durations in seconds, sizes in bytes unless the name says otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    listen: OneAddress = Address("127.0.0.1", 6399)
    """Where Redis clients connect. Not port 6379 beside a Ray head: that is the head's own GCS."""

    http_listen: OneAddress = Address("0.0.0.0", 9399)  # noqa: S104 - the kubelet and Prometheus come from outside the pod
    """Where `/livez`, `/readyz` and `/metrics` are."""

    sentinels: Addresses = ()
    """All Sentinels, HOST:PORT separated by commas. They are asked for the master and listened to."""

    master_name: str = Field(default="mymaster", min_length=1)
    """What the Sentinels call the master."""

    redis: Addresses = ()
    """Instead of Sentinels: the nodes themselves. The one that says it is the master is used."""

    redis_username: str = "default"
    """User for the nodes."""

    redis_password_file: Path | None = None
    """File with the password for the nodes, read again for each connection. Several, one per line, the newest first,
    are tried in turn. None: they ask for none."""

    sentinel_username: str = "default"
    """User for the Sentinels."""

    sentinel_password_file: Path | None = None
    """File with the password for the Sentinels, as `redis_password_file`. None: they ask for none."""

    client_username: str = "default"
    """User that clients say; a client that says only a password means this one."""

    client_password_file: Path | None = None
    """File with the passwords that clients may say, one per line, read again for each. None: clients need none."""

    tls_ca_file: Path | None = None
    """Authority of the nodes' and Sentinels' certificates. Set: they are reached with TLS, and only so."""

    tls_cert_file: Path | None = None
    """Certificate to show to nodes and Sentinels, with `tls_key_file`."""

    tls_key_file: Path | None = None
    """Its key."""

    listen_tls_cert_file: Path | None = None
    """Certificate to show to clients, with `listen_tls_key_file`. Set: clients have to use TLS."""

    listen_tls_key_file: Path | None = None
    """Its key."""

    listen_tls_ca_file: Path | None = None
    """Authority of the clients' certificates. Set: a client has to show one."""

    journal_prefix: str = Field(default="redis-gateway:", min_length=1, pattern="^[!-~]+$")
    """What the keys of the journals begin with: where several users share a Redis, one that only this one may write."""

    wait_replicas: int = Field(default=1, ge=0, le=16)
    """How many replicas must have a write before the client is told that it is done (Redis' WAIT). 0: none."""

    wait_seconds: float = Field(default=1, gt=0, le=60)
    """How long one WAIT lasts before `unreplicated` decides."""

    unreplicated: Literal["hold", "answer"] = "hold"
    """What happens to a write that too few replicas have in time: `hold` goes on waiting, up to `hold_seconds`, so that
    no acknowledged write is lost while replicas are missing; `answer` answers all the same, and counts it."""

    hold_seconds: float = Field(default=60, gt=0, le=LONGEST_HOLD)
    """How long a command is held when there is no master. Then the client gets an error."""

    reply_seconds: float = Field(default=5, gt=0, le=60)
    """How long a node may be silent with commands unanswered before the connection to it is given up."""

    connect_seconds: float = Field(default=1, gt=0, le=30)
    """How long connecting to a node or a Sentinel, or one answer of a Sentinel, may take."""

    poll_seconds: float = Field(default=5, gt=0, le=60)
    """How often Sentinels are asked although nothing happened."""

    max_clients: int = Field(default=64, ge=1, le=10_000)
    """How many clients may be connected."""

    max_held_bytes: int = Field(default=16 << 20, ge=1 << 10)
    """How much of one client's unanswered commands is kept. Beyond it the gateway stops reading from that client."""

    max_command_bytes: int = Field(default=512 << 20, ge=1 << 10, le=512 << 20)
    """The greatest command; 512 MiB is Redis' own limit. Ray keeps runtime environments' packages in single values."""

    drain_seconds: float = Field(default=25, ge=0)
    """How long clients may stay after SIGTERM. Less than the pod's terminationGracePeriodSeconds (30 if not set)."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """From which level on there are log lines."""

    @model_validator(mode="after")
    def _one_way_to_the_master(self) -> Self:
        if bool(self.sentinels) == bool(self.redis):
            said = "both" if self.redis else "neither"
            raise ValueError(f"{said} of {PREFIX}SENTINELS and {PREFIX}REDIS is set: set one of them")
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
        """The settings that an environment says.

        Raises:
            SettingsError: A variable is unknown or wrong, or a file that it names cannot be read.
        """
        # `value: ""` is what is left of an optional variable in a manifest: it is not set.
        said = {
            name.removeprefix(PREFIX).lower(): text
            for name, text in environment.items()
            if name.startswith(PREFIX) and text and not name.startswith(SERVICE_LINKS)
        }
        try:
            settings = cls.model_validate(said)
        except ValidationError as error:
            raise SettingsError("; ".join(_told(problem) for problem in error.errors())) from None
        for name in cls.model_fields:
            file = getattr(settings, name)
            if isinstance(file, Path):
                _readable(name, file)
        return settings

    def upstream_tls(self) -> ssl.SSLContext | None:
        """How to speak to nodes and Sentinels; made for each connection, so that renewed certificates are taken."""
        if self.tls_ca_file is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.tls_ca_file)
        if self.tls_cert_file and self.tls_key_file:
            context.load_cert_chain(self.tls_cert_file, self.tls_key_file)
        return context

    def listen_tls(self) -> ssl.SSLContext | None:
        """How clients are spoken to."""
        if self.listen_tls_cert_file is None or self.listen_tls_key_file is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.listen_tls_ca_file)
        context.load_cert_chain(self.listen_tls_cert_file, self.listen_tls_key_file)
        if self.listen_tls_ca_file:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def secrets(file: Path | None) -> tuple[str, ...]:
    """The passwords in a file, one per line. Read when needed: a Secret's volume changes while the gateway runs."""
    return tuple(line for line in file.read_text().splitlines() if line) if file else ()


def _variable(field: str) -> str:
    return PREFIX + field.upper()


def _told(problem: Mapping[str, Any]) -> str:
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
