"""The findings on a pod template, and the checks that many fields share. Each names its Kubernetes counterpart."""

import difflib
import re
from collections.abc import Collection, Iterator
from typing import Any

from core.body import Body
from core.problems import Path, Problem, shown
from kuberay import formats
from kuberay.rules import Found, problem

MODES = 0o777
"""The largest mode of a file (validation.go: fileModeErrorMsg)."""

_PORT_NAME = re.compile(r"[-a-z0-9]+")
_CONFIG_MAP_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_LARGEST_ID = 2**31 - 1


def missing(path: Path, hint: str = "add it") -> Problem:
    """A required field that is missing or empty."""
    return problem("pod-field-missing", path, None, f"{path[-1]!r} is missing: {hint}")


def wrong(path: Path, value: Any, allowed: str) -> Problem:
    """A value that the API server does not accept. `allowed`: what to write instead."""
    return problem("pod-value", path, value, f"{shown(value)} is not accepted by the API server: {allowed}")


def absent(path: Path, name: str, what: str, known: Collection[str]) -> Problem:
    """A reference to a part of the pod that does not exist."""
    like = difflib.get_close_matches(name, known, 1)
    remedy = f"did you mean {like[0]!r}?" if like else "add it"
    return problem("pod-reference", path, name, f"the pod has no {what} {name!r}: {remedy}")


def repeated(path: Path, value: Any, what: str) -> Problem:
    """A value that has to be unique."""
    return problem("pod-duplicate", path, value, f"{what} {shown(value)} is not unique: remove it, or set another")


def conflict(path: Path, value: Any, message: str) -> Problem:
    """Fields that exclude each other."""
    return problem("pod-conflict", path, value, message)


def required(body: Body, path: Path, *keys: str) -> Found:
    """Fields that must not be empty."""
    for key in keys:
        if not body.get(key):
            yield missing((*path, key))


def one_of(body: Body, path: Path, key: str, allowed: Collection[str], empty: bool = True) -> Found:
    """A field with few allowed values. `empty`: whether the API server defaults the empty text."""
    value = body.get(key)
    if value is not None and value not in allowed and not (empty and value == ""):
        yield wrong((*path, key), value, f"use {' or '.join(sorted(each for each in allowed if each))}")


def within(body: Body, path: Path, key: str, least: int, most: int) -> Found:
    """A number with bounds."""
    value = body.get(key)
    if value is not None and not least <= value <= most:
        yield wrong((*path, key), value, f"give a number from {least} to {most}")


def not_negative(body: Body, path: Path, *keys: str) -> Found:
    """ValidateNonnegativeField."""
    for key in keys:
        if body.get(key, 0) < 0:
            yield wrong((*path, key), body[key], "give 0 or more")


def mode(body: Body, path: Path, key: str) -> Found:
    """The mode of files. YAML 1.2 reads `0400` as four hundred, which is often the reason."""
    value = body.get(key)
    if value is not None and not 0 <= value <= MODES:
        yield wrong((*path, key), value, "give a mode from 0 to 511, which is 0o777; in octal it begins with 0o")


def dns_label(text: str, path: Path) -> Found:
    """ValidateDNS1123Label."""
    if not formats.is_dns_1123_label(text):
        yield wrong(path, text, "use at most 63 lower-case letters, digits and hyphens, no hyphen at an end")


def dns_subdomain(text: str, path: Path) -> Found:
    """IsDNS1123Subdomain, the syntax of most names of objects."""
    if not formats.is_dns_subdomain(text):
        yield wrong(
            path, text, "use at most 253 lower-case letters, digits, hyphens and dots, a letter or digit at ends"
        )


def label_name(text: str, path: Path) -> Found:
    """ValidateLabelName, ValidateQualifiedName."""
    if not formats.is_qualified_name(text):
        yield wrong(path, text, "use letters, digits and -_. after an optional DNS prefix and /")


def label_value(text: str, path: Path) -> Found:
    """IsValidLabelValue."""
    if not formats.is_label_value(text):
        yield wrong(path, text, "use at most 63 letters, digits and -_., but no -_. at an end")


def labels(body: Body, path: Path) -> Found:
    """ValidateLabels."""
    for key, value in body.items():
        yield from label_name(key, (*path, key))
        yield from label_value(value, (*path, key))


def selector(body: Body, path: Path) -> Found:
    """ValidateLabelSelector."""
    yield from labels(body.get("matchLabels") or {}, (*path, "matchLabels"))
    for at, expression in items(body, path, "matchExpressions"):
        yield from requirement(expression, at, ("In", "NotIn"), ("Exists", "DoesNotExist"))


def requirement(
    expression: Body, path: Path, some: Collection[str], none: Collection[str], checked: bool = True
) -> Found:
    """ValidateLabelSelectorRequirement. Operators in `some` need values, those in `none` must not have any."""
    operator, values = expression.get("operator"), expression.get("values") or []
    if operator in some and not values:
        yield missing((*path, "values"), f"operator {operator} needs some")
    elif operator in none and values:
        yield conflict((*path, "values"), None, f"operator {operator} has no values: remove them")
    elif operator not in some and operator not in none:
        yield wrong((*path, "operator"), operator, f"use {' or '.join((*some, *none))}")
    yield from label_name(expression.get("key", ""), (*path, "key"))
    for index, value in enumerate(values if checked else ()):
        yield from label_value(value, (*path, "values", index))


def port(value: Any, path: Path) -> Found:
    """ValidatePortNumOrName."""
    if isinstance(value, int):
        if not 1 <= value <= 65535:
            yield wrong(path, value, "give a port from 1 to 65535")
    elif value is None:
        yield missing(path)
    else:
        yield from port_name(value, path)


def port_name(text: str, path: Path) -> Found:
    """IsValidPortName."""
    valid = len(text) <= 15 and _PORT_NAME.fullmatch(text) and re.search("[a-z]", text) and "--" not in text
    if not valid or text[0] == "-" or text[-1] == "-":
        yield wrong(path, text, "use at most 15 lower-case letters, digits and single hyphens, with a letter")


def env_name(text: str, path: Path) -> Found:
    """IsRelaxedEnvVarName."""
    if not _ENV_NAME.fullmatch(text):
        yield wrong(path, text, "use printable ASCII without =")


def config_map_key(text: str, path: Path) -> Found:
    """IsConfigMapKey."""
    if len(text) > 253 or not _CONFIG_MAP_KEY.fullmatch(text) or text == "." or text.startswith(".."):
        yield wrong(path, text, "use letters, digits and -_., not . alone and no .. first")


def relative(text: str, path: Path) -> Found:
    """validateLocalDescendingPath."""
    if text.startswith("/"):
        yield wrong(path, text, "use a relative path, without / at its beginning")
    yield from no_steps_back(text, path)


def no_steps_back(text: str, path: Path) -> Found:
    """validatePathNoBacksteps."""
    if ".." in text.split("/"):
        yield wrong(path, text, "use a path without ..")


def local_file(text: str, path: Path) -> Found:
    """ValidateLocalNonReservedPath."""
    yield from relative(text, path)
    if text.startswith("..") and not text.startswith("../") and text != "..":
        yield wrong(path, text, "use a name that does not begin with ..")


def identity(body: Body, path: Path, *keys: str) -> Found:
    """IsValidUserID, IsValidGroupID."""
    for key in keys:
        yield from within(body, path, key, 0, _LARGEST_ID)


def items(body: Body, path: Path, key: str) -> Iterator[tuple[Path, Any]]:
    """The items of a list, each with its path."""
    for index, item in enumerate(body.get(key) or ()):
        yield (*path, key, index), item
