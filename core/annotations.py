"""Annotations that GitHub shows in a pull request."""

from collections.abc import Mapping


def annotation(level: str, places: Mapping[str, str | int | None], text: str) -> str:
    """A workflow command (docs.github.com, Workflow commands: setting an error message).

    `level`: `error`, `warning` or `notice`. `places`: the command's properties, such as `file` and `line`.
    """
    properties = ",".join(f"{key}={_property(str(value))}" for key, value in places.items() if value is not None)
    return f"::{level} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
