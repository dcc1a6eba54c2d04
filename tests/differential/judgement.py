"""Compares the operator's judgement on a manifest with that of our rules."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kuberay import OperatorContext, validate
from tests.differential.go_messages import STRICTER, reports
from tests.differential.operator import Operator


@dataclass
class Tally:
    """The number of judged manifests, and the violated rules."""

    cases: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)


def agree(operator: Operator, body: Any, context: OperatorContext, tally: Tally) -> None:
    """Fails if only one of the two accepts the manifest, or if they refuse it for different reasons.

    Each error of the operator has to correspond to one of our problems, and a single problem of ours to an error.
    Errors within a value of a wrong type are ignored.
    """
    answer = operator.ask(body, context)
    problems = validate(body, context)
    ours = [problem.rule for problem in problems if problem.rule not in STRICTER]
    unexplained = [error for error in answer.errors if not any(reports(rule, error) for rule in ours)]
    if any(problem.path == ("spec",) and problem.rule == "required-field" for problem in problems):
        # The API server takes an object without a spec, and the operator then finds more than that in it.
        unexplained = []
    if "wrong-type" in ours:
        unexplained = [error for error in unexplained if "unknown field" not in error]
    alone = len(ours) == 1 and not any(reports(ours[0], error) for error in answer.errors)
    if bool(answer.errors) != bool(ours) or unexplained or alone:
        shown = json.dumps(body, indent=1)
        raise AssertionError(f"the operator reports {answer}, our rules report {problems}\n{context}\n{shown}")
    tally.cases["refused" if answer.errors else "stricter" if problems else "taken"] += 1
    tally.rules.update({problem.rule for problem in problems})
