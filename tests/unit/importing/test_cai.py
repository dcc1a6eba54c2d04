"""Files of ray-serve-cai, whose clusters are made on Cloudera ML."""

from pathlib import Path

import pytest
import yaml

from stacks.commands.importing.file import import_file
from stacks.commands.importing.reader import Answers

# The example of its guide (CAI-Based Ray Cluster Guide, Create Configuration File).
EXAMPLE = """\
cai:
  # CML instance URL
  host: https://ml.example.cloudera.site

  # API key (or set CML_API_KEY env var)
  api_key: your-api-key-here

  # Project ID
  project_id: project-abc123

  # Number of worker nodes
  num_workers: 2

  # Worker node resources (GPUs allocated here)
  resources:
    cpu: 16
    memory: 64
    num_gpus: 1  # GPUs for worker nodes only

  # Optional: Head node resources (no GPUs)
  # Defaults to same as workers if not specified
  head_resources:
    cpu: 8
    memory: 32
"""

VERSION = Answers(ray_version="2.60.0")


def imported(folder: Path, text: str, answers: Answers = VERSION) -> tuple[str, tuple[str, ...]]:
    file = folder / "my_cluster.yaml"
    file.write_text(text)
    result = import_file(file, answers)
    return result.text, tuple(line.removeprefix(f"{file}:") for line in result.lines)


def test_the_example_of_its_guide_is_imported_without_its_key(tmp_path: Path) -> None:
    text, lines = imported(tmp_path, EXAMPLE)
    assert yaml.safe_load(text)["config"]["ray-platform:cml"] == {
        "host": "https://ml.example.cloudera.site",
        "clusters": [
            {
                "name": "ray-cluster",
                "project": "project-abc123",
                "rayVersion": "2.60.0",
                "numWorkers": 2,
                "resources": {"cpu": 16, "memory": 64, "gpus": 1},
                "headResources": {"cpu": 8, "memory": 32},
            }
        ],
    }
    [line] = lines
    assert line.startswith("6: cai.api_key: a stack file is plain text, so the key is not copied; run `pulumi config")
    assert "your-api-key-here" not in text + line


def test_its_defaults_are_kept_and_the_rest_is_noted(tmp_path: Path) -> None:
    short = (
        "cai: {host: https://ml.example.com/, project_id: p, verbose: true, head_resources: {cpu: 2, num_gpus: 1}}\n"
    )
    text, lines = imported(tmp_path, f"{short}ray: {{port: 6380, dashboard_port: 8266}}\n")
    [cluster] = yaml.safe_load(text)["config"]["ray-platform:cml"]["clusters"]
    assert (cluster["numWorkers"], cluster["resources"]) == (1, {"cpu": 16, "memory": 64})
    assert cluster["headResources"] == {"cpu": 2, "memory": 64}
    assert (cluster["port"], cluster["dashboardPort"]) == (6380, 8266)
    assert [line.partition("; ")[0] for line in lines] == [
        "1: cai.head_resources.num_gpus: a head has no GPUs",
        "1: cai.verbose: the import does not know it",
    ]


@pytest.mark.parametrize(
    ("text", "answers", "reason"),
    [
        (EXAMPLE, Answers(), "1: cai: the file has no version of Ray; set --ray-version, as in the runtime"),
        ("cai: {project_id: p}\n", VERSION, "1: cai.host: it is not set; set it"),
        ("cai: {host: 'http://ml.example.com', project_id: p}\n", VERSION, " the resulting stack file is invalid: "),
        (f"{EXAMPLE}---\nkind: Pod\n", VERSION, " has several documents, and one of them has cai"),
    ],
)
def test_what_cannot_be_imported_is_refused(tmp_path: Path, text: str, answers: Answers, reason: str) -> None:
    found, lines = imported(tmp_path, text, answers)
    assert found == ""
    assert lines[0].startswith(reason)
