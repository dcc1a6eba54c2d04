"""Authentication of clients: AUTH, HELLO and CLIENT, which the gateway answers itself."""

import hmac
from collections.abc import Callable
from typing import Any

from .passwords import passwords
from .protocol import ReplyError, Status
from .settings import Settings

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
        name, given = command[0].upper(), command[1:]
        if name == b"AUTH":
            if len(given) not in (1, 2):
                return ReplyError("ERR wrong number of arguments for 'auth' command")
            user = given[0] if len(given) == 2 else self._settings.client_username.encode()
            return self._authenticated(user, given[-1])
        if name == b"HELLO":
            return self._hello(given)
        if not self.known:
            return ReplyError("NOAUTH Authentication required.")
        if name == b"CLIENT" and given and given[0].upper() in (b"SETINFO", b"SETNAME"):
            return OK
        return None

    def _hello(self, more: list[bytes]) -> Any:
        if more and more[0] != b"2":
            return ReplyError("NOPROTO redis-gateway speaks version 2 of the protocol only")
        if len(more) >= 4 and more[1].upper() == b"AUTH":
            answer = self._authenticated(more[2], more[3])
            if isinstance(answer, ReplyError):
                return answer
        if not self.known:
            return ReplyError("NOAUTH HELLO must be called with the client already authenticated")
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
            return ReplyError("ERR AUTH called although redis-gateway asks clients for no password")
        right = [hmac.compare_digest(password, one) for one in passwords(self._settings.client_password_file)]
        if user == self._settings.client_username.encode() and any(right):
            self.known = True
            return OK
        self._denied()
        return ReplyError(_WRONG)
