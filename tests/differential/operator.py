"""The operator's own judgement: a program of its module that judges one manifest after the other."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from kuberay import OperatorContext
from local.install import install_missing
from local.tools import KUBERAY, KUBERAY_VALIDATION


@dataclass(frozen=True)
class Answer:
    """The errors of the API server and the operator for a manifest."""

    api_server: tuple[str, ...]
    """Its errors. The operator does not see manifests that it refuses."""

    operator: tuple[str, ...]
    """The first error of each of the operator's functions."""

    @property
    def errors(self) -> tuple[str, ...]:
        return (*self.api_server, *self.operator)


class Operator:
    """The running program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Keeps the program's pipes."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._questions: IO[str] = process.stdin
        self._answers: IO[str] = process.stdout

    def ask(self, body: Any, context: OperatorContext) -> Answer:
        """The errors for a manifest, with the operator's settings in the context."""
        question = {
            "body": body,
            "featureGates": dict(context.feature_gates),
            "batchScheduler": context.batch_scheduler or "",
        }
        self._questions.write(json.dumps(question) + "\n")
        self._questions.flush()
        answer = json.loads(self._answers.readline())
        return Answer(tuple(answer["apiServer"] or ()), tuple(answer["operator"] or ()))


@contextmanager
def running() -> Iterator[Operator]:
    """Installs the program if it is missing, and runs it."""
    install_missing((KUBERAY, KUBERAY_VALIDATION))
    program = KUBERAY_VALIDATION.program("kuberay-validation")
    crds = KUBERAY.share("config") / "crd" / "bases"
    with subprocess.Popen(
        [program, crds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield Operator(process)
