"""Generated pod templates: the API server's validation, Pod Security and our rules judge each equally."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given

from core.pods import PodSecurityLevel
from core.problems import Problem
from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from local.install import install_missing
from local.tools import KUBERNETES, POD_VALIDATION
from tests.conftest import Compared
from tests.differential.pod_templates import templates

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.differential]

Ask = Callable[[Any], Any]

LEVELS: tuple[PodSecurityLevel, ...] = ("baseline", "restricted")


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """The API server's functions: what they report for a template."""
    install_missing((POD_VALIDATION,))
    program = POD_VALIDATION.program("pod-validation")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def asked(template: Any) -> Any:
            questions.write(json.dumps(template) + "\n")
            questions.flush()
            return json.loads(answers.readline())

        yield asked


def places(fields: list[str]) -> set[str]:
    """The parts of a pod that errors are in: its fields, and each container."""
    # Inside the API server it is a part of the security context, and errors name that place.
    written = [field.replace("securityContext.shareProcessNamespace", "shareProcessNamespace") for field in fields]
    found = {tuple(re.findall(r"[^.\[\]]+", field.lower())) for field in written}
    return {".".join(field[: 3 if field[1].endswith("containers") else 2]) for field in found}


def field_of(problem: Problem) -> str:
    return ".".join(map(str, problem.path))


def test_the_program_has_the_version_of_the_rehearsals_api_server() -> None:
    assert POD_VALIDATION.version == KUBERNETES.version


def test_generated_templates_are_judged_equally(ask: Ask, compared: Compared) -> None:
    seen: Counter[str] = Counter()
    for name, cases in (
        ("with one field", templates(1)),
        ("with some fields", templates(5)),
        ("secure ones with some fields", templates(4, secure=True)),
    ):
        tally = judged_equally(ask, cases)
        seen += tally
        valid = {verdict: tally.pop(verdict) for verdict in ("accepted", "refused") if verdict in tally}
        compared("the API server's validation of pods", f"pod templates {name}", valid)
        compared("Pod Security", f"pod templates {name}", tally)
    verdicts = {"accepted", "refused", *(f"{level} {does}" for level in LEVELS for does in ("admits", "refuses"))}
    assert seen.keys() == verdicts


def judged_equally(ask: Ask, cases: Any) -> Counter[str]:
    """How often each verdict was that of both."""
    tally: Counter[str] = Counter()

    @given(cases)
    def judge(template: dict[str, Any]) -> None:
        answer = ask(template)
        assert not answer["decoding"], answer
        problems = list(problems_of_template(template, ()))
        reported = places([fault["field"] for fault in answer["validation"]])
        assert reported == places([field_of(each) for each in problems]), (answer["validation"], problems)
        tally["refused" if problems else "accepted"] += 1
        # Pod Security is only asked about valid pods: of two sources of a volume, each side sees another.
        for level in LEVELS if not problems else ():
            refused = list(violations(template, (), level))
            assert bool(answer["security"][level]) == bool(refused), (answer["security"][level], refused)
            tally[f"{level} {'refuses' if refused else 'admits'}"] += 1

    judge()
    return tally
