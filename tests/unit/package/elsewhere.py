"""Runs a program outside the checkout without an engine, and prints what it registers as JSON.

Argument: the program. `recorder` is a copy of testbed/recorder.py beside this file; all other imports are those of the
interpreter and of PYTHONPATH.
"""

import json
import runpy
import sys
from dataclasses import asdict

import pulumi
import recorder  # type: ignore[import-not-found]  # it is there when this file is copied

import components.operator.upgrade
import stacks.program.build
import stacks.program.facts

for module, name, answer in (
    # As tests/unit/conftest.py has it: there is no cluster to read from.
    (stacks.program.build, "read_facts", stacks.program.facts.Facts()),
    (components.operator.upgrade, "check_change", None),
):
    setattr(module, name, lambda *_, answer=answer: answer)

exported: list[str] = []
# Pulumi's mocks record no outputs of a stack.
setattr(pulumi, "export", lambda name, _value: exported.append(name))  # noqa: B010 -- mypy: not its signature

made = recorder.record(lambda: runpy.run_path(sys.argv[1]), stack="dev")
found = {
    "places": sorted(
        {str(module.__file__) for name, module in sys.modules.items() if name.partition(".")[0] == "stacks"}
    ),
    "registered": {name: asdict(each) for name, each in made.registered.items()},
    "exported": exported,
}
json.dump(found, sys.stdout, default=sorted)
