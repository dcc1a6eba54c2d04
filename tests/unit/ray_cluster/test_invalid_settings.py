"""Refused values that the CRD accepts: secrets, shell commands, invalid names."""

import json
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from components.ray_cluster.rules import valid
from components.ray_cluster.settings import flag_faults
from core.problems import Problems


def refusals(**settings: Any) -> list[tuple[tuple[Any, ...], str]]:
    """The paths of refused values, and the reasons."""
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", **settings}
    with pytest.raises(ValidationError) as refused:
        valid(entry)
    found: list[tuple[tuple[Any, ...], str]] = []
    for error in refused.value.errors():
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, Problems):
            found += [((*error["loc"], *problem.path), problem.message) for problem in cause.problems]
        else:
            found.append((error["loc"], error["msg"].removeprefix("Value error, ")))
    return found


@pytest.mark.parametrize(
    "value",
    [
        "4; reboot",
        "$(reboot)",
        "`reboot`",
        "a b",
        "a\nb",
        "a\x00b",
        '{"a": 1}',
        "'open",
        "a|b",
        "a>b",
        "a&b",
        '"$(x)"',
        "*",
        "$((1))",
    ],
)
def test_a_flag_that_would_run_a_command_is_refused(value: str) -> None:
    [(path, message)] = refusals(head={"rayStartParams": {"resources": value}})
    assert path == ("head", "rayStartParams", "resources")
    assert "is not one word to the shell that starts Ray" in message
    assert "\n" not in message
    assert "\x00" not in message


@pytest.mark.parametrize(
    "value", ["", "4", "10.0.0.1", "$MY_POD_IP", "${NAME}", "'{\"a\": 1}'", json.dumps('{"a": 1}'), "a=b,c"]
)
def test_a_single_word_of_a_shell_is_accepted(value: str) -> None:
    assert flag_faults({"resources": value}) == []


SHELL = st.text(st.sampled_from(list("ab'\"\\$`;&|(){} \n=,*~#!")), max_size=8)


@settings(max_examples=150, derandomize=True)
@given(SHELL)
def test_bash_parses_every_accepted_value_as_one_word(value: str) -> None:
    """KubeRay writes `--flag=value` into a command for bash, which here prints the number of words."""
    if flag_faults({"flag": value}):
        return
    counted = subprocess.run(
        ["bash", "-c", f"set -f; f() {{ echo $#; }}; f --flag={value}"], capture_output=True, text=True, check=False
    )
    assert (counted.stdout, counted.stderr) == ("1\n", "")


@pytest.mark.parametrize("flag", ["--num-cpus", "x; reboot", ""])
def test_a_flag_has_the_form_of_a_flag(flag: str) -> None:
    assert [path for path, _ in refusals(head={"rayStartParams": {flag: "1"}})]
    [(path, message)] = refusals(overrides={"headGroupSpec": {"rayStartParams": {flag: "1"}}})
    assert path == ("overrides", "headGroupSpec", "rayStartParams", flag)
    assert message.endswith("is not a flag of ray start: write one without its leading hyphens, as num-cpus")


@pytest.mark.parametrize(
    "name", ["x" * 54, "Training", "1training", "training-", "tr\u00e4ining", "a\nb", "$(reboot)", "", "a.b", "a b"]
)
def test_a_name_is_valid_for_a_service(name: str) -> None:
    [(path, message)] = refusals(name=name)
    assert path == ("name",)
    assert message.startswith(f"{name!r} is not a name of at most 53 lower-case letters, digits and hyphens")
    assert "\n" not in message
