"""Shared formats of settings: names, quantities, durations, versions, images. Needs neither Pulumi nor a cluster."""

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Strict,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from core.problems import Problem, Problems, quoted, raise_problems
from core.quantities import LARGEST, memory, not_negative, positive
from core.secrets import plain_secrets
from core.suggestions import time_meant
from core.yaml_reader.scalars import Rewritten

NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A text that is not blank."""


class Settings(BaseModel):
    """Base of all settings in a stack file: camelCase keys, no unknown keys, immutable."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        # Pydantic builds the validator of the whole file once, on first use, not one for each nested model before.
        defer_build=True,
    )


class CheckedSettings(Settings, ABC):
    """Settings with rules beyond the types of their keys."""

    @abstractmethod
    def problems(self) -> Iterable[Problem]:
        """The violated rules."""

    @model_validator(mode="after")
    def _without_problems(self) -> Self:
        raise_problems(self.problems())
        return self


def switched(value: Any) -> Any:
    """A part of the settings that `true` switches on with its defaults, and `false` off."""
    if isinstance(value, bool):
        return {} if value else None
    return value


def _one_or_several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Paths = Annotated[
    tuple[NonEmptyText, ...], BeforeValidator(_one_or_several, json_schema_input_type=str | tuple[str, ...])
]
"""The path of a file, or a list of paths."""


Uid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
"""The UID of a Kubernetes object: `kubectl get namespace kube-system -o jsonpath={.metadata.uid}`."""


def _number_as_text(value: Any) -> Any:
    # YAML reads `cpu: 64` as a number; true and false are numbers to Python, but no quantity.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError(f"a number of more than {len(str(LARGEST))} digits is too large: write a smaller one")
    return str(value)


def _text_of_number(value: Any) -> Any:
    if not isinstance(value, Rewritten):
        return _number_as_text(value)
    raise ValueError(f"{value.written} is a number to YAML, and would become {str(value)!r}: {quoted(value)}")


def _as_written(value: Any) -> Any:
    return value.written if isinstance(value, Rewritten) else _number_as_text(value)


# For amounts, whose value matters, and for texts, of which a number must not change a character.
_NumberAsText = BeforeValidator(_number_as_text, json_schema_input_type=str | float)
_TextOfNumber = BeforeValidator(_text_of_number, json_schema_input_type=str | float)


@dataclass(frozen=True, slots=True)
class _Checked(AfterValidator):
    """A validator with keywords for the JSON Schema."""

    keywords: tuple[tuple[str, Any], ...]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **dict(self.keywords)}


def _matching(
    pattern: str, limit: int, explanation: str, meant: Callable[[str], str | None] = lambda _: None
) -> AfterValidator:
    """Validator of a text. `meant`: what a text that does not match may mean."""
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if len(text) > limit or not compiled.fullmatch(text):
            suggestion = meant(text)
            advice = f": did you mean {suggestion!r}?" if suggestion else ""
            raise ValueError(f"{text!r} is not {explanation}{advice}")
        return text

    return _Checked(check, (("pattern", f"^({pattern})$"), ("maxLength", limit)))


