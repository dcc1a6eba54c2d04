"""KubeRay's own samples: which mandatory rules each breaks, as it was reviewed."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from local import tools
from policies.configuration import Configuration
from policies.judge import Judge
from policies.read import objects

pytestmark = pytest.mark.unit

SAMPLES = tools.KUBERAY.share("config") / "samples"
VERDICTS = Path(__file__).with_name("samples.yaml")
NAMES = sorted(each.name for each in SAMPLES.glob("ray-*.yaml"))


def verdict(name: str) -> dict[str, int]:
    """How often each mandatory rule is broken."""
    report = Judge(Configuration(), "prod").report(objects([str(SAMPLES / name)]))
    return dict(Counter(each.rule.id for each in report.findings if each.blocks))


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_breaks_what_it_was_seen_to_break(name: str) -> None:
    assert verdict(name) == yaml.safe_load(VERDICTS.read_text())[name]


def test_all_samples_have_a_verdict() -> None:
    assert set(yaml.safe_load(VERDICTS.read_text())) == set(NAMES)
