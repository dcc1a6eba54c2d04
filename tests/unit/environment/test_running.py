"""The order in which the stacks of an environment run, and the effect of one's failure on the others."""

import json
import threading
import time
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from pulumi.automation import CommandError, CommandResult, EngineEvent

from stacks.commands.environment.driver import Operation, Options, Outcome, as_object, exit_code, run, summary
from stacks.commands.environment.workspace import ROOT, Stacks, StacksError, configuration_of
from stacks.load import load, parse
from stacks.program.config import running_stack
from stacks.settings import StackSettings

SPLIT = parse({"split": {"stacks": 2}, "tenants": [{"name": name} for name in ("amber", "blue", "green", "red")]})
LONGEST_VARIABLE = 128 * 1024
"""Bytes (Linux, include/uapi/linux/binfmts.h: MAX_ARG_STRLEN)."""

ALL = ("prod", "prod.tenants-01", "prod.tenants-02")


class Engine:
    """Stands for Pulumi: records the calls, and fails where a test sets it."""

    environment, file = "prod", ROOT / "Pulumi.prod.yaml"

    def __init__(self, existing: Collection[str] = ALL, failing: Collection[str] = (), seconds: float = 0) -> None:
        self.ran: list[str] = []
        self.created: list[str] = []
        self.steps: list[dict[str, Any]] = []
        self._existing, self._failing, self._seconds = existing, failing, seconds
        self._lock = threading.Lock()

    def existing(self) -> Collection[str]:
        return self._existing

    def create(self, name: str) -> None:
        self.created.append(name)

    def stack(self, name: str, *, preview: bool) -> Any:
        def operation(*, on_event: Any, **_: Any) -> Any:
            with self._lock:
                self.ran.append(name)
            time.sleep(self._seconds)
            if name in self._failing:
                diagnostic = {"message": "team-a/training is not ready", "severity": "error", "color": "never"}
                on_event(EngineEvent.from_json({"sequence": 1, "timestamp": 0, "diagnosticEvent": diagnostic}))
                raise CommandError(CommandResult(stdout="Diagnostics:", stderr="", code=255))
            for step in self.steps:
                on_event(EngineEvent.from_json({"sequence": 1, "timestamp": 0, "resourcePreEvent": {"metadata": step}}))
            summary = {"resourceChanges": {"create": 2, "same": 1}}
            on_event(EngineEvent.from_json({"sequence": 1, "timestamp": 0, "summaryEvent": summary}))
            return SimpleNamespace(stdout="")

        return SimpleNamespace(up=operation, preview=operation, refresh=operation, destroy=operation)


def ran(engine: Engine, operation: Operation, settings: StackSettings = SPLIT, **options: Any) -> list[Outcome]:
    shown: list[Outcome] = []
    outcomes = run(cast("Stacks", engine), settings, operation, Options(parallel=2, **options), shown.append)
    assert {each.stack for each in shown} == {each.stack for each in outcomes}
    return outcomes


def test_the_platform_is_updated_before_the_tenants_and_destroyed_after_them() -> None:
    engine = Engine()
    outcomes = ran(engine, "up")
    assert engine.ran[0] == "prod"
    assert [each.stack for each in outcomes] == list(ALL)
    assert outcomes[0].changes == {"create": 2, "same": 1}
    assert exit_code(outcomes) == 0
    engine = Engine()
    ran(engine, "destroy")
    assert engine.ran[-1] == "prod"


def test_a_failed_tenant_stops_no_others_and_reports_its_first_error() -> None:
    outcomes = ran(Engine(failing=["prod.tenants-01"]), "up")
    assert [each.result for each in outcomes] == ["done", "failed", "done"]
    assert outcomes[1].errors == ("team-a/training is not ready",)
    assert exit_code(outcomes) == 1
    # Previews need no order.
    assert [each.result for each in ran(Engine(failing=["prod"]), "preview")] == ["failed", "done", "done"]


def test_after_a_killed_command_the_summary_has_the_command_that_recovers(capsys: pytest.CaptureFixture[str]) -> None:
    errors = ("error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end",)
    summary("prod", "up", [Outcome("prod", "done"), Outcome("prod.tenants-01", "failed", errors=errors)])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "If the other command was killed: ray-platform recover prod"


def test_a_truncated_state_is_to_be_restored_first(capsys: pytest.CaptureFixture[str]) -> None:
    errors = ("error: failed to load checkpoint: unexpected end of JSON input",)
    summary("prod", "up", [Outcome("prod", "failed", errors=errors)])
    assert "recover" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("operation", "failing", "skipped"),
    [("up", "prod", ["prod.tenants-01", "prod.tenants-02"]), ("destroy", "prod.tenants-02", ["prod"])],
)
def test_stacks_that_need_a_failed_stack_are_skipped(operation: Operation, failing: str, skipped: list[str]) -> None:
    outcomes = ran(Engine(failing=[failing]), operation)
    assert [each.stack for each in outcomes if each.result == "skipped"] == skipped
    assert exit_code(outcomes) == 1


