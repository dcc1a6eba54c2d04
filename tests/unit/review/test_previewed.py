"""What a review takes from `pulumi preview --json` and from `make rehearse`.

preview.json is of Pulumi 3.259, shortened.
"""

import json
from pathlib import Path

import pytest

from local.rehearse.report import as_object
from stacks.commands.review.reports import NoPreviewError, NoRehearsalError, Preview, Step, previews, rehearsals
from testbed.commands import stacks
from tests.unit.local.rehearse.test_observed import ALL, FITS, found, rehearsed
from tests.unit.review.story import STACK, TENANT, repository

FILE = Path(__file__).with_name("preview.json")

CLUSTER = "kubernetes:ray.io/v1:RayCluster team-a/training-ray-cluster"


def test_a_preview_is_of_the_stack_in_its_urns() -> None:
    [(stack, preview)] = previews([FILE]).items()
    assert stack == "dev"
    assert preview.counts == {"create": 2, "update": 1}
    fields = ("metadata.annotations.ray-platform/digest", "spec.autoscalerOptions.idleTimeoutSeconds")
    assert preview.steps[-1] == Step("update", CLUSTER, fields)
    assert preview.errors == 0


def test_previews_of_the_parts_of_an_environment_are_one(tmp_path: Path) -> None:
    part = tmp_path / "part.json"
    part.write_text(FILE.read_text().replace("urn:pulumi:dev::", "urn:pulumi:dev.tenants-01::"))
    [(stack, preview)] = previews([FILE, part]).items()
    assert (stack, preview.counts) == ("dev", {"create": 4, "update": 2})


def test_a_preview_of_all_stacks_of_an_environment_is_in_one_file(tmp_path: Path) -> None:
    """As `ray-platform preview --json` writes it."""
    [group, platform] = (
        [{"op": "same", "urn": f"urn:pulumi:{stack}::ray-platform::pulumi:pulumi:Stack::ray-platform-{stack}"}]
        for stack in ("dev.tenants-01", "dev")
    )
    stacks = [{"stack": "dev", "errors": ["hidden-in-no-way"]}, {"stack": "dev.tenants-01", "errors": []}]
    file = tmp_path / "preview.json"
    file.write_text(json.dumps({"environment": "dev", "stacks": stacks, "steps": [*group, *platform]}))
    assert previews([file]) == {"dev": Preview((), errors=1)}


def test_it_is_shown_without_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(FILE.read_text())
    [update] = [each for each in found["steps"] if each["op"] == "update"]
    update["newState"]["inputs"] = {"value": "hidden-in-no-way"}
    gone = {"op": "delete", "urn": update["urn"].replace("training", "old"), "oldState": {"inputs": {"a": "b"}}}
    found["steps"] += [gone, {**gone, "op": "create-replacement"}, {**gone, "op": "delete-replaced"}]
    found["diagnostics"] = [{"severity": "error", "message": "hidden-in-no-way"}]
    repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("Pulumi.dev.yaml").write_text(STACK + TENANT)
    Path("preview.json").write_text(json.dumps(found))
    done = stacks("review", "--base", "main", "--preview-json", "preview.json")
    assert (
        "- **Preview**: 2 to create, 1 to update, 1 to delete. It reported errors, 1: its log has them" in done.stdout
    )
    assert f"- **Preview, delete**: {CLUSTER.replace('training', 'old')}" in done.stdout
    assert f"| {CLUSTER} | update | metadata.annotations.ray-platform/digest, spec." in done.stdout
    assert "hidden-in-no-way" not in done.stdout


def test_changes_are_compared_without_values() -> None:
    """Workflows compare the approved preview with the one before the update by what this prints."""
    done = stacks("changes", str(FILE))
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["create", "create", "update"]
    assert lines[-1].endswith("metadata.annotations.ray-platform/digest spec.autoscalerOptions.idleTimeoutSeconds")


@pytest.mark.parametrize("text", ["[]", '{"steps": 1}', '{"steps": []}', "no JSON", '{"steps": [1]}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "preview.json"
    file.write_text(text)
    with pytest.raises(NoPreviewError, match=r"preview\.json: "):
        previews([file])


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
def test_another_report_is_refused(report: Path, text: str) -> None:
    report.write_text(text)
    with pytest.raises(NoRehearsalError, match=r"rehearsal\.json: is not a report of a rehearsal: write it with"):
        rehearsals([report])
