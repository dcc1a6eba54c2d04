"""The flags of `ray start`: the parser of the installed Ray and our rules judge generated ones equally."""

import json
import shlex
from collections import Counter

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay.ray_start import OPTIONS, problems_of_labels, problems_of_params
from tests.conftest import Compared

INSTALLED = "2.60.0"

VALUES = st.sampled_from(
    [
        "true",
        "false",
        "True",
        "1",
        "0",
        "-1",
        "1.5",
        "64Gi",
        "1_000",
        "",
        "yes",
        "auto",
        "pretty",
        "{}",
        "'{}'",
        "[]",
        "a b",
        "'a b'",
        "'{\"spot\": 1}'",
        '"{\\"spot\\": 1}"',
        "null",
        "'",
        "on",
        "AUTO",
        "1e3",
        "٣",
        "inf",
        "0x10",
        '"1"',
    ]
)
NAMES = st.sampled_from([*OPTIONS, "num_cpus", "gpus", "num-cpu", "no-such", "Block", "v"])


def refused_by_ray(params: dict[str, str], head: bool) -> bool:
    """Whether `ray start` refuses the command line that KubeRay makes (common/pod.go: convertParamMap)."""
    from ray._private.utils import parse_resources_json
    from ray.autoscaler._private.cli_logger import cf, cli_logger
    from ray.scripts.scripts import start

    words = ["--head"] if head else []
    for name, value in sorted(params.items()):
        if value.lower() in ("true", "false") and name not in ("log-color", "include-dashboard"):
            words += [f"--{name}"] if value.lower() == "true" else []
        else:
            try:
                words += shlex.split(f"--{name}={value}")
            except ValueError:
                return True
    try:
        parsed = start.make_context("start", words).params
        parse_resources_json(parsed["resources"], cli_logger, cf)
    except click.ClickException:
        return True
    # What `start` itself refuses after its parser, or takes for something else.
    elsewhere = {"address"} if head else {"address", "include-dashboard", "port", "redis-shard-ports", "head"}
    return any(
        value.lower() != "false" or (name == "address" and head) for name, value in params.items() if name in elsewhere
    )


def empty_boolean(params: dict[str, str]) -> bool:
    """Whether click 8.3 and newer accept what older ones, which images have, refuse."""
    return any(OPTIONS[name].kind == "boolean" and not value for name, value in params.items() if name in OPTIONS)


@pytest.mark.differential
def test_generated_flags_are_judged_equally(compared: Compared) -> None:
    tally: Counter[str] = Counter()

    @given(params=st.dictionaries(NAMES, VALUES, min_size=1, max_size=1), head=st.booleans())
    def judge(params: dict[str, str], head: bool) -> None:
        ours = list(problems_of_params(params, INSTALLED, head, ()))
        # KubeRay passes nothing for a switch that is false, so Ray does not see that the name is wrong.
        false = "false" in [value.lower() for value in params.values()]
        unseen = false and {"ray-start-option"} == {problem.rule for problem in ours}
        assert bool(ours) == refused_by_ray(params, head) or unseen or empty_boolean(params), (ours, params)
        tally["refused" if ours else "accepted"] += 1

    judge()
    compared("ray start's parser", f"flags of Ray {INSTALLED}", tally)


def test_every_option_of_the_installed_ray_is_known() -> None:
    from ray.scripts.scripts import start

    names = {name.removeprefix("--") for option in start.params for name in option.opts if name.startswith("--")}
    known = {name for name, option in OPTIONS.items() if not option.until}
    assert names - {"help"} == known


def test_valid_flags_pass() -> None:
    valid = {"num-cpus": "$CPUS", "resources": shlex.quote(json.dumps({"spot": 1})), "block": "true"}
    assert list(problems_of_params(valid, INSTALLED, True, ())) == []


@pytest.mark.parametrize(("version", "refused"), [("2.44.1", True), ("2.45.0", False), (None, False)])
def test_labels_of_a_group_need_a_ray_that_reads_them_as_kuberay_writes_them(
    version: str | None, refused: bool
) -> None:
    """`ray start --labels=a=b` of 2.44.1 ends: it expects JSON."""
    assert bool(list(problems_of_labels({"a": "b"}, version, ("labels",)))) is refused
    assert list(problems_of_labels({}, version, ("labels",))) == []
