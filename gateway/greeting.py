"""Authentication of clients: AUTH, HELLO and CLIENT, which the gateway answers itself."""

import hmac
from collections.abc import Callable
from typing import Any

import hiredis

from gateway.passwords import passwords
from gateway.protocol import Status
from gateway.settings import Settings

OK = Status("OK")

_WRONG = "WRONGPASS invalid username-password pair or user is disabled."


class Greeting:
    """The authentication of one client."""

    def __init__(self, settings: Settings, denied: Callable[[], None]) -> None:
        self._settings = settings
        self._denied = denied
        self.known = settings.client_password_file is None
        """Whether the client may send commands."""

    def answer(self, command: list[bytes]) -> Any:
        """The answer to a command that the gateway answers itself; None if the master answers it."""
        match [command[0].upper(), *command[1:]]:
            case [b"AUTH", password]:
                return self._authenticated(self._settings.client_username.encode(), password)
            case [b"AUTH", user, password]:
                return self._authenticated(user, password)
            case [b"AUTH", *_]:
                return hiredis.ReplyError("ERR wrong number of arguments for 'auth' command")
            case [b"HELLO", *more]:
                return self._hello(more)
            case _ if not self.known:
                return hiredis.ReplyError("NOAUTH Authentication required.")
            case [b"CLIENT", what, *_] if what.upper() in (b"SETINFO", b"SETNAME"):
                return OK
        return None

    def _hello(self, more: list[bytes]) -> Any:
        if more and more[0] != b"2":
            return hiredis.ReplyError("NOPROTO redis-gateway speaks version 2 of the protocol only")
        match more[1:]:
            case [auth, user, password, *_] if auth.upper() == b"AUTH":
                answer = self._authenticated(user, password)
                if isinstance(answer, hiredis.ReplyError):
                    return answer
        if not self.known:
            return hiredis.ReplyError("NOAUTH HELLO must be called with the client already authenticated")
        properties = {
            b"server": b"redis",
            b"version": b"7.0.0",
            b"proto": 2,
            b"mode": b"standalone",
            b"role": b"master",
        }
        return [part for pair in properties.items() for part in pair] + [b"modules", []]

    def _authenticated(self, user: bytes, password: bytes) -> Any:
        if self._settings.client_password_file is None:
            return hiredis.ReplyError("ERR AUTH called although redis-gateway asks clients for no password")
        right = [hmac.compare_digest(password, one) for one in passwords(self._settings.client_password_file)]
        if user == self._settings.client_username.encode() and any(right):
            self.known = True
            return OK
        self._denied()
        return hiredis.ReplyError(_WRONG)
