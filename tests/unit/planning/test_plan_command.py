"""`ray-platform plan`: its output in each format, and its exit codes."""

import json
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from core.quantities import amount
from stacks.commands.plan.report import figure
from testbed.commands import stacks

NODES = "  ray-platform:nodes:\n    - {pool: a100, count: 2, cpu: 64, memory: 1000Gi, gpus: 8}\n"
TENANT = """\
  ray-platform:tenants:
    - name: NAME
      clusters:
        - {name: training, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0", workers: {pool: a100}}
"""
STRICT = "  ray-platform:capacity: {overcommitment: error}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "Pulumi.one.yaml").write_text(f"config:\n{NODES}{TENANT.replace('NAME', 'team-a')}")
    (tmp_path / "Pulumi.two.yaml").write_text(f"config:\n{NODES}{TENANT.replace('NAME', 'team-b')}")
    return tmp_path


plan = partial(stacks, "plan")


def test_tables_are_printed_whole_on_any_terminal() -> None:
    result = plan("one")
    assert result.exit_code == 0
    assert "All 2" not in result.output
    assert "The RayCluster can start." in result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["team-a/training", "a100-8gpu", "8", "/", "60", "/", "937Gi", "0", "2", "2", "40s"] in lines
    assert "Time to drain (drainTimeout)" in result.output
    assert "…" not in result.output


def test_a_stack_without_nodes_has_no_figures_of_what_fits(folder: Path) -> None:
    group = "{groupName: small, memory: 1G, cpu: 1, maxReplicas: 2}"
    tenant = TENANT.replace("NAME", "team-a").replace("workers: {pool: a100}", f"workerGroups: [{group}]")
    (folder / "Pulumi.bare.yaml").write_text(f"config:\n{tenant}")
    shown = plan("bare").output
    lines = [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in shown.splitlines()]
    assert ["team-a/training", "small", "0 / 1 / 0.9Gi", "0", "2", "-", "40s"] in lines
    assert ["team-a/training", "-", "0", "-", "-"] in lines
    assert ["team-a", "0 / 2.5 / 16Gi", "- / - / -", "- / - / -", "- / - / -", "-", "-"] in lines
    sentence = "- What fits is unknown, because no ray-platform:nodes is set: add your pools of nodes."
    assert [line for line in shown.splitlines() if line.startswith("- ")] == [sentence]
    together = plan("bare", "--all-stacks").output
    assert [line for line in together.splitlines() if line.startswith("- ")] == [sentence]


@pytest.mark.parametrize(
    ("memory", "shown"),
    [
        *(("0", "0Gi"), ("50Mi", "50Mi"), ("1G", "0.9Gi"), ("1Gi", "1Gi"), ("1536Mi", "1.5Gi"), ("2047Mi", "1.9Gi")),
        *(("12800Mi", "12Gi"), ("100Gi", "100Gi")),
    ],
)
def test_memory_is_rounded_down_and_never_to_nothing(memory: str, shown: str) -> None:
    assert figure({"memory": amount(memory)}, "memory") == shown


def test_json_has_numbers_for_each_stack() -> None:
    [one] = json.loads(plan("one", "--format", "json", "--gpu-hour-price", "2").output)
    assert one["stack"] == "Pulumi.one.yaml"
    assert one["tenants"][0]["maximum"]["gpus"] == one["largestGang"]["gpus"] == 16
    assert one["cost"] == {"always": 0.0, "atMost": 32.0}
    groups = {each["group"]: each for each in one["tenants"][0]["clusters"][0]["groups"]}
    assert groups["a100-4gpu"] == {
        **{"group": "a100-4gpu", "pools": ["a100"], "gpus": 4, "cpu": 30, "memory": 468 * 2**30},
        **{"atFirst": 0, "atMost": 2, "nodesHold": 4, "drainSeconds": 40},
    }
    assert len(json.loads(plan("--format", "json").output)) == 2


