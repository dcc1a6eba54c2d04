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

SECRET = {"name": "HF_TOKEN", "value": "hf_very_secret"}
POD = {"spec": {"containers": [{"name": "ray-worker", "env": [{"name": "A", "value": "b"}, SECRET]}]}}


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
    ("configured", "path"),
    [
        ({"env": {"HF_TOKEN": "x"}}, ("env", "HF_TOKEN")),
        ({"head": {"env": {"DB_PASSWORD": "x"}}}, ("head", "env", "DB_PASSWORD")),
        (
            {"head": {"podTemplate": POD}},
            ("head", "podTemplate", "spec", "containers", 0, "env", 1, "value"),
        ),
        (
            {"workers": {"pool": "p", "variants": [{"gpus": 1, "podTemplate": POD}]}},
            ("workers", 0, "variants", 0, "podTemplate", "spec", "containers", 0, "env", 1, "value"),
        ),
        (
            {"overrides": {"autoscalerOptions": {"env": [SECRET]}}},
            ("overrides", "autoscalerOptions", "env", 0, "value"),
        ),
        (
            {"overrides": {"gcsFaultToleranceOptions": {"redisPassword": {"value": "x"}}}},
            ("overrides", "gcsFaultToleranceOptions", "redisPassword", "value"),
        ),
    ],
)
def test_a_secret_in_plain_text_is_refused_and_not_repeated(configured: dict[str, Any], path: Any) -> None:
    [(place, message)] = refusals(**configured)
    assert place == path
    assert "looks like a secret, and a stack file is plain text: keep it in a Secret" in message
    assert "hf_very_secret" not in message


@pytest.mark.parametrize(
    "group",
    [
        {"head": {"rayStartParams": {"redis-password": "x"}}},
        {"workerGroups": [{"groupName": "w", "rayStartParams": {"redis-password": "x"}}]},
        {"overrides": {"headGroupSpec": {"rayStartParams": {"redis-password": "x"}}}},
    ],
)
def test_a_password_in_a_flag_is_refused(group: dict[str, Any]) -> None:
    [(path, message)] = refusals(**group)
    assert path[-2:] == ("rayStartParams", "redis-password")
    assert message.startswith("a command line keeps no secret: give it as gcsFaultToleranceOptions.redisPassword.value")


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
    assert message.endswith("is no flag of ray start: write one without its leading hyphens, as num-cpus")


@pytest.mark.parametrize(
    "name", ["x" * 54, "Training", "1training", "training-", "tr\u00e4ining", "a\nb", "$(reboot)", "", "a.b", "a b"]
)
def test_a_name_is_valid_for_a_service(name: str) -> None:
    [(path, message)] = refusals(name=name)
    assert path == ("name",)
    assert message.startswith(f"{name!r} is not a name of at most 53 lower-case letters, digits and hyphens")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("configured", "path", "message"),
    [
        (
            {"image": f"ray@sha256:{'0' * 64}"},
            ("image",),
            f"the version of Ray in image 'ray@sha256:{'0' * 64}' cannot be determined from its tag",
        ),
        ({"image": "ray:2.60.01"}, ("image",), "rayVersion is '2.60.0' but image 'ray:2.60.01' has Ray 2.60.01"),
        ({"rayVersion": 2.6}, ("rayVersion",), "'2.6' is not a version of three numbers"),
        ({"head": {"image": "ray:2.59.0"}}, ("head", "image"), "rayVersion is '2.60.0' but image"),
        (
            {"workerGroups": [{"groupName": "w", "image": "ray:1.0.0"}]},
            ("workerGroups", 0, "image"),
            "rayVersion is '2.60.0' but image 'ray:1.0.0' has Ray 1.0.0",
        ),
        ({"workers": []}, ("workers",), "the list is empty: give at least one"),
        ({"head": {"memory": "16"}}, ("head", "memory"), "'16' is less than 1Mi, and memory is in bytes"),
    ],
)
def test_a_problem_is_reported_at_its_field(configured: dict[str, Any], path: Any, message: str) -> None:
    [(place, text)] = refusals(**configured)
    assert place == path
    assert text.startswith(message)


def test_all_conflicts_are_reported_at_once() -> None:
    wrong = refusals(image="ray:2.59.0", head={"image": "ray:2.58.0"}, minWorkers=2, maxWorkers=1)
    assert [path for path, _ in wrong] == [("image",), ("head", "image"), ("minWorkers",)]


def test_token_authentication_is_on_by_default() -> None:
    """KubeRay itself disables it in both cases."""
    entry = {"name": "a", "rayVersion": "2.60.0", "image": "ray:2.60.0"}
    settings = valid({**entry, "authOptions": {}})
    assert settings.auth_options is not None
    assert settings.auth_options.mode == "token"