_QUANTITY = (
    ("pattern", r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$"),
    ("minimum", 0),
)

Quantity = Annotated[str, _NumberAsText, _Checked(positive, _QUANTITY)]
"""A positive amount as Kubernetes writes it: `8`, `500m`, `64Gi`."""

QuantityOrZero = Annotated[str, _NumberAsText, _Checked(not_negative, _QUANTITY)]
"""A `Quantity`, or `0`."""

Memory = Annotated[str, _NumberAsText, _Checked(memory, _QUANTITY)]
"""A `Quantity` of bytes: `64Gi`. Amounts below 1Mi are refused: their unit is missing."""

MOST_PODS = 150_000
"""Maximum number of pods that Kubernetes supports (kubernetes.io, Considerations for large clusters)."""

Replicas = Annotated[int, Strict(), Field(ge=0, le=MOST_PODS)]
"""A number of pods."""

Gpus = Annotated[int, Strict(), Field(ge=0, le=64)]
"""A number of whole GPUs. Tasks share one with Ray's `num_gpus=0.5`."""


GpuHourPrice = Annotated[float, Strict(), Field(ge=0, le=1_000_000, allow_inf_nan=False)]
"""Price of a GPU per hour, in any currency."""


def dns_1035_label(limit: int = 63) -> AfterValidator:
    """Validator of an RFC 1035 label: an RFC 1123 label that starts with a letter."""
    explanation = f"a name of at most {limit} lower-case letters, digits and hyphens that starts with a letter"
    return _matching(r"[a-z]([-a-z0-9]*[a-z0-9])?", limit, f"{explanation} and ends with a letter or digit")


DnsLabel = Annotated[
    str,
    _matching(
        r"[a-z0-9]([-a-z0-9]*[a-z0-9])?",
        63,
        "a name of at most 63 lower-case letters, digits and hyphens that starts and ends with a letter or digit",
    ),
]
"""RFC 1123 label: the format of a namespace name."""

Dns1035Label = Annotated[str, dns_1035_label()]
"""RFC 1035 label: the format of a Service name."""

DnsSubdomain = Annotated[
    str,
    _matching(
        r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        253,
        "a name of at most 253 lower-case letters, digits, hyphens and dots, a letter or digit at both ends",
    ),
]
"""RFC 1123 subdomain: the format of most object names, such as ServiceAccounts, Roles and Secrets."""


def _not_empty(items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not items:
        raise ValueError("the list is empty: give at least one, or leave the key out where it has a default")
    return items


# Not pydantic's min_length: it also reports a tuple whose items are not valid.
NotEmpty = _Checked(_not_empty, (("minItems", 1),))

LabelKey = Annotated[
    str,
    _matching(
        r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
        317,
        "a label key such as nvidia.com/gpu.product",
    ),
]
LabelValue = Annotated[
    str,
    _TextOfNumber,
    _matching(
        r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?",
        63,
        "a label value: at most 63 letters, digits, hyphens, underscores and dots, a letter or digit at both ends",
    ),
]
Labels = dict[LabelKey, LabelValue]
"""Kubernetes labels or a node selector."""


def _without_secrets(env: dict[str, str]) -> dict[str, str]:
    if problems := plain_secrets(env):
        raise Problems(problems)
    return env


EnvName = Annotated[str, _matching(r"[A-Za-z_][A-Za-z0-9_]*", 253, "an environment variable's name such as HF_HOME")]
Env = Annotated[dict[EnvName, Annotated[str, _TextOfNumber]], AfterValidator(_without_secrets)]
"""Environment variables in plain text. For a secret, reference its Secret in `podTemplate` instead."""

IMAGE = (
    r"((localhost|[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+)(:[0-9]+)?/|[a-zA-Z0-9-]+:[0-9]+/)?"
    r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
"""Pattern of image references (github.com/distribution/reference)."""

Image = Annotated[
    str,
    _matching(
        IMAGE,
        512,
        "an image reference such as rayproject/ray:2.60.0: use small letters in its name, no + in its tag, and all 64 "
        "digits of its digest",
    ),
]
"""Image reference: name with an optional registry, tag and sha256 digest."""

ImagePrefix = Annotated[
    str,
    _matching(
        r"([a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+(:[0-9]+)?|[a-zA-Z0-9-]+:[0-9]+|localhost)"
        r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)*",
        255,
        "the beginning of images' names, a registry and perhaps a path, such as docker.io/rayproject",
    ),
]
"""Registry, with or without a path, as a prefix of image names."""

Version = Annotated[
    str,
    BeforeValidator(_as_written),
    _matching(r"[0-9]+\.[0-9]+\.[0-9]+", 32, "a version of three numbers such as 2.60.0"),
]
"""A release: three numbers."""


StackName = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+",
        300,
        "the full name of a Pulumi stack, such as acme/ray-platform/prod; in a backend of one's own the first part is "
        "`organization`",
    ),
]
"""Full name of a Pulumi stack, as in a StackReference."""


