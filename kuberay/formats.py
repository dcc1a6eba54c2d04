"""Formats of Kubernetes and Go: names, labels, versions, durations; and the rules on objects' metadata.

Each function of a format names its Go counterpart.
"""

import json
import math
import re
from typing import NoReturn

import yaml

from core.body import Body
from core.problems import Path
from kuberay.rules import Found, problem

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VERSION = re.compile(r"[\t\n\f\r ]*v?([0-9]+(?:\.[0-9]+)*).*")
_SEMVER = re.compile(
    r"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(-([0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*))?(\+([0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*))?"
)
_DURATION_PART = re.compile(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)")
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64, _UINT64 = 2**63, 2**64
_FLOAT32 = (2 - 2**-24) * 2.0**127
"""The least number that does not round to a 32-bit float."""


def is_dns_1035_label(text: str) -> bool:
    """apimachinery: IsDNS1035Label."""
    return len(text) <= 63 and _DNS_1035.fullmatch(text) is not None


def is_dns_1123_label(text: str) -> bool:
    """apimachinery: IsDNS1123Label."""
    return len(text) <= 63 and "." not in text and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """apimachinery: IsDNS1123Subdomain."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """A label's key, with or without a prefix (apimachinery: IsQualifiedName)."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return 0 < len(name) <= 63 and _QUALIFIED_NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """apimachinery: IsValidLabelValue."""
    return not text or (len(text) <= 63 and _QUALIFIED_NAME.fullmatch(text) is not None)


def generic_version(text: str) -> tuple[int, ...] | None:
    """The numbers of a version, which a suffix may follow; None if it is not a version (apimachinery: ParseGeneric)."""
    found = _VERSION.fullmatch(text)
    parts = found[1].split(".") if found else []
    if len(parts) < 2 or (parts[0].startswith("0") and parts[0] != "0"):
        return None
    numbers = tuple(int(part) for part in parts)
    return numbers if max(numbers) < _UINT64 else None


def older(version: tuple[int, ...], than: tuple[int, ...]) -> bool:
    """Whether a version is older than another; missing parts count as 0 (apimachinery: LessThan)."""
    length = max(len(version), len(than))
    return version + (0,) * (length - len(version)) < than + (0,) * (length - len(than))


def semver_numbers(text: str) -> tuple[int, int, int] | None:
    """The numbers of a version; None for a pre-release or another text (Masterminds/semver: NewVersion)."""
    found = _SEMVER.fullmatch(text)
    if found is None or found[4]:
        return None
    major, minor, patch = (int((part or "0").lstrip(".")) for part in found.group(1, 2, 3))
    return (major, minor, patch) if max(major, minor, patch) < _UINT64 else None


def duration(text: str) -> int | None:
    """Nanoseconds of a duration such as `1h30m`; None if it is not a duration (time.ParseDuration)."""
    sign, unsigned = (-1 if text[:1] == "-" else 1), text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    total, at = 0, 0
    while at < len(unsigned):
        part = _DURATION_PART.match(unsigned, at)
        if part is None or not (part[1] or (part[2] or ".") != "."):
            return None
        unit = _NANOSECONDS[part[3]]
        fraction = (part[2] or ".")[1:] or "0"
        total += int(part[1] or "0") * unit + int(fraction) * unit // 10 ** len(fraction)
        at = part.end()
    return sign * total if unsigned and total < _INT64 else None