def test_markdown_has_a_table_row_for_each_worker_group() -> None:
    lines = plan("one", "--format", "markdown").output.splitlines()
    assert "| team-a/training | a100-1gpu | 1 / 7 / 117Gi | 0 | 2 | 16 | 40s |" in lines


def test_the_drawing_shows_each_node_and_each_size_filling_one() -> None:
    result = plan("one", "--format", "svg")
    drawing = ElementTree.fromstring(result.output)  # noqa: S314 -- it is our own
    space = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in drawing.iter(f"{space}text")]
    assert [word for word in words if word and word.startswith("a100-")] == ["a100-0", "a100-1", *["a100-0"] * 4]
    pods = [title.text for title in drawing.iter(f"{space}title")]
    assert pods.count("team-a/training a100-1gpu: GPUs 1") == 8
    assert pods.count("team-a/training a100-8gpu: GPUs 8") == 1
    assert words.count("GPUs 0 of 8 free") == 4


def test_the_page_holds_tables_and_the_drawing_and_nothing_from_elsewhere() -> None:
    page = plan("--format", "html").output
    assert page.count("<svg") == 2
    assert page.count("<h1>") == 2
    assert "<span>a100-8gpu</span>" in page
    assert 'name="viewport"' in page
    assert "color-scheme: light dark" in page
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_promises_of_stacks_are_added_up_if_they_are_on_one_cluster(folder: Path) -> None:
    result = plan("--all-stacks")
    assert "Cluster: the kubeconfig's current context" in result.output
    assert "nvidia.com/gpu 32 of 16" in result.output
    [cluster] = json.loads(plan("--all-stacks", "--format", "json").output)
    assert (cluster["nodes"]["gpus"], cluster["promised"]["gpus"], result.exit_code) == (16, 32, 0)
    with (folder / "Pulumi.two.yaml").open("a") as file:
        file.write("  ray-platform:kubernetes: {context: elsewhere}\n")
    clusters = json.loads(plan("--all-stacks", "--format", "json").output)
    assert [(each["context"], each["overcommitments"]) for each in clusters] == [(None, []), ("elsewhere", [])]


def test_promises_of_stacks_that_all_allow_overcommitment_are_not_reported(folder: Path) -> None:
    files = [folder / f"Pulumi.{name}.yaml" for name in ("one", "two")]
    for file, reported in zip(files, (True, False), strict=True):
        with file.open("a") as lines:
            lines.write("  ray-platform:capacity: {overcommitment: allowed}\n")
        assert ("Overcommitted" in plan("--all-stacks").output) == reported


def test_too_much_together_is_an_error_if_one_of_the_stacks_sets_it(folder: Path) -> None:
    with (folder / "Pulumi.two.yaml").open("a") as file:
        file.write(STRICT)
    assert plan("--all-stacks").exit_code == 1
    assert plan().exit_code == 0


def test_a_pool_that_stack_files_define_differently_is_named(folder: Path) -> None:
    file = folder / "Pulumi.two.yaml"
    file.write_text(file.read_text().replace("count: 2", "count: 3"))
    result = plan("--all-stacks")
    assert "Pool a100 differs between the stack files" in result.output
    assert "nvidia.com/gpu 40 of 24" in result.output


def test_a_wrong_stack_file_has_its_findings_and_no_plan(folder: Path) -> None:
    (folder / "Pulumi.bad.yaml").write_text("config:\n  ray-platform:nodes: 5\n")
    result = plan("bad")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Pulumi.bad.yaml:2:23: ray-platform:nodes")


@pytest.mark.parametrize(
    "arguments", [["--format", "svg"], ["one", "--all-stacks", "--format", "svg"], ["--gpu-hour-price", "-1"]]
)
def test_wrong_use_and_a_folder_without_stack_files(
    arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plan(*arguments).exit_code == 2
    (folder / "empty").mkdir()
    monkeypatch.chdir(folder / "empty")
    assert plan().exit_code == 2
