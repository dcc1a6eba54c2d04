"""Levels, options and exceptions."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.configuration import Configuration, ConfigurationError, Level, level, load
from policies.judge import Judge, Report
from policies.rules import BY_ID
from policies.values import UNKNOWN
from policies.walk import Object

from .bodies import deployment

pytestmark = pytest.mark.unit

TODAY = date(2026, 11, 20)
EXCEPTION = {
    "rule": "pod-no-privileged",
    "object": "Deployment/team-a/*",
    "reason": "the node exporter reads disks",
    "owner": "platform",
    "expires": date(2026, 12, 31),
}


def privileged(configuration: Configuration, environment: str = "prod", today: date = TODAY) -> Report:
    """What is said of a Deployment that breaks one rule."""
    made = deployment()
    made["spec"]["template"]["spec"]["containers"][0]["securityContext"]["privileged"] = True
    return Judge(configuration, environment, today).report([Object(made)])


def test_a_stack_that_is_not_named_has_all_mandatory_but_advice() -> None:
    nothing = Configuration().environment("prod")
    assert level(BY_ID["pod-no-privileged"], nothing) is Level.MANDATORY
    assert level(BY_ID["img-digest"], nothing) is Level.ADVISORY


def test_levels_are_those_of_the_first_stack_whose_name_fits() -> None:
    said = Configuration.model_validate(
        {
            "environments": {
                "dev*": {"level": "advisory", "rules": {"img-digest": "mandatory", "pod-no-host": "disabled"}},
                "*": {"level": "disabled"},
            }
        }
    )
    dev = said.environment("dev-2")
    assert [level(BY_ID[each], dev) for each in ("pod-no-privileged", "img-digest", "pod-no-host")] == [
        Level.ADVISORY,
        Level.MANDATORY,
        Level.DISABLED,
    ]
    assert privileged(said, "dev").blocked is False
    assert privileged(said, "dev").findings
    assert privileged(said, "other").findings == ()


def test_an_exception_lets_one_object_break_one_rule_until_a_day() -> None:
    said = Configuration.model_validate({"exceptions": [EXCEPTION]})
    [excepted] = privileged(said).findings
    assert excepted.exception is said.exceptions[0]
    assert not privileged(said).blocked
    assert privileged(said, today=date(2026, 12, 31)).blocked is False


def test_an_exception_that_has_ended_excepts_nothing_and_is_named() -> None:
    said = Configuration.model_validate({"exceptions": [EXCEPTION]})
    report = privileged(said, today=date(2027, 1, 1))
    assert report.blocked
    assert report.findings[0].expired is said.exceptions[0]


def test_in_a_preview_that_does_not_know_the_namespace_kind_and_name_do() -> None:
    said = Configuration.model_validate({"exceptions": [{**EXCEPTION, "object": "Deployment/team-a/it"}]})
    [exception] = said.exceptions
    for metadata, covered in (({"name": "it"}, True), ({"name": "other"}, False), ({"name": UNKNOWN}, True)):
        made = Object({**deployment(), "metadata": {**metadata, "namespace": UNKNOWN}})
        assert exception.covers("pod-no-privileged", made) is covered


@pytest.mark.parametrize("other", [{"rule": "pod-nonroot"}, {"object": "Deployment/team-b/*"}])
def test_an_exception_holds_for_nothing_else(other: dict[str, str]) -> None:
    assert privileged(Configuration.model_validate({"exceptions": [{**EXCEPTION, **other}]})).blocked


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            {"exceptions": [{**EXCEPTION, "rule": "pod-priviledged"}]},
            "there is no rule 'pod-priviledged': did you mean",
        ),
        (
            {"exceptions": [{key: EXCEPTION[key] for key in EXCEPTION if key != "owner"}]},
            "exceptions.0.owner: Field req",
        ),
        ({"exceptions": [{**EXCEPTION, "expires": "soon"}]}, "exceptions.0.expires"),
        ({"environments": {"prod": {"rules": {"nothing": "advisory"}}}}, "environments.prod.rules: there is no rule"),
        ({"environments": {"prod": {"level": "hard"}}}, "'advisory', 'mandatory' or 'disabled'; received 'hard'"),
        ({"options": {"ray-min-version": {"version": "2.60"}}}, "options.ray-min-version.version: "),
        ({"options": {"ray-min-version": {"versions": "2.60.0"}}}, "options.ray-min-version.versions: Extra inputs"),
        ({"option": {}}, "option: Extra inputs are not permitted"),
        (["a"], "the file: "),
    ],
)
def test_a_fault_is_said_with_its_place(said: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "said.yaml"
    file.write_text(yaml.safe_dump(said))
    with pytest.raises(ConfigurationError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)


def test_a_file_that_is_no_yaml_or_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: [")
    for name in ("a.yaml", "b.yaml"):
        with pytest.raises(ConfigurationError, match=f"{name}: cannot be read"):
            load(tmp_path / name)


def test_the_pack_s_own_file_is_sound_and_has_no_exception() -> None:
    assert load().exceptions == ()
    assert load().environment("dev").level is Level.ADVISORY
    assert load().environment("prod").level is Level.MANDATORY
