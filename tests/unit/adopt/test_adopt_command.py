"""`ray-platform adopt`, with a cluster whose answers each test sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from core.stack_file import stack_file
from stacks.commands.adopt.command import adopt
from stacks.commands.adopt.entry import CannotInsertError, insert_cluster, only_added
from stacks.load import load, settings_of
from testbed.fake_cluster import FakeCluster
from tests.unit.adopt.live import live

Run = Callable[..., Result]

WRITTEN = """\
# Ours.
config:
  ray-platform:operator: {install: existing}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written = tmp_path / "Pulumi.staging.yaml"
    written.write_text(WRITTEN)
    return written


@pytest.fixture
def run(file: Path, in_memory: FakeCluster) -> Run:
    """Runs the command on `research/training`, which exists."""
    in_memory.add(live())
    app = typer.Typer()
    app.command()(adopt)
    return lambda *arguments: CliRunner().invoke(app, [*(arguments or ("staging", "research/training"))])


def test_it_shows_the_lines_to_add_and_writes_nothing(run: Run, file: Path) -> None:
    done = run()
    assert done.exit_code == 0
    assert "+        - name: training" in done.stdout
    assert "+          adopt: true" in done.stdout
    assert file.read_text() == WRITTEN


def test_it_adds_the_lines_to_the_stack_file(run: Run, file: Path) -> None:
    done = run("staging", "research/training", "--write")
    assert done.exit_code == 0, done.output
    assert file.read_text().startswith(WRITTEN)
    (tenant,) = load(file).tenants
    assert not tenant.create_namespace
    assert [cluster.name for cluster in tenant.clusters] == ["training"]


def test_a_full_disk_leaves_the_stack_file_as_it_was(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fresh: Path, *_: Any, **__: Any) -> None:
        fresh.open("w").close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    done = run("staging", "research/training", "--write")
    assert done.exit_code == 1
    assert done.stderr.endswith("error: Pulumi.staging.yaml cannot be written: No space left on device\n")
    assert ([each.name for each in tmp_path.iterdir()], file.read_text()) == (["Pulumi.staging.yaml"], WRITTEN)


def test_a_link_to_the_stack_file_stays_one(run: Run, file: Path, tmp_path: Path) -> None:
    real = file.rename(tmp_path / "staging.yaml")
    real.chmod(0o640)
    file.symlink_to("staging.yaml")
    assert run("staging", "research/training", "--write").exit_code == 0
    assert file.is_symlink()
    assert ("- name: training" in real.read_text(), real.stat().st_mode & 0o777) == (True, 0o640)


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (("staging", "training"), 2, "'training' is not NAMESPACE/NAME: write for example team-a/training"),
        (("prod", "research/training"), 2, "there is no stack file Pulumi.prod.yaml"),
    ],
)
def test_wrong_use_is_one_line(run: Run, arguments: tuple[str, ...], code: int, shown: str) -> None:
    done = run(*arguments)
    assert done.exit_code == code
    assert done.stderr.startswith(f"error: {shown}")
    assert done.stderr.count("\n") == 1


def test_a_second_adoption_has_nothing_to_adopt(run: Run) -> None:
    run("staging", "research/training", "--write")
    done = run()
    assert done.exit_code == 1
    assert "already: there is nothing to adopt" in done.stderr


OTHERS = """\
config:
  ray-platform:operator: {install: existing}
  ray-platform:tenants:
    - &common
      name: other
      clusters:
        - {name: first, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0"}
    - name: research
      createNamespace: false
"""


def test_clusters_that_are_repeated_from_another_tenant_are_not_lost(run: Run, file: Path) -> None:
    text = OTHERS.replace("- name: research", "- <<: *common\n      name: research")
    file.write_text(text)
    done = run("staging", "research/training", "--write")
    assert done.exit_code == 1
    assert "the lines would not add RayCluster research/training alone: write out the aliases" in done.stderr
    assert file.read_text() == text


def test_texts_that_look_like_numbers_are_adopted_as_they_are(run: Run, file: Path, in_memory: FakeCluster) -> None:
    body = live(labels={"commit": "1234567e1"})
    env = [{"name": "LR", "value": "1e-4"}, {"name": "NOTE", "value": "a\u2028b\u0085c"}]
    body["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = env
    in_memory.add(body)
    done = run("staging", "research/training", "--write")
    assert done.exit_code == 0, done.output
    [cluster] = load(file).tenants[0].clusters
    assert cluster.labels == {"commit": "1234567e1"}
    assert cluster.head.env == {"LR": "1e-4", "NOTE": "a\u2028b\u0085c"}


def test_lines_that_are_read_as_another_cluster_are_refused(file: Path) -> None:
    text = insert_cluster(WRITTEN, {"name": "research"}, {**ENTRY, "env": {"NOTE": "b"}})
    before, after = (settings_of(stack_file(file, each)) for each in (WRITTEN, text))
    only_added(before, after, "research", {**ENTRY, "env": {"NOTE": "b"}})
    with pytest.raises(CannotInsertError, match="would not add RayCluster research/training alone"):
        only_added(before, after, "research", {**ENTRY, "env": {"NOTE": "a"}})


ENTRY = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