METADATA_SERVICES = ("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200")
"""Addresses where clouds give every caller what belongs to the node: of most, AWS' by IPv6, Azure's and Alibaba's."""

_LARGEST = {4: 8, 6: 7}
"""Shortest prefixes by the version of IP: those of 10.0.0.0/8 and fc00::/7, the largest private networks (RFC 1918,
RFC 4193)."""


def _network(text: str) -> str:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not a network such as 10.20.0.0/16 or 2001:db8::/32") from None
    if isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped:
        # From Kubernetes 1.36 on the API server refuses it (gate StrictIPCIDRValidation).
        raise ValueError(f"{text!r} contains IPv4 addresses written as IPv6: write them as IPv4")
    if network.prefixlen == 0:
        raise ValueError(
            f"{text!r} contains every address, also those of other tenants and of the cloud's metadata service: "
            "name only the necessary networks (for egress, set internet: true)"
        )
    if network.prefixlen < _LARGEST[network.version]:
        raise ValueError(
            f"{text!r} contains more than any private network, also addresses of others: name only the necessary "
            "networks (for egress, set internet: true)"
        )
    if str(network) != text:
        raise ValueError(f"{text!r} is not written as a network: write {network}")
    if network.is_loopback or network.is_multicast or network.is_unspecified:
        raise ValueError(f"{text!r} has no addresses of other machines, and a NetworkPolicy opens nothing for it")
    return text


Cidr = Annotated[str, _Checked(_network, (("pattern", "^[0-9a-f.:]+/[0-9]{1,3}$"), ("maxLength", 43)))]
"""Network of IPv4 or IPv6 addresses: `10.20.0.0/16`, one address as `10.20.0.7/32`."""

_SECONDS = {"s": 1, "m": 60, "h": 3600}

MOST_SECONDS = 2**31 - 1
"""KubeRay's fields of seconds have 32 bits."""


def seconds(duration: str) -> int:
    """How long a `Duration` is, in seconds."""
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smh])", duration))


def duration_of(number: int) -> str:
    """A number of seconds as a `Duration`: `40s`, `10m`, `1h30m`."""
    minutes, rest = divmod(number, 60)
    parts = {"h": minutes // 60, "m": minutes % 60, "s": rest}
    return "".join(f"{part}{unit}" for unit, part in parts.items() if part) or "0s"


def _countable(duration: str) -> str:
    if seconds(duration) > MOST_SECONDS:
        raise ValueError(f"{duration!r} is longer than the maximum of KubeRay (2^31 - 1 seconds): write a shorter time")
    return duration


Duration = Annotated[
    str,
    BeforeValidator(_as_written),
    _matching(r"([0-9]+[smh])+", 32, "a duration such as 90s, 5m or 1h30m", time_meant),
    AfterValidator(_countable),
]
"""A time as Go and Kubernetes write it, in whole seconds: `90s`, `5m`, `1h30m`."""


def _some_time(duration: str) -> str:
    if seconds(duration) == 0:
        raise ValueError(f"{duration!r} is over at once: write a time of 1s or more")
    return duration


Timeout = Annotated[Duration, AfterValidator(_some_time)]
"""The most time that something waits for: not zero."""


def _whole_above_one(gpus: float) -> float:
    if gpus > 1 and not gpus.is_integer():
        raise ValueError(f"Ray gives a process a part of one GPU or whole ones, not {gpus:g}: use a whole number")
    return gpus


ReservedGpus = AfterValidator(_whole_above_one)
"""Of the number of GPUs that a process of Ray reserves: the process does not start with 1.5 of them (ray,
python/ray/_raylet.pyx: prepare_resources)."""
