"""`ray-platform check`: its arguments, its output, its exit codes."""

import errno
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from stacks import __main__
from stacks.commands.check.command import MISUSED
from stacks.settings import StackSettings
from testbed.commands import stacks

ROOT = Path(__file__).parents[3]
GOOD = "config:\n  ray-platform:operator: {replicas: 2}\n"
BAD = "config:\n  ray-platform:operator:\n    replicas: 9\n    env: {A: 'b,c:d', API_TOKEN: hunter2}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "Pulumi.yaml").write_text("name: ray-platform\nruntime: python\n")
    (tmp_path / "Pulumi.good.yaml").write_text(GOOD)
    (tmp_path / "Pulumi.bad.yaml").write_text(BAD)
    return tmp_path


check = partial(stacks, "check")


@pytest.mark.parametrize(
    ("arguments", "code", "count"),
    [
        (["good"], 0, "1 file: no findings"),
        (["Pulumi.good.yaml"], 0, "1 file: no findings"),
        (["./Pulumi.good.yaml", "good"], 0, "2 files: no findings"),
        (["bad"], 1, "2 findings in 1 file"),
        ([], 1, "2 findings in 2 files"),
        (["good", "missing"], 2, "1 finding in 2 files"),
        (["bad", "missing"], 2, "3 findings in 2 files"),
        (["./"], 2, "1 finding in 1 file"),
    ],
)
def test_stacks_and_files_are_checked_and_the_exit_code_is_the_result(
    arguments: list[str], code: int, count: str
) -> None:
    result = check(*arguments)
    assert result.output.splitlines()[-1] == count
    assert result.exit_code == code


def test_the_name_of_a_stack_goes_before_a_file_of_that_name(folder: Path) -> None:
    (folder / "good").write_text("")
    (folder / "bad").mkdir()
    (folder / "other").write_text(GOOD)
    assert [check(each).exit_code for each in ("good", "bad", "other", "./good")] == [0, 1, 0, 1]


def test_a_folder_without_stack_files_is_wrong_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = check()
    assert (result.exit_code, result.output) == (2, "this folder has no Pulumi.*.yaml: name a stack or a file\n")


def test_a_finding_is_shown_with_its_line_and_a_mark_below_the_value() -> None:
    assert check("bad").output.splitlines()[:3] == [
        "Pulumi.bad.yaml:3:15: ray-platform:operator.replicas: 9 is not allowed: give at most 5 [out-of-range]",
        "     3 |     replicas: 9",
        "       |               ^",
    ]


def test_a_long_line_is_shown_around_the_value(folder: Path) -> None:
    (folder / "Pulumi.long.yaml").write_text(f"config: {{a:b: {'x' * 300}, ray-platform:nodes: 5, c:d: {'y' * 300}}}\n")
    _, line, mark, _ = check("long").output.splitlines()
    assert len(line) < 130
    assert line[mark.index("^")] == "5"


def test_no_control_characters_are_printed(folder: Path) -> None:
    (folder / "Pulumi.odd.yaml").write_text("config: \x1b[31m\n# \u202e\nray-platform:\u202ex: 1\n")
    assert check("odd").output.replace("\n", "").isprintable()


def test_json_has_an_object_with_the_same_keys_for_each_finding() -> None:
    result = check("--format", "json", "bad", "missing")
    first, secret, missing = json.loads(result.output)
    assert first == {
        "file": "Pulumi.bad.yaml",
        "line": 3,
        "column": 15,
        "endColumn": 16,
        "path": ["ray-platform:operator", "replicas"],
        "place": "ray-platform:operator.replicas",
        "value": 9,
        "message": "9 is not allowed: give at most 5",
        "rule": "out-of-range",
    }
    assert secret["value"] is None
    assert missing == {
        **dict.fromkeys(first),
        "file": "Pulumi.missing.yaml",
        "path": [],
        "place": "",
        "message": "cannot be read: No such file or directory. Stacks here: bad, good",
        "rule": "unreadable",
    }


@pytest.mark.parametrize(("form", "code", "shown"), [("json", 0, "[]\n"), ("github", 0, ""), ("xml", 2, "")])
def test_a_good_file_has_no_findings_in_any_format_and_an_unknown_one_is_wrong_use(
    form: str, code: int, shown: str
) -> None:
    done = check("--format", form, "good")
    assert (done.exit_code, done.stdout) == (code, shown)


def test_github_annotates_the_line_in_a_pull_request(folder: Path) -> None:
    (folder / "a,b%.yaml").write_text("config:\n  ray-platform:oops%: 1\n")
    known = ", ".join(to_camel(key) for key in StackSettings.model_fields)
    assert check("--format", "github", "a,b%.yaml").output == (
        "::error file=a%2Cb%25.yaml,line=2,col=3,endColumn=21,title=unknown-field::['ray-platform:oops%25']: "
        f"unknown key 'oops%25': Known keys: {known}\n"
    )


def test_it_runs_as_a_module() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "stacks", "check", "dev"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1 file: no findings\n", "")


def test_a_pipe_without_a_writer_is_refused_and_standard_input_is_not(folder: Path) -> None:
    os.mkfifo(folder / "Pulumi.pipe.yaml")
    refused = check("pipe")
    assert (refused.exit_code, "is a pipe" in refused.output) == (2, True)
    command = [sys.executable, "-m", "stacks", "check", "/dev/stdin"]
    read = subprocess.run(command, cwd=ROOT, input=GOOD, capture_output=True, text=True, check=False)
    assert (read.returncode, read.stdout) == (0, "1 file: no findings\n")


@pytest.mark.parametrize(("output", "reason"), [(">/dev/full", "No space left on device"), (">&-", "is closed")])
def test_an_output_that_cannot_be_written_is_no_finding(folder: Path, output: str, reason: str) -> None:
    command = f"exec {sys.executable} -m stacks check {folder}/Pulumi.good.yaml {output}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert reason in done.stderr


def test_people_see_the_first_thousand_findings(folder: Path) -> None:
    names = ", ".join(["{name: t}"] * 1_500)
    (folder / "Pulumi.many.yaml").write_text(f"config:\n  ray-platform:tenants: [{names}]\n")
    more, count = check("many").output.splitlines()[-2:]
    assert (more, count) == ("... and 499 more: correct these first", "1499 findings in 1 file")


def test_a_file_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "stack-file.schema.json")

    monkeypatch.setattr(__main__, "app", command)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == MISUSED
    assert capsys.readouterr().err == "stack-file.schema.json cannot be written: Read-only file system\n"
