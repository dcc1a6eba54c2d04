"""The verdicts of the rules on published manifests: KubeRay's samples, and those of IBM/ado."""

from collections import Counter
from pathlib import Path

import yaml

from local import tools
from policies.configuration import Configuration
from policies.judge import Judge
from policies.read import objects
from policies.values import Object

SAMPLES = tools.KUBERAY.share("config") / "samples"
ADO = Path(__file__).with_name("ado")

PINNED = Path(__file__).with_name("samples.yaml")
"""The reviewed verdicts (docs/reference/policy-verdicts.md), by the names of files."""

Verdict = dict[str, int]
"""The number of violations of each rule, advice too. A rule with an unknown result has a question mark behind it."""


def files() -> dict[str, Path]:
    """All manifests, by their names."""
    samples = {str(each.relative_to(SAMPLES)): each for each in sorted(SAMPLES.rglob("*.yaml"))}
    return samples | {f"ado/{each.name}": each for each in sorted(ADO.glob("*.yaml"))}


def verdict(file: Path) -> Verdict:
    """The verdict on the objects in a file, with no configuration."""
    read = (each for each in objects([str(file)]) if isinstance(each, Object))
    findings = Judge(Configuration(), "").report(read).findings
    return dict(sorted(Counter(each.rule.id if each.known else f"{each.rule.id}?" for each in findings).items()))


def pinned() -> dict[str, Verdict]:
    """The reviewed verdicts."""
    return dict(yaml.safe_load(PINNED.read_text()))
