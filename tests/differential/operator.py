"""The operator's own judgement: a program of its module that answers one manifest after the other."""

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
    """What the API server and the operator say to a manifest."""

    api_server: tuple[str, ...]
    """Its errors. The operator does not see what it refuses."""

    operator: tuple[str, ...]
    """The first error of each of the operator's functions."""

    @property
    def errors(self) -> tuple[str, ...]:
        return (*self.api_server, *self.operator)


class Operator:
    """The running program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Keep the program's pipes."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._questions: IO[str] = process.stdin
        self._answers: IO[str] = process.stdout

    def ask(self, body: Any, context: OperatorContext) -> Answer:
        """What it says to a manifest, started as the context has it."""
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
    """Install the program where it is missing, and run it."""
    install_missing((KUBERAY, KUBERAY_VALIDATION))
    program = KUBERAY_VALIDATION.program("kuberay-validation")
    crds = KUBERAY.share("config") / "crd" / "bases"
    with subprocess.Popen(
        [program, crds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield Operator(process)
