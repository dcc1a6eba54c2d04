"""A stand-in starts with Pulumi's protocol alone."""

import subprocess
import sys

import pytest

from local import paths

LOADED = """
import sys
from local.plugins.start import leave_out_the_sdk
leave_out_the_sdk()
import local.plugins.{package}.__main__
print(*(name for name in sys.modules if name.partition(".")[0] == "pulumi" and ".proto" not in name))
"""


DEEP = """
from google.protobuf.struct_pb2 import Struct
from local.plugins.start import allow_deep_messages
allow_deep_messages()
whole = at = Struct()
for _ in range(200):
    at = at.fields["properties"].struct_value
at.fields["type"].string_value = "object"
print(Struct.FromString(whole.SerializeToString()) == whole)
"""


def test_a_message_may_be_nested_as_deeply_as_volcanos_definitions() -> None:
    command = [sys.executable, "-c", DEEP]
    assert subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.parametrize("package", ["language", "kubernetes"])
def test_only_the_stubs_of_the_sdk_are_loaded(package: str) -> None:
    """A module of the SDK that a stand-in comes to need would find an empty package around it."""
    command = [sys.executable, "-c", LOADED.format(package=package)]
    loaded = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["pulumi", "pulumi.runtime"]


@pytest.mark.parametrize(
    ("package", "program"), [("language", "language-python"), ("kubernetes", "resource-kubernetes")]
)
def test_the_program_gets_its_arguments(package: str, program: str) -> None:
    command = [sys.executable, "-m", "local.plugins.start", package, "--help"]
    output = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    assert output.startswith(f"usage: pulumi-{program} [-h]")
