"""`python -m local.plugins.start PACKAGE ARGUMENT...`: runs a stand-in with only Pulumi's protocol.

The stubs of the protocol are inside Pulumi's SDK. A plugin takes half a CPU second to start, half of it to import the
SDK, and each command of Pulumi starts three. So the packages around the stubs are created without running their code
(importlib.util.module_from_spec); a stand-in uses nothing else from them.
"""

import runpy
import sys
from importlib.util import find_spec, module_from_spec

from google.protobuf.pyext import cpp_message  # type: ignore[import-not-found]  # no stubs have it

AROUND = ("pulumi", "pulumi.runtime")
"""Packages around `pulumi.runtime.proto`, outer ones first."""


def leave_out_the_sdk() -> None:
    """Lets this process import `pulumi.runtime.proto` without importing the rest of the SDK."""
    for name in AROUND:
        spec = find_spec(name)
        if spec is None:
            raise ImportError(f"there is no package {name} in {sys.prefix}: install requirements.txt")
        sys.modules[name] = module_from_spec(spec)


def allow_deep_messages() -> None:
    """Allows messages that are nested as deeply as the schemas of CRDs.

    By default protobuf refuses more than a hundred levels. The SDK does the same (pulumi/runtime/rpc.py).
    """
    if cpp_message._message is not None:
        cpp_message._message.SetAllowOversizeProtos(True)


if __name__ == "__main__":
    leave_out_the_sdk()
    allow_deep_messages()
    package = sys.argv.pop(1)
    runpy.run_module(f"local.plugins.{package}", run_name="__main__", alter_sys=True)
