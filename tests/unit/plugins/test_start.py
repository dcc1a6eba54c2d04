"""The language host starts with Pulumi's protocol alone."""

import subprocess
import sys

from local import paths

LOADED = """
import sys
from local.plugins.start import leave_out_the_sdk
leave_out_the_sdk()
import local.plugins.language.__main__
print(*(name for name in sys.modules if name.partition(".")[0] == "pulumi" and ".proto" not in name))
"""


def test_only_the_stubs_of_the_sdk_are_loaded() -> None:
    """A module of the SDK that the language host comes to need would find an empty package around it."""
    loaded = subprocess.run([sys.executable, "-c", LOADED], cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["pulumi", "pulumi.runtime"]


def test_the_program_gets_its_arguments() -> None:
    command = [sys.executable, "-m", "local.plugins.start", "--help"]
    output = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    assert output.startswith("usage: pulumi-language-python [-h]")
