"""Pulumi and the check read the same values in a stack file's YAML."""

import json

import pytest

from core.yaml_reader.document import document
from tests.engine.conftest import MakeProject

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]

PROGRAM = """
import json, pathlib, pulumi
pathlib.Path("read.json").write_text(json.dumps(pulumi.runtime.get_config_env()))
"""

WORDS = [
    *("", "~", "null", "Null", "NULL", "nULL", "true", "True", "TRUE", "tRUE", "false", "yes", "no", "on", "off", "y"),
    *("0", "1", "-1", "+1", "010", "-010", "08", "0x1F", "0X1f", "0b11", "0o17", "0o18", "1_000", "_1", "1_", "0_7"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615"),
    *("18446744073709551616", "-9223372036854775809", f"1{'0' * 400}", "1.5", ".5", "5.", "-.5", "+.5", "1e3", "1E3"),
    *("1e+3", "1e-3", "1e400", "1.5e3", "1.2.3", "2.60.0", "1:30", "190:20:30", "1:30.5", "<<", "=", "0x", "0b"),
    *("'quoted'", "'1'", '"true"', '"\\u00e9"', "a b", "a#b", "2.60", "1.0", "100.0", "1e2", "64Gi", "500m", "5m"),
    *("!!str 1", "!!str true", "!!str"),
]
"""Scalars as written in a file, including all on which YAML's versions disagree."""


def test_pulumi_reads_the_values_that_the_check_reads(project: MakeProject) -> None:
    shop = project(PROGRAM)
    file = shop.folder / "Pulumi.test.yaml"
    lines = ["config:", "  shop:read:", "    base: &base {a: 1, b: {c: 2}}", "    merged: {<<: *base, a: 3}"]
    lines += ["    several:", "      <<: [*base, {a: 4, d: 5}]", "    folded: >", "      two", "      lines"]
    lines += ["    words:", *(f"      w{number}: {word}" for number, word in enumerate(WORDS)), ""]
    file.write_text("\n".join(lines) + file.read_text())
    shop.pulumi("preview")
    read = json.loads(json.loads((shop.folder / "read.json").read_text())["shop:read"])
    found = document(file.read_text())
    assert found is not None
    expected = found.value["config"]["shop:read"]
    different = {
        word: (read["words"][f"w{number}"], expected["words"][f"w{number}"])
        for number, word in enumerate(WORDS)
        if repr(read["words"][f"w{number}"]) != repr(expected["words"][f"w{number}"])
    }
    assert different == {}
    assert read == expected


def test_pulumi_rewrites_a_date_without_quotes(project: MakeProject) -> None:
    """So the check refuses one."""
    shop = project(PROGRAM)
    file = shop.folder / "Pulumi.test.yaml"
    file.write_text("config:\n  shop:read: {since: 2026-11-21}\n" + file.read_text())
    shop.pulumi("preview")
    read = json.loads(json.loads((shop.folder / "read.json").read_text())["shop:read"])
    assert read == {"since": "2026-11-21 00:00:00 +0000 UTC"}
