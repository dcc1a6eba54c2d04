"""The environment of a Python program, with either language host."""

import signal
import subprocess
import time

import psutil
import pytest

from tests.engine.conftest import MakeProject

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(120)]


@pytest.fixture(scope="module", autouse=True)
def starts_warm() -> None:
    """These start new processes: how the language host starts and ends is tested."""


def test_a_program_gets_its_project_stack_and_configuration(project: MakeProject) -> None:
    shop = project(
        """
        import os, pulumi
        config = pulumi.Config()
        pulumi.export("project", pulumi.get_project())
        pulumi.export("stack", pulumi.get_stack())
        pulumi.export("organization", pulumi.get_organization())
        pulumi.export("greeting", config.require("greeting"))
        pulumi.export("sizes", config.require_object("sizes"))
        pulumi.export("root", os.path.samefile(pulumi.runtime.get_root_directory(), os.getcwd()))
        """
    )
    shop.configure("greeting", "hello = 'world'")
    shop.configure("sizes[0]", "1", "--path")
    shop.up()
    assert shop.outputs() == {
        "project": "shop",
        "stack": "test",
        "organization": "organization",
        "greeting": "hello = 'world'",
        "sizes": [1],
        "root": True,
    }


def test_a_program_can_distinguish_a_preview_from_an_update(project: MakeProject) -> None:
    shop = project('import pulumi; pulumi.export("dry", pulumi.runtime.is_dry_run()); print("printed by the program")')
    assert "dry: true" in shop.pulumi("preview").output
    assert "printed by the program" in shop.up().output
    assert shop.outputs() == {"dry": False}


def test_a_program_in_a_separate_folder_runs_there(project: MakeProject) -> None:
    shop = project('import os, pulumi; pulumi.export("folder", os.path.basename(os.getcwd()))', main="infrastructure")
    shop.up()
    assert shop.outputs() == {"folder": "infrastructure"}


def test_a_program_imports_its_own_modules_and_not_the_hosts(project: MakeProject) -> None:
    shop = project(
        """
        import importlib.util, os, pulumi
        import packages
        pulumi.export("packages", packages.whose)
        pulumi.export("pythonpath", os.environ.get("PYTHONPATH", ""))
        pulumi.export("foreign", [m for m in ("local", "host", "toolchain") if importlib.util.find_spec(m)])
        """
    )
    (shop.folder / "packages.py").write_text("whose = 'mine'")
    shop.environment["PYTHONPATH"] = "/opt/libraries"
    shop.up()
    assert shop.outputs() == {"packages": "mine", "pythonpath": "/opt/libraries", "foreign": []}


def test_a_secret_setting_is_in_no_file_and_no_output_in_plain(project: MakeProject) -> None:
    shop = project(
        """
        import pulumi
        password = pulumi.Config().require_secret("password")
        pulumi.export("password", password)
        pulumi.export("url", pulumi.Output.concat("redis://:", password, "@redis"))
        """
    )
    shop.configure("password", "tulip-42", "--secret")
    printed = shop.up().output + shop.pulumi("preview", "--diff").output
    assert shop.outputs() == {"password": "[secret]", "url": "[secret]"}
    assert "tulip-42" not in printed
    assert "tulip-42" not in shop.files()
    assert '"redis://:tulip-42@redis"' in shop.pulumi("stack", "output", "--json", "--show-secrets").output


def test_an_exception_is_reported_once_from_the_programs_own_line(project: MakeProject) -> None:
    shop = project(
        """
        def size(text):
            return int(text)

        size("four")
        """
    )
    shown = shop.up(fails=True).output.partition("Diagnostics:")[2]
    assert shown.count("error:") == 1
    assert shown.count("ValueError: invalid literal for int() with base 10: 'four'") == 1
    first, *_ = [line for line in shown.splitlines() if "File" in line]
    assert "project/__main__.py" in first


def test_an_error_that_the_program_has_logged_is_the_only_one(project: MakeProject) -> None:
    shop = project('import pulumi, sys; pulumi.log.error("replicas is -1; allowed are 0 to 10"); sys.exit(32)')
    shown = shop.up(fails=True).output.partition("Diagnostics:")[2]
    assert shown.count("error:") == 1
    assert "error: replicas is -1; allowed are 0 to 10" in shown


def test_a_program_that_fails_fails_the_update_with_its_exit_code(project: MakeProject) -> None:
    assert "program exited with non-zero exit code: 3" in project("import sys; sys.exit(3)").up(fails=True).output


def test_the_error_of_a_project_without_a_program_names_the_missing_file(project: MakeProject) -> None:
    shop = project("")
    (shop.folder / "__main__.py").unlink()
    assert "__main__.py" in shop.up(fails=True).output.partition("error:")[2]


def test_an_invalid_virtualenv_option_is_refused(project: MakeProject) -> None:
    shop = project("", runtime={"name": "python", "options": {"toolchain": "conda"}})
    assert "conda" in shop.up(fails=True).output


def test_dynamic_resources_are_created_kept_and_deleted(project: MakeProject) -> None:
    shop = project(
        """
        import pathlib, pulumi
        from pulumi import dynamic

        class FileProvider(dynamic.ResourceProvider):
            def create(self, props):
                pathlib.Path(props["path"]).write_text(props["text"])
                return dynamic.CreateResult(props["path"], props)

            def delete(self, id, props):
                pathlib.Path(id).unlink()

        class File(dynamic.Resource):
            def __init__(self, name, path, text):
                super().__init__(FileProvider(), name, {"path": path, "text": text})

        File("note", pulumi.Config().require("path"), "remember")
        """
    )
    note = shop.folder.parent / "note"
    shop.configure("path", str(note))
    shop.up()
    assert note.read_text() == "remember"
    shop.changes_nothing()
    shop.pulumi("destroy", "--yes", "--skip-preview")
    assert not note.exists()


WAITS = """
    import time
    print("the program waits", flush=True)
    time.sleep(600)
    """


def started(update: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The processes of an update whose program is running."""
    assert update.stdout is not None
    for line in update.stdout:
        if "the program waits" in line:
            return psutil.Process(update.pid).children(recursive=True)
    raise AssertionError("the program did not run")


def test_a_cancelled_update_ends_its_program_at_once(project: MakeProject) -> None:
    update = project(WAITS).start("up", "--yes", "--skip-preview")
    processes = started(update)
    begin = time.monotonic()
    update.send_signal(signal.SIGINT)
    output, _ = update.communicate(timeout=300)
    assert time.monotonic() - begin < 10
    assert update.returncode != 0
    assert "update canceled" in output
    _, left = psutil.wait_procs(processes, timeout=10)
    assert left == []
