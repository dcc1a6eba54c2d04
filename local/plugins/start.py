"""`python -m local.plugins.start ARGUMENT...`: runs the language host with only Pulumi's protocol.

The stubs of the protocol are inside Pulumi's SDK. A plugin takes half a CPU second to start, half of it to import the
SDK, and each command of Pulumi starts two language hosts. So the packages around the stubs are created without running
their code (importlib.util.module_from_spec); the language host uses nothing else from them.
"""

import runpy
import sys
from importlib.util import find_spec, module_from_spec

AROUND = ("pulumi", "pulumi.runtime")
"""Packages around `pulumi.runtime.proto`, outer ones first."""


def leave_out_the_sdk() -> None:
    """Lets this process import `pulumi.runtime.proto` without importing the rest of the SDK."""
    for name in AROUND:
        spec = find_spec(name)
        if spec is None:
            raise ImportError(f"there is no package {name} in {sys.prefix}: install requirements.txt")
        sys.modules[name] = module_from_spec(spec)


if __name__ == "__main__":
    leave_out_the_sdk()
    runpy.run_module("local.plugins.language", run_name="__main__", alter_sys=True)
