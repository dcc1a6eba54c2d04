"""The operator's judgement on a manifest beside ours."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kuberay import OperatorContext, validate
from tests.differential.go_messages import STRICTER, says
from tests.differential.operator import Operator


@dataclass
class Tally:
    """How many manifests were judged, and which rules they broke."""

    cases: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """One line for a test's report."""
        cases = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.cases.items()))
        return f"{self.cases.total()} manifests ({cases}), {len(self.rules)} rules broken, 0 differences"


def agree(operator: Operator, body: Any, context: OperatorContext, tally: Tally) -> None:
    """Fails where one takes the manifest and the other does not, or where they refuse it for other reasons.

    Each error of theirs has to be one of our problems; where we have one problem alone, it has to be one of theirs.
    What they say of the inside of a value of a wrong type is left out.
    """
    answer = operator.ask(body, context)
    problems = validate(body, context)
    ours = [problem.rule for problem in problems if problem.rule not in STRICTER]
    unexplained = [error for error in answer.errors if not any(says(rule, error) for rule in ours)]
    if "wrong-type" in ours:
        unexplained = [error for error in unexplained if "unknown field" not in error]
    alone = len(ours) == 1 and not any(says(ours[0], error) for error in answer.errors)
    if bool(answer.errors) != bool(ours) or unexplained or alone:
        shown = json.dumps(body, indent=1)
        raise AssertionError(f"they say {answer}, we say {problems}\n{context}\n{shown}")
    tally.cases["refused" if answer.errors else "stricter" if problems else "taken"] += 1
    tally.rules.update({problem.rule for problem in problems})
