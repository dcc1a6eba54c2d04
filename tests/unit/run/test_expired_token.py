"""`ray-platform run --wait` while the API server stops accepting the token, with the real client."""

import json
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from components import waiting
from stacks.commands.run import live
from testbed.commands import stacks
from testbed.web_server import Answers, running

STACK = """\
config:
  ray-platform:tenants:
    - name: team-a
      jobTemplates:
        - name: finetune
          entrypoint: python train.py
          cluster: {rayVersion: 2.60.0, image: "rayproject/ray:2.60.0"}
"""

RUNNING = {"status": {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}}
SUCCEEDED = {"status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}}

ENOUGH = 10
"""Requests after which the job has succeeded whatever the token: a wait without end fails the test instead."""


class Server(ThreadingHTTPServer):
    """An API server with a running job, which accepts the token `old` once, and afterwards only `new`."""

    asked = 0
    refusal = 401
    token_file: Path
    renewed = ""
    """What the token's file has once the old token has expired."""


class Handler(Answers):
    """Answers each read with the job."""

    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        sent = self.headers["Authorization"].removeprefix("Bearer ")
        if self.server.asked == 1:
            self.server.token_file.write_text(self.server.renewed)
            self.answer(200, RUNNING)
        elif sent == "new" or self.server.asked > ENOUGH:
            self.answer(200, SUCCEEDED)
        else:
            self.answer(self.server.refusal if sent == "anonymous" else 401, {"message": "no access"})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        self.reply(status, json.dumps(body).encode())


@pytest.fixture(autouse=True)
def in_memory() -> None:
    """The session is real."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server of the kubeconfig, whose token is in a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(live, "start", lambda *_: ("finetune-x7k2p", []))
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    with running(made := Server(("127.0.0.1", 0), Handler)) as url:
        made.token_file = tmp_path / "token"
        made.token_file.write_text("old")
        kubeconfig = {
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": url}}],
            "users": [{"name": "me", "user": {"tokenFile": str(made.token_file)}}],
            "current-context": "here",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield made


def waited() -> Result:
    return stacks("run", "prod", "finetune", "--wait")


def test_a_token_that_was_renewed_is_read_again(server: Server) -> None:
    server.renewed = "new"
    done = waited()
    assert (done.exit_code, server.asked) == (0, 3), done.output
    assert done.stderr.endswith("# SUCCEEDED\n")


@pytest.mark.parametrize(("token", "refusal"), [("old", 401), ("anonymous", 403)])
def test_an_expired_token_ends_the_wait_and_not_the_job(server: Server, token: str, refusal: int) -> None:
    server.renewed, server.refusal = token, refusal
    done = waited()
    assert (done.exit_code, server.asked) == (2, 3), done.output
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "lost the connection to run team-a/finetune-x7k2p, which is still running: the API server refuses: "
    )
    assert "`ray-platform status prod`" in last
    assert "`ray-platform runs prod team-a/finetune-x7k2p`" in last
    assert "Traceback" not in done.output