def test_programs_read_the_steps_of_all_previews_without_values() -> None:
    engine = Engine(existing=["prod"])
    state = {"type": "kubernetes:core/v1:Namespace", "urn": "urn:a", "id": "a", "inputs": {"value": "hidden"}}
    urn = "urn:pulumi:prod::ray-platform::kubernetes:core/v1:Namespace::platform-namespace-team-a"
    differs = {"detailedDiff": {"metadata.labels": {"kind": "update", "diffKind": "update", "inputDiff": True}}}
    stack = "urn:pulumi:prod::ray-platform::pulumi:pulumi:Stack::ray-platform-prod"
    engine.steps = [
        {"op": "same", "urn": stack, "type": "pulumi:pulumi:Stack"},
        {"op": "same", "urn": urn.replace("team-a", "team-b"), "type": state["type"]},
        {"op": "update", "urn": "urn:pulumi:prod::ray-platform::pulumi:providers:pulumi-python::default"},
        {"op": "update", "urn": urn, "old": state, "new": state, "diffs": ["metadata"], **differs},
    ]
    report = as_object("prod", "preview", ran(engine, "preview", parse({})))
    assert report["steps"] == [
        {"op": "same", "urn": stack},
        {
            "op": "update",
            "urn": urn,
            "diffReasons": ["metadata"],
            "detailedDiff": {"metadata.labels": {"kind": "update"}},
        },
    ]


def test_stacks_that_tenants_are_to_have_are_made_and_no_others() -> None:
    engine = Engine(existing=["prod"])
    ran(engine, "up")
    assert sorted(engine.created) == ["prod.tenants-01", "prod.tenants-02"]
    alone = SPLIT.model_copy(update={"tenants": SPLIT.tenants[:1]})
    assert len(ran(Engine(existing=["prod"]), "up", alone)) == 2
    assert [each.stack for each in ran(Engine(existing=["prod"]), "up", parse({}))] == ["prod"]


def test_after_ctrl_c_no_stack_begins_and_running_ones_end() -> None:
    engine = Engine(seconds=0.3)

    def interrupted(_outcome: Outcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cast("Stacks", engine), SPLIT, "refresh", Options(parallel=1), interrupted)
    assert engine.ran == ["prod", "prod.tenants-01"]


def test_one_stack_alone_can_be_run() -> None:
    engine = Engine()
    ran(engine, "up", only=("prod.tenants-02",))
    assert engine.ran == ["prod.tenants-02"]
    with pytest.raises(StacksError, match=r"prod has no stack tenants-02: use one of prod, prod\.tenants-01"):
        ran(engine, "up", only=("tenants-02",))


def test_each_stack_reads_the_stack_file_however_long_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi passes the configuration in an environment variable, and Linux limits these to 128 KiB."""
    file, tenants = (
        tmp_path / "Pulumi.prod.yaml",
        [{"name": f"team-{number:04}", "owner": "people"} for number in range(4000)],
    )
    of_other_programs = {"kubernetes:context": "prod", "ray-platform:policies": {"level": "advisory"}}
    configuration = {"encryptionsalt": "v1:salt", "config": {**of_other_programs, "ray-platform:tenants": tenants}}
    file.write_text(yaml.safe_dump(configuration))
    with configuration_of(file) as made:
        assert made.name == file.name
        handed_over = yaml.safe_load(made.read_text())
    config = handed_over.pop("config")
    assert handed_over == {"encryptionsalt": "v1:salt"}
    assert config.items() >= of_other_programs.items()
    variable = json.dumps(
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    )
    assert len(json.dumps(tenants)) > LONGEST_VARIABLE > len(variable)
    monkeypatch.setenv("PULUMI_CONFIG", variable)
    assert running_stack() == load(file)


def test_characters_beyond_those_of_a_json_escape_reach_the_other_programs(tmp_path: Path) -> None:
    """libyaml, of which Pulumi's parser is a port, refuses JSON's two escapes for one character."""
    file, text = tmp_path / "Pulumi.prod.yaml", "\U0001f600 \u2028 \x85 7e10"
    file.write_text('config:\n  shop:greeting: "\\U0001f600 \\u2028 \\x85 7e10"\n  shop:number: "7e10"\n')
    with configuration_of(file) as made:
        config = yaml.load(made.read_text(), Loader=yaml.CSafeLoader)["config"]
    assert (config["shop:greeting"], config["shop:number"]) == (text, "7e10")


@pytest.mark.parametrize("split", [True, False], ids=["split", "one stack"])
def test_the_encrypted_key_of_cloudera_ml_reaches_the_stack_that_can_decrypt_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: bool
) -> None:
    key = "ray-platform:cmlApiKey"
    file = tmp_path / "Pulumi.prod.yaml"
    config = {key: {"secure": "v1:2PfP"}, "ray-platform:tenants": [{"name": "team-a"}]}
    file.write_text(yaml.safe_dump({"config": config | ({"ray-platform:split": {"stacks": 2}} if split else {})}))
    with configuration_of(file) as made:
        passed = yaml.safe_load(made.read_text())["config"]
    assert passed == {"ray-platform:file": str(file)} | ({} if split else {key: config[key]})
    # Pulumi decrypts it before it starts the program.
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(passed | ({} if split else {key: "hunter2"})))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps([] if split else [key]))
    assert running_stack() == load(file)
