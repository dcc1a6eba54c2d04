"""Every cluster launcher file that the installed ray package ships can be imported."""

from importlib.util import find_spec
from pathlib import Path

from stacks.commands.importing.file import import_file
from stacks.commands.importing.reader import Answers
from stacks.load import load


def launcher_files() -> list[Path]:
    """Ray's own files. The package is not imported, because that starts much that is not needed here."""
    found = find_spec("ray")
    folders = found.submodule_search_locations if found else None
    assert folders, "the ray package is not installed: it is in requirements-dev.in"
    return sorted(path for folder in folders for path in (Path(folder) / "autoscaler").rglob("*.yaml"))


def test_there_is_one_for_each_provider_of_machines() -> None:
    assert {"aws", "azure", "gcp", "local", "spark", "vsphere"} <= {file.parent.name for file in launcher_files()}


def test_each_becomes_a_stack_file(tmp_path: Path) -> None:
    for file in launcher_files():
        result = import_file(file, Answers(ray_version="2.60.0"))
        assert result.text, f"{file}: {result.lines}"
        stack_file = tmp_path / "Pulumi.test.yaml"
        stack_file.write_text(result.text)
        [tenant] = load(stack_file).tenants
        assert len(tenant.clusters) == 1


def test_without_a_version_of_ray_each_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for file in launcher_files():
        result = import_file(file, Answers())
        assert (result.text, len(result.lines)) == ("", 1)
        assert "; set the version, for example --ray-version 2.60.0" in result.lines[0]
