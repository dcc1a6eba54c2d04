"""What a person means by an amount, a time or a key that is written as elsewhere."""

import re
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from core.suggestions import _LENGTHS, _SAME, _UNITS, amount_meant, keys_meant, memory_meant, time_meant
from core.types import Duration, Memory, Quantity
from stacks.settings import StackSettings
from tests.unit.stacks.test_stack_files import fields

NUMBERS = ("0", "00", "1", "60", "0.5", "1.25", "1,5", "1,000", "1_000", "9999", "999999", "1.", ".5", "1e3", "-1", "٣")
OF_AMOUNTS = {unit for known in _UNITS for unit in (known, known.upper(), known.title())}
OF_TIMES = {unit for known in _LENGTHS for unit in (known, known.upper(), known.title())}
UNITS = sorted({*OF_AMOUNTS, *OF_TIMES, "GiB", "Gb", "e", "Ei", "n", "u", "ms", "months", "kB"})
ONE = [f"{number}{space}{unit}" for number in NUMBERS for space in ("", " ", "\n") for unit in UNITS]
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
    ("text", "meant"),
    [
        *(("16GB", "16Gi"), ("16gb", "16Gi"), ("16 GiB", "16Gi"), ("16 Gi", "16Gi"), ("16g", "16Gi"), ("16GI", "16Gi")),
        *(("1,5 TB", "1.5Ti"), ("512 megabytes", "512Mi"), ("64 cores", "64"), ("500 millicores", "500m")),
        *(
            ("1_000", "1000"),
            ("1,000", None),
            ("0GB", None),
            ("-1GB", None),
            ("a lot", None),
            ("", None),
            ("0x10", None),
        ),
    ],
)
def test_an_amount(text: str, meant: str | None) -> None:
    assert amount_meant(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [("64", "64Gi"), ("65536", "65536Mi"), ("500m", "500Mi"), ("0", None), ("1k", None), ("1e3", None)],
)
def test_an_amount_of_memory_with_a_wrong_unit(text: str, meant: str | None) -> None:
    assert memory_meant(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        *(
            ("60", "60s"),
            ("90 seconds", "90s"),
            ("5 min", "5m"),
            ("5 Minutes", "5m"),
            ("1.5h", "90m"),
            ("1 day", "24h"),
        ),
        *(("1h 30m", "90m"), ("1 hour, 30 minutes", "90m"), ("1 hour and 5 seconds", "3605s"), ("1d12h", "36h")),
        *(
            ("1h30", None),
            ("1:30", None),
            ("500ms", None),
            ("0", None),
            ("0.5", None),
            ("soon", None),
            ("99999999d", None),
        ),
    ],
)
def test_a_time(text: str, meant: str | None) -> None:
    assert time_meant(text) == meant


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
