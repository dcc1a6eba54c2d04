"""Levels, options and exceptions."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.problems import StackFileError
from core.stack_file import stack_name
from policies.configuration import Configuration, Level, PoliciesSettings
from policies.judge import Judge, Report
from policies.read import ConfigurationError, load, of_config, of_stack_file
from policies.rules import BY_ID
from policies.values import UNKNOWN, Object
from stacks.load import load as settings_of_file
from testbed.policies.bodies import deployment

TODAY = date(2026, 11, 20)
EXCEPTION = {
    "rule": "pod-no-privileged",
    "object": "Deployment/team-a/*",
    "reason": "the node exporter reads disks",
    "owner": "platform",
    "expires": date(2026, 12, 31),
}


def privileged(configuration: Configuration, environment: str = "prod", today: date = TODAY) -> Report:
    """The report of a Deployment that violates one rule."""
    body = deployment()
    body["spec"]["template"]["spec"]["containers"][0]["securityContext"]["privileged"] = True
    return Judge(configuration, environment, today).report([Object(body)])


def test_a_stack_that_is_not_named_has_all_mandatory_but_advice() -> None:
    nothing = Configuration().environment("prod")
    assert nothing.level_of(BY_ID["pod-no-privileged"]) is Level.MANDATORY
    assert nothing.level_of(BY_ID["img-digest"]) is Level.ADVISORY


def test_levels_are_those_of_the_first_stack_whose_name_fits() -> None:
    configuration = Configuration.model_validate(
        {
            "environments": {
                "dev*": {"level": "advisory", "rules": {"img-digest": "mandatory", "pod-no-host": "disabled"}},
                "*": {"level": "disabled"},
            }
        }
    )
    dev = configuration.environment("dev-2")
    assert [dev.level_of(BY_ID[each]) for each in ("pod-no-privileged", "img-digest", "pod-no-host")] == [
        Level.ADVISORY,
        Level.MANDATORY,
        Level.DISABLED,
    ]
    assert privileged(configuration, "dev").blocked is False
    assert privileged(configuration, "dev").findings
    assert privileged(configuration, "other").findings == ()


def test_an_exception_lets_one_object_violate_one_rule_until_a_day() -> None:
    configuration = Configuration.model_validate({"exceptions": [EXCEPTION]})
    [excepted] = privileged(configuration).findings
    assert excepted.exception is configuration.exceptions[0]
    assert not privileged(configuration).blocked
    assert privileged(configuration, today=date(2026, 12, 31)).blocked is False


def test_an_expired_exception_has_no_effect_and_is_named() -> None:
    configuration = Configuration.model_validate({"exceptions": [EXCEPTION]})
    report = privileged(configuration, today=date(2027, 1, 1))
    assert report.blocked
    assert report.findings[0].expired is configuration.exceptions[0]


def test_in_a_preview_that_does_not_know_the_namespace_kind_and_name_do() -> None:
    configuration = Configuration.model_validate({"exceptions": [{**EXCEPTION, "object": "Deployment/team-a/it"}]})
    [exception] = configuration.exceptions
    for metadata, covered in (({"name": "it"}, True), ({"name": "other"}, False), ({"name": UNKNOWN}, True)):
        deployment_ = Object({**deployment(), "metadata": {**metadata, "namespace": UNKNOWN}})
        assert exception.covers("pod-no-privileged", deployment_) is covered


@pytest.mark.parametrize("other", [{"rule": "pod-nonroot"}, {"object": "Deployment/team-b/*"}])
def test_an_exception_applies_to_nothing_else(other: dict[str, str]) -> None:
    assert privileged(Configuration.model_validate({"exceptions": [{**EXCEPTION, **other}]})).blocked


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"exceptions": [{**EXCEPTION, "rule": "pod-priviledged"}]},
            "there is no rule 'pod-priviledged': did you mean",
        ),
        (
            {"exceptions": [{key: EXCEPTION[key] for key in EXCEPTION if key != "owner"}]},
            "exceptions[0].owner: is required",
        ),
        ({"exceptions": [{**EXCEPTION, "expires": "soon"}]}, "exceptions[0].expires: 'soon' is not allowed"),
        (
            {"environments": {"prod": {"rules": {"nothing": "advisory"}}}},
            "environments.prod.rules.nothing: there is no rule 'nothing'",
        ),
        (
            {"environments": {"prod": {"level": "hard"}}},
            "'hard' is not allowed: use 'advisory', 'mandatory', 'remediate' or 'disabled'",
        ),
        ({"options": {"ray-min-version": {"version": "2.60"}}}, "options.ray-min-version.version: "),
        ({"options": {"ray-min-version": {"versions": "2.60.0"}}}, "unknown key 'versions': did you mean 'version'?"),
        ({"options": {"pod-no-host": {}}}, "options.pod-no-host: unknown key 'pod-no-host'"),
        ({"option": {}}, "option: unknown key 'option': did you mean 'options'?"),
        (["a"], "a list is not allowed: a mapping (`key: value`) is expected here"),
    ],
)
def test_an_error_is_reported_with_its_place(content: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "configuration.yaml"
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigurationError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)


SETTINGS: dict[str, Any] = {
    "level": "advisory",
    "rules": {"pod-no-host": "mandatory"},
    "options": {"ray-min-version": {"version": "2.50.0"}},
    "exceptions": [{**EXCEPTION, "expires": "2026-12-31"}],
}
"""Policies of a stack file."""


def test_settings_of_a_stack_override_the_pack_s_configuration_rule_by_rule() -> None:
    pack = Configuration.model_validate(
        {
            "environments": {
                "prod": {
                    "level": "mandatory",
                    "rules": {"pod-no-host": "disabled", "img-digest": "mandatory"},
                    "options": {"ray-head-memory": {"gibibytes": 8}},
                }
            },
            "options": {"ray-min-version": {"version": "2.60.0"}, "ray-most-workers": {"replicas": 9}},
            "exceptions": [{**EXCEPTION, "rule": "pod-nonroot"}],
        }
    )
    effective = pack.with_stack("prod", PoliciesSettings.model_validate(SETTINGS)).environment("prod")
    ids = ("pod-no-privileged", "pod-no-host", "img-digest")
    assert [effective.level_of(BY_ID[each]) for each in ids] == [Level.ADVISORY, Level.MANDATORY, Level.MANDATORY]
    options = [
        effective.options_of(BY_ID[each]).model_dump()
        for each in ("ray-min-version", "ray-most-workers", "ray-head-memory")
    ]
    assert options == [{"version": "2.50.0"}, {"replicas": 9}, {"gibibytes": 8}]
    assert [each.rule for each in effective.exceptions] == ["pod-nonroot", "pod-no-privileged"]


def test_a_stack_without_a_level_has_the_level_of_the_pack_s_configuration() -> None:
    pack = Configuration.model_validate({"environments": {"dev": {"level": "advisory"}}})
    effective = pack.with_stack("dev", PoliciesSettings.model_validate({"rules": {"pod-no-host": "mandatory"}}))
    assert effective.environment("dev").level_of(BY_ID["pod-no-privileged"]) is Level.ADVISORY


def test_a_stack_file_and_the_engine_pass_the_same_policies(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(yaml.safe_dump({"config": {"ray-platform:policies": SETTINGS, "shop:key": "value"}}))
    assert stack_name(file) == "prod"
    assert of_stack_file(file) == of_config({"ray-platform:policies": json.dumps(SETTINGS), "shop:key": "value"})
    assert of_stack_file(file).exceptions[0].expires == date(2026, 12, 31)
    assert of_config({}) == PoliciesSettings()


def test_an_error_in_a_stack_file_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text("config:\n  ray-platform:policies:\n    rules:\n      pod-no-hosts: disabled\n")
    with pytest.raises(ConfigurationError) as refused:
        of_stack_file(file)
    message = "ray-platform:policies.rules.pod-no-hosts: there is no rule 'pod-no-hosts': did you mean pod-no-host?"
    assert str(refused.value).startswith(f"{file}:4:")
    assert str(refused.value).endswith(message)
    with pytest.raises(StackFileError, match="there is no rule 'pod-no-hosts'"):
        settings_of_file(file)
    with pytest.raises(ConfigurationError, match=r"ray-platform:policies.*a mapping .* is expected here"):
        of_config({"ray-platform:policies": "advisory"})


def test_a_file_that_is_not_yaml_or_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: [")
    for name in ("a.yaml", "b.yaml"):
        with pytest.raises(ConfigurationError, match=f"{name}: cannot be read"):
            load(tmp_path / name)


def test_the_pack_s_own_file_is_valid_and_has_no_exception() -> None:
    assert load().exceptions == ()
    assert load().environment("dev").level is Level.ADVISORY
    assert load().environment("prod").level is Level.MANDATORY
