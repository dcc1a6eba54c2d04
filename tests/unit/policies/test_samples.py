"""The samples of KubeRay and ado violate what is reviewed, and the stacks of this project nothing mandatory."""

import re
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from core.stack_file import PREFIX
from policies.configuration import Configuration
from policies.judge import Judge
from policies.read import of_stack_file
from policies.rule import Severity
from policies.rules import BY_ID
from policies.values import Object
from stacks.load import parse
from stacks.program.build import build
from testbed.policies.rendered import Decoding
from testbed.policies.verdicts import files, pinned, verdict

pytestmark = pytest.mark.thorough

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "policy-verdicts.md"
FILES = files()


@pytest.mark.parametrize("name", FILES)
def test_a_sample_breaks_what_it_was_seen_to_break(name: str) -> None:
    assert verdict(FILES[name]) == pinned()[name]


def test_all_samples_have_a_verdict() -> None:
    assert set(pinned()) == set(FILES)


def test_every_verdict_has_its_argument() -> None:
    """The page explains each rule with findings, and no other, and marks those that are advisory."""
    argued = dict(re.findall(r"(?m)^\| `([\w-]+)`( \(advice\))? \|", PAGE.read_text()))
    found = {rule.removesuffix("?") for each in pinned().values() for rule in each}
    assert set(argued) == found
    assert {rule for rule, advice in argued.items() if advice} == {
        rule for rule in found if BY_ID[rule].severity is Severity.LOW
    }


ROOT = Path(__file__).parents[3]


def objects(stack: str, volcano: Path | None = None, **overrides: Any) -> list[Object]:
    """The objects of a stack file of this project, with overrides, and with Volcano's manifest from a file."""
    file = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    settings = {**{key.removeprefix(PREFIX): value for key, value in file.items()}, **overrides}
    settings["kubernetes"] = {"context": stack}
    if volcano:
        settings["scheduler"]["volcano"]["location"] = str(volcano)
    recorder = Decoding()
    pulumi.runtime.set_mocks(recorder.mocks, project="ray-platform", stack=stack, preview=True, monitor=recorder)
    run = pulumi.runtime.test(lambda: build(parse(settings)))  # type: ignore[no-untyped-call]  # the SDK's
    run()
    return recorder.objects


def blocking(stack_objects: list[Object], stack: str) -> set[str]:
    """The mandatory rules that are violated, each with the place and the message.

    Without `secrets-encrypted`: Pulumi's mocks do not mark the outputs that a resource declares as secret. The real
    engine does; tests/engine/test_policies.py tests it.
    """
    configuration = Configuration.model_validate({"environments": {"*": {"rules": {"secrets-encrypted": "disabled"}}}})
    policies = configuration.with_stack(stack, of_stack_file(ROOT / f"Pulumi.{stack}.yaml"))
    report = Judge(policies, stack).report(stack_objects)
    return {f"{each.rule.id}: {each.place}: {each.message}" for each in report.findings if each.blocks}


def test_dev(kubectl_that_renders: Path) -> None:
    made = objects("dev")
    assert {"RayCluster", "Deployment", "NetworkPolicy", "Role"} <= {each.kind for each in made}
    assert blocking(made, "dev") == set()


def test_prod(kubectl_that_renders: Path, manifest_file: Path) -> None:
    made = objects("prod", manifest_file)
    assert {"Queue", "StatefulSet", "CronJob", "Secret"} <= {each.kind for each in made}
    assert blocking(made, "prod") == set()


def test_prod_with_default_settings_of_volcano(kubectl_that_renders: Path, manifest_file: Path) -> None:
    assert blocking(objects("prod", manifest_file, scheduler={"volcano": {}}), "prod") == set()


def test_pods(kubectl_that_renders: Path) -> None:
    """The stack file itself sets which rules are advisory on a laptop."""
    made = objects("pods")
    assert blocking(made, "pods") == set()
    strict = {each.partition(":")[0] for each in blocking(made, "prod")}
    assert strict == {"pod-memory-limit", "ray-gpu-node-affinity"}
