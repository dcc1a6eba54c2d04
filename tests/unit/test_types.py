"""What a person may write for an amount, a name, a time or a version, and what is meant by one written as elsewhere."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity
from pydantic import TypeAdapter, ValidationError

from core.quantities import NotAQuantityError, amount, canonical
from core.secrets import is_secret
from core.suggestions import _LENGTHS, _SAME, _UNITS, amount_meant, keys_meant, memory_meant, time_meant
from core.types import Duration, Env, Memory, Quantity, duration_of, seconds
from stacks.settings import StackSettings
from tests.unit.stacks.test_stack_files import fields

NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.sampled_from(["1.", ".5", "+3", "-0", "007"]),
)
SUFFIXES = st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e+3"])


@settings(max_examples=500, derandomize=True)
@given(NUMBERS, SUFFIXES)
def test_quantities_are_read_as_the_kubernetes_client_reads_them(number: str, suffix: str) -> None:
    assert amount(number + suffix) == Decimal(parse_quantity(number + suffix))


@pytest.mark.parametrize(
    ("text", "written"),
    [("0", "0"), ("8", "8"), ("1.5", "1500m"), ("252.50", "252500m"), ("64000", "64k"), ("4000Gi", "4294967296k")],
)
def test_an_amount_is_written_as_kubernetes_writes_a_number_back(text: str, written: str) -> None:
    assert canonical(amount(text)) == written


@pytest.mark.parametrize(
    "text", ["4GB", "", "Gi", "1 Gi", "1_000", "inf", "nan", "1e", "1ee3", "1i", "\u0661", "1Gi\n", "0x10"]
)
def test_what_the_api_server_would_not_take_for_a_quantity_is_refused(text: str) -> None:
    """The Python client takes some of these, as Python's own numbers."""
    with pytest.raises(
        NotAQuantityError, match=r"is not a Kubernetes quantity[:;] (did you mean '|write for example 8, 500m or 64Gi)"
    ):
        amount(text)


def refusal(kind: Any, value: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(value)
    [error] = refused.value.errors()
    return error["msg"].removeprefix("Value error, ")


def test_a_number_of_very_many_digits_is_refused_and_a_duration_is_in_seconds() -> None:
    """Pulumi passes a number to the program as JSON, in which it has all its digits."""
    assert "a number of more than 19 digits is too large" in refusal(Quantity, 10**30)
    assert [seconds(text) for text in ("90s", "5m", "1h30m")] == [90, 300, 5400]
    assert [duration_of(each) for each in (0, 40, 90, 600, 5400)] == ["0s", "40s", "1m30s", "10m", "1h30m"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "hf_x"),
        ("DB_PASSWORD", "x"),
        ("password", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("WANDB_API_KEY", "x"),
        ("AZURE_STORAGE_CONNECTION_STRING", "x"),
        ("CACHE", "redis://:pass@cache:6379"),
        ("CACHE", "redis://:%40pass@cache:6379"),
        ("PEM", "-----BEGIN RSA PRIVATE KEY-----\nx"),
        ("ANY", f"hf_{'aB' * 17}"),
        ("ANY", f"--token=ghp_{'a1' * 18}"),
        ("ANY", f"sk-ant-api03-{'a1_-' * 12}"),
        ("ANY", f"AKIA{'ABCD2345' * 2}"),
    ],
)
def test_secrets_are_known_by_their_names_and_values(name: str, value: str) -> None:
    assert is_secret(name, value)
    assert value not in refusal(Env, {name: value}).replace(repr(name), "").split()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "4096"),
        ("HF_TOKEN_PATH", "/secrets/token"),
        ("RAY_ENABLE_K8S_TOKEN_AUTH", "true"),
        ("RAY_AUTH_MODE", "token"),
        ("DISABLE_TOKEN", "1"),
        ("HF_TOKEN", "$(TEAM_TOKEN)"),
        ("KEY", "x"),
        ("MAX_TOKEN_LENGTH", "4096"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/var/secrets/key.json"),
        ("MODEL", "task-sk-learn"),
        ("DIGEST", "sha256:" + "0a" * 32),
        ("CACHE", "redis://cache:6379/0"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/key"),
        *(("CACHE", f"redis://user:{it}@cache:6379") for it in ("$PASSWORD", "$(P)", "<password>", "{password}", "%s")),
    ],
)
def test_what_is_only_about_secrets_is_none(name: str, value: str) -> None:
    assert not is_secret(name, value)


