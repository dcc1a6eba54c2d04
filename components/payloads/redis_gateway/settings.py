"""Settings of the gateway: environment variables with the prefix `REDIS_GATEWAY_`."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

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


_LISTEN = Address("127.0.0.1", 6399)

_HTTP_LISTEN = Address("0.0.0.0", 9399)  # noqa: S104 - the kubelet and Prometheus come from outside the pod


class SettingsError(Exception):
    """The environment is not valid; the text names each variable, what is wrong and what is allowed."""


@dataclass(frozen=True)
class Settings:
    """Settings of the gateway. Durations are in seconds, sizes in bytes."""

    listen: Address = _LISTEN
    """Address for Redis clients. Not port 6379 in the pod of a Ray head: the GCS listens there."""

    http_listen: Address = _HTTP_LISTEN
    """Address of `/livez`, `/readyz` and `/metrics`."""

    sentinels: tuple[Address, ...] = ()
    """All Sentinels, HOST:PORT separated by commas. The gateway asks them for the master, and subscribes to changes."""

    master_name: str = "mymaster"
    """Name of the master in the configuration of the Sentinels."""

    redis: tuple[Address, ...] = ()
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

    journal_prefix: str = "redis-gateway:"
    """Prefix of the keys of journals. If several users share a Redis, only this user may write to it."""

    wait_replicas: int = 1
    """How many replicas must have a write before the client gets the answer (WAIT of Redis). 0: none."""

    wait_seconds: float = 1
    """How long one WAIT lasts before `unreplicated` decides."""

    unreplicated: str = "hold"
    """Handling of a write that too few replicas have in time. `hold` continues to wait, up to `hold_seconds`: no
    acknowledged write is lost while replicas are missing. `answer` answers anyway, and counts it in a metric."""

    hold_seconds: float = 60
    """How long a command is held while there is no master. After that the client gets an error."""

    reply_seconds: float = 5
    """How long a node may leave commands unanswered before the gateway closes the connection."""

    connect_seconds: float = 1
    """Timeout for connecting to a node or Sentinel, and for one answer of a Sentinel."""

    poll_seconds: float = 5
    """Interval of asking Sentinels without a notification."""

    max_clients: int = 64
    """Maximum number of connected clients."""

    max_held_bytes: int = 16 << 20
    """Maximum size of the unanswered commands of one client. Beyond it the gateway stops reading from the client."""

    max_command_bytes: int = 512 << 20
    """Largest command; 512 MiB is the limit of Redis. Ray stores a package of a runtime environment in one value."""

    drain_seconds: float = 25
    """How long clients may stay after SIGTERM. Less than terminationGracePeriodSeconds of the pod (30 if not set)."""

    log_level: str = "info"
    """Lowest level of log lines."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Settings:
        """The settings in an environment.

        Raises:
            SettingsError: A variable is unknown or not valid, or its file cannot be read.
        """
        # A manifest has `value: ""` for an optional variable without a value: it is not set.
        texts = {
            name[len(PREFIX) :].lower(): text
            for name, text in environment.items()
            if name.startswith(PREFIX) and text and not name.startswith(SERVICE_LINKS)
        }
        known = [field.name for field in fields(cls)]
        if unknown := sorted(texts.keys() - set(known)):
            there = ", ".join(sorted(map(_variable, known)))
            raise SettingsError(f"{_variable(unknown[0])}: there is no such setting; there are {there}")
        settings = cls(**{name: _value(name, text) for name, text in texts.items()})
        settings._check()
        return settings

    def _check(self) -> None:
        """Raises SettingsError for values that do not fit each other, and for files that cannot be read."""
        if bool(self.sentinels) == bool(self.redis):
            which = "both" if self.redis else "neither"
            raise SettingsError(f"{which} of {PREFIX}SENTINELS and {PREFIX}REDIS is set: set one of them")
        if self.wait_seconds >= self.reply_seconds:
            wait, reply = _variable("wait_seconds"), _variable("reply_seconds")
            raise SettingsError(
                f"{wait} is {self.wait_seconds:g}: it has to be less than {reply}, {self.reply_seconds:g}"
            )
        for field in fields(self):
            file = getattr(self, field.name)
            if isinstance(file, Path):
                _readable(field.name, file)

    def upstream_tls(self) -> ssl.SSLContext | None:
        """TLS context for nodes and Sentinels; created for each connection, so that it has renewed certificates."""
        if self.tls_ca_file is None:
            return None
        return ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.tls_ca_file)


def _variable(field: str) -> str:
    return PREFIX + field.upper()


def _value(name: str, text: str) -> Any:
    try:
        return _READ[name](text)
    except ValueError as error:
        raise SettingsError(f"{_variable(name)}: {error}") from None


def _address(text: str) -> Address:
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not HOST:PORT, for example redis-0.redis:6379, with a port from 1 to 65535")
    return Address(host[1:-1] if host.startswith("[") and host.endswith("]") else host, int(port))


def _addresses(text: str) -> tuple[Address, ...]:
    return tuple(_address(part) for part in text.split(",") if part.strip())


def _number(kind: type[int] | type[float], least: float, most: float) -> Callable[[str], float]:
    """Reads a number from `least` to `most`."""

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(-1)
        if not least <= number <= most:
            whole = "whole number" if kind is int else "number"
            raise ValueError(f"{text!r} is not a {whole} from {least:g} to {most:g}")
        return number

    return read


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{text!r} is not one of {', '.join(allowed)}")
        return text

    return read


def _prefix(text: str) -> str:
    if not all("!" <= each <= "~" for each in text):
        raise ValueError(f"{text!r} has characters that are not printable ASCII")
    return text


_LEAST_SECONDS = 0.001

_READ: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("listen", "http_listen"), _address),
    **dict.fromkeys(("sentinels", "redis"), _addresses),
    **dict.fromkeys(("master_name", "redis_username", "sentinel_username", "client_username"), str),
    **{field.name: Path for field in fields(Settings) if field.name.endswith("_file")},
    "journal_prefix": _prefix,
    "wait_replicas": _number(int, 0, 16),
    "wait_seconds": _number(float, _LEAST_SECONDS, 60),
    "unreplicated": _one_of("hold", "answer"),
    "hold_seconds": _number(float, _LEAST_SECONDS, LONGEST_HOLD),
    "reply_seconds": _number(float, _LEAST_SECONDS, 60),
    "connect_seconds": _number(float, _LEAST_SECONDS, 30),
    "poll_seconds": _number(float, _LEAST_SECONDS, 60),
    "max_clients": _number(int, 1, 10_000),
    "max_held_bytes": _number(int, 1 << 10, 1 << 40),
    "max_command_bytes": _number(int, 1 << 10, 512 << 20),
    "drain_seconds": _number(float, 0, 86_400),
    "log_level": _one_of("debug", "info", "warning", "error"),
}
"""How the value of each setting is read from its variable, with its bounds. Each raises ValueError."""


def _readable(name: str, file: Path) -> None:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise SettingsError(f"{_variable(name)}: {file} cannot be read: {error.strerror}") from None
    if name.endswith("password_file") and not text.strip():
        raise SettingsError(f"{_variable(name)}: {file} is empty; write the password into it, or unset the variable")
