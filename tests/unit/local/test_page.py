"""`make page` serves the stack's page with the rehearsal's kubeconfig."""

import os
from pathlib import Path
from typing import Any

import pytest

from local.control_plane import CONTEXT
from local.page import serve


def test_it_becomes_the_page_of_stacks_with_the_rehearsals_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *what: became.extend(what))
    monkeypatch.setenv("KUBECONFIG", "/somebody/else")
    monkeypatch.chdir(Path.cwd())
    serve(Path("/run/admin"), Path("Pulumi.prod.yaml"), ["--port", "0"])
    program, command, environment = became
    assert program == command[0]
    assert command[1:] == ["-m", "stacks", "page", "Pulumi.prod.yaml", "--live", "--context", CONTEXT, "--port", "0"]
    assert environment["KUBECONFIG"] == "/run/admin"
