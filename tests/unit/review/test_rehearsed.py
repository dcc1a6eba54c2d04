"""What a review takes from `make rehearse`: its report for programs, here of a rehearsal with a late RayCluster."""

import json
from pathlib import Path

import pytest

from local.rehearse.report import as_object
from stacks.commands.review.reports import NoRehearsalError, rehearsals
from testbed.commands import stacks
from tests.unit.local.rehearse.test_comparison import ALL, FITS, found, rehearsed
from tests.unit.review.story import STACK, TENANT, repository


@pytest.fixture
def report(tmp_path: Path) -> Path:
    file = tmp_path / "rehearsal.json"
    file.write_text(json.dumps(as_object(rehearsed(FITS, found(*ALL, late=True)))))
    return file


def test_the_comment_has_what_was_not_ready(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    repository(folder)
    monkeypatch.chdir(folder)
    Path("Pulumi.prod.yaml").write_text(STACK + TENANT)
    arguments = ["review", "--base", "main", "--rehearsal-json", str(report)]
    done = stacks(*arguments)
    assert "- **Rehearsal**: 1 of 2 RayClusters were ready\n- **Rehearsal**, not ready: b/training" in done.stdout
    assert "<summary>Problems of the rehearsal of prod: 1</summary>" in done.stdout
    [stack] = json.loads(stacks(*arguments, "--format", "json").stdout)["stacks"]
    assert stack["rehearsal"] == {"well": False, "ready": 1, "clusters": 2, "problems": ["not ready: b/training"]}


def test_a_rehearsal_without_problems_is_one_line(report: Path) -> None:
    report.write_text(json.dumps(as_object(rehearsed(FITS, found(*ALL)))))
    rehearsal = rehearsals([report])["prod"]
    assert (rehearsal.well, rehearsal.ready, rehearsal.problems) == (True, 2, ())


@pytest.mark.parametrize("text", ["[]", "{}", "no JSON", '{"stack": "prod", "well": 1}'])
def test_another_file_is_refused(report: Path, text: str) -> None:
    report.write_text(text)
    with pytest.raises(NoRehearsalError, match=r"rehearsal\.json: is no report of a rehearsal: write it with"):
        rehearsals([report])