def integer(text: str) -> int | None:
    """A signed 64-bit integer; None if it is not one (strconv.Atoi)."""
    if not _INTEGER.fullmatch(text) or not text.isascii():
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def is_json_of_numbers(text: str) -> bool:
    """Whether a text is a JSON object of numbers, or empty (encoding/json, into map[string]float32)."""
    try:
        value = json.loads(text or "null", parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return value is None or (isinstance(value, dict) and all(map(_is_float32, value.values())))


def _is_float32(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _FLOAT32)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_TAG = "tag:yaml.org,2002:"


def is_mapping(text: str) -> bool:
    """Whether the first YAML document of the text is a mapping that JSON can represent, or empty.

    The check visits nodes without constructing values, so that aliased nodes count once and unknown tags are harmless.
    """
    loader = yaml.CSafeLoader(text) if text else None
    try:
        root = loader.get_node() if loader and loader.check_node() else None
        if root is None or root.tag == f"{_TAG}null":
            return True
        return isinstance(root, yaml.MappingNode) and _is_json(root)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False
    finally:
        if loader:
            loader.dispose()


def _is_json(root: yaml.Node) -> bool:
    seen, waiting = {id(root)}, [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.ScalarNode) and not _is_scalar(node):
            return False
        if isinstance(node, yaml.MappingNode):
            if not all(isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}null" for key, _ in node.value):
                return False
            children = [each for pair in node.value for each in pair]
        else:
            children = list(node.value) if isinstance(node, yaml.SequenceNode) else []
        waiting += [child for child in children if id(child) not in seen]
        seen.update(map(id, children))
    return True


def _is_scalar(node: yaml.ScalarNode) -> bool:
    """Whether the value matches its tag, and is finite if it is a number."""
    if not node.tag.startswith(_TAG) or node.tag in (f"{_TAG}str", f"{_TAG}merge", f"{_TAG}timestamp"):
        return True
    value = yaml.constructor.SafeConstructor().construct_object(node)
    return not isinstance(value, float) or math.isfinite(value)


LONGEST = {"RayCluster": 53, "RayJob": 47, "RayService": 47, "RayCronJob": 41}
"""Characters of a name (constant.go: MaxRayClusterNameLength and similar). Services have the name of the cluster with a
suffix, and the operator appends six characters to the names of clusters and jobs that it creates."""

_RULES = {
    "RayCluster": "ray-cluster-name",
    "RayJob": "ray-job-name",
    "RayService": "ray-service-name",
    "RayCronJob": "ray-cron-job-name",
}

_GENERATED = "00000"
_LONGEST_PREFIX = 58
"""The suffix that the API server adds to a generateName, and the length to which it truncates it (apiserver:
SimpleNameGenerator)."""

_ALL_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations together (apimachinery: TotalAnnotationSizeLimitB)."""


_LONGEST_DERIVED = 50


def derived(name: str) -> str:
    """The name of a RayCluster's ServiceAccount, Role and token Secret (util.go: CheckName).

    It is the name of the cluster, of a long one its last 50 characters; the first becomes `r` unless it is a letter.
    """
    last = name[-_LONGEST_DERIVED:]
    return last if last[0].isalpha() else f"r{last[1:]}"


def check_metadata(body: Body) -> Found:
    """apimachinery: ValidateObjectMeta; KubeRay: ValidateRayClusterMetadata and similar."""
    metadata, kind = body["metadata"], body["kind"]
    yield from _name(metadata, kind)
    namespace = metadata.get("namespace", "")
    if namespace and not is_dns_1123_label(namespace):
        message = f"{namespace!r} is not a valid namespace: use at most 63 lower-case letters, digits and hyphens"
        yield problem("object-name", ("metadata", "namespace"), namespace, message)
    yield from check_labels(metadata.get("labels", {}), ("metadata", "labels"), "object-label")
    annotations = metadata.get("annotations", {})
    for key in annotations:
        if not is_qualified_name(key.lower()):
            message = (
                f"{key!r} is not a valid annotation key: use letters, digits and -_. after an optional DNS prefix and /"
            )
            yield problem("object-annotation", ("metadata", "annotations", key), annotations[key], message)
    size = sum(len(text.encode()) for item in annotations.items() for text in item)
    if size > _ALL_ANNOTATIONS:
        message = f"the annotations have {size} bytes together: shorten them to {_ALL_ANNOTATIONS}"
        yield problem("object-annotation", ("metadata", "annotations"), None, message)


def _name(metadata: Body, kind: str) -> Found:
    name, prefix, longest = metadata.get("name", ""), metadata.get("generateName") or "", LONGEST[kind]
    if name and prefix and not is_dns_subdomain(prefix[:-1] + prefix[-1].replace("-", "a")):
        message = f"{prefix!r} is not a valid name prefix: use lower-case letters, digits and hyphens, or remove it"
        yield problem("object-name", ("metadata", "generateName"), prefix, message)
    if not name and prefix:
        name = prefix[:_LONGEST_PREFIX] + _GENERATED
    if not name:
        yield problem("required-field", ("metadata", "name"), None, "'name' is missing: add it")
    elif len(name) > longest or not is_dns_1035_label(name):
        message = (
            f"{name!r} is not a valid name of a {kind}: use at most {longest} lower-case letters, digits and hyphens, "
            "a letter first and no hyphen last"
        )
        yield problem(_RULES[kind], ("metadata", "name"), name, message)


def check_labels(labels: Body, path: Path, rule: str) -> Found:
    """Label keys and values in Kubernetes' syntax (apimachinery: IsQualifiedName, IsValidLabelValue)."""
    for key, value in labels.items():
        if not is_qualified_name(key):
            message = f"{key!r} is not a label key: use letters, digits and -_. after an optional DNS prefix and /"
            yield problem(rule, (*path, key), value, message)
        if not is_label_value(value):
            message = f"{value!r} is not a label value: use at most 63 letters, digits and -_., but no -_. at an end"
            yield problem(rule, (*path, key), value, message)