WRITTEN = ("0", "00", "1", "60", "0.5", "1.25", "1,5", "1,000", "1_000", "9999", "999999", "1.", ".5", "1e3", "-1", "٣")
OF_AMOUNTS = {unit for known in _UNITS for unit in (known, known.upper(), known.title())}
OF_TIMES = {unit for known in _LENGTHS for unit in (known, known.upper(), known.title())}
UNITS = sorted({*OF_AMOUNTS, *OF_TIMES, "GiB", "Gb", "e", "Ei", "n", "u", "ms", "months", "kB"})
ONE = [f"{number}{space}{unit}" for number in WRITTEN for space in ("", " ", "\n") for unit in UNITS]
TEXTS = [
    *ONE,
    *(f"{first}{between}{second}" for first in ONE[::41] for between in ("", ", ", " and ") for second in ONE[::37]),
]

SUGGESTED = re.compile(r"did you mean '(.+)'\?$")


@pytest.mark.parametrize("kind", [Quantity, Memory, Duration])
def test_each_suggestion_is_valid(kind: Any) -> None:
    adapter: TypeAdapter[str] = TypeAdapter(kind)
    suggested = [found for text in TEXTS if (found := suggestion(adapter, text))]
    for each in set(suggested):
        adapter.validate_python(each)
    assert len(TEXTS) > 50_000
    assert len(suggested) > 500


def suggestion(adapter: TypeAdapter[str], text: str) -> str | None:
    """What the error suggests; None for a valid text."""
    try:
        adapter.validate_python(text)
    except ValidationError as error:
        found = SUGGESTED.search(error.errors()[0]["msg"])
        return found[1] if found else None
    return None


@pytest.mark.parametrize(
    ("meant", "text", "expected"),
    [
        *((amount_meant, text, "16Gi") for text in ("16GB", "16gb", "16 GiB", "16 Gi", "16g", "16GI")),
        (amount_meant, "1,5 TB", "1.5Ti"),
        (amount_meant, "512 megabytes", "512Mi"),
        (amount_meant, "64 cores", "64"),
        (amount_meant, "500 millicores", "500m"),
        (amount_meant, "1_000", "1000"),
        *((amount_meant, text, None) for text in ("1,000", "0GB", "-1GB", "a lot", "", "0x10")),
        *((memory_meant, text, meant) for text, meant in (("64", "64Gi"), ("65536", "65536Mi"), ("500m", "500Mi"))),
        *((memory_meant, text, None) for text in ("0", "1k", "1e3")),
        *((time_meant, text, meant) for text, meant in (("60", "60s"), ("90 seconds", "90s"), ("1 day", "24h"))),
        *((time_meant, text, "5m") for text in ("5 min", "5 Minutes")),
        *((time_meant, text, "90m") for text in ("1.5h", "1h 30m", "1 hour, 30 minutes")),
        (time_meant, "1 hour and 5 seconds", "3605s"),
        (time_meant, "1d12h", "36h"),
        *((time_meant, text, None) for text in ("1h30", "1:30", "500ms", "0", "0.5", "soon", "99999999d")),
    ],
)
def test_what_is_meant_by_an_amount_or_time_as_elsewhere(
    meant: Callable[[str], str | None], text: str, expected: str | None
) -> None:
    assert meant(text) == expected


@pytest.mark.parametrize(
    ("key", "known", "meant"),
    [
        ("num_cpus", ("pool", "cpu", "memory"), ("cpu",)),
        ("num-gpus", ("gpus", "cpu"), ("gpus",)),
        ("nvidia.com/gpu", ("gpus", "cpu"), ("gpus",)),
        ("resources", ("cpu", "memory", "image"), ("cpu", "memory")),
        ("max_workers", ("name", "maxReplicas"), ("maxReplicas",)),
        ("max_workers", ("maxWorkers", "maxReplicas"), ("maxWorkers",)),
        ("serviceAccountName", ("name", "serviceAccount"), ("serviceAccount",)),
        ("enableInTreeAutoscaling", ("autoscaling", "image"), ("autoscaling",)),
        ("num_cpus", ("name", "size"), ()),
        ("", ("name",), ()),
    ],
)
def test_a_key_of_elsewhere(key: str, known: tuple[str, ...], meant: tuple[str, ...]) -> None:
    assert keys_meant(key, known) == meant


def test_each_suggested_key_is_one_of_the_stack_file() -> None:
    aliases = {model.model_fields[key].alias for model, key in fields(StackSettings)}
    assert {line.split()[0] for line in _SAME} <= aliases
    assert [word for line in _SAME for word in line.split()[1:] if not re.fullmatch("[a-z0-9]+", word)] == []
