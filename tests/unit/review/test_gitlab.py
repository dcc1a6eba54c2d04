"""The scripts of GitLab's jobs `comment` and `drift`, run as they are, with the answers of GitLab's API."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from stacks.commands.review.comment import MARKER
from testbed.machine import lacks
from testbed.web_server import Answers, running

FILE = Path(__file__).parents[3] / "docs" / "examples" / "gitlab-ci.yaml"

NOTES, ISSUES = "/projects/1/merge_requests/2/notes", "/projects/1/issues"

BOT, COLLEAGUE = 7, 8
"""Users: that of the token, and somebody else."""

SENT = "glpat-1"
"""The token of the jobs."""

TITLE = "Stack prod: the cluster differs from the state"


class GitLab(ThreadingHTTPServer):
    """The API of one merge request's notes and one project's issues, as far as the jobs use it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.accepted = SENT
        self.searches = True
        self.notes: list[dict[str, Any]] = []
        self.issues: list[dict[str, Any]] = []

    def add_note(self, author: int, body: str) -> None:
        self.notes.append({"id": 100 + len(self.notes), "author": {"id": author}, "body": body})

    def add_issue(self, title: str, description: str, state: str = "opened") -> None:
        self.issues.append({"iid": len(self.issues) + 1, "title": title, "description": description, "state": state})

    @property
    def bodies(self) -> list[str]:
        """The texts of the notes."""
        return [note["body"] for note in self.notes]


class _Answers(Answers):
    server: GitLab

    def do_GET(self) -> None:
        path, asked = self._path, dict(parse_qsl(urlsplit(self.path).query))
        if path == "/user":
            self._answer({"id": BOT})
        elif path == NOTES:
            self._answer(self.server.notes)
        elif path == ISSUES:
            found = (each for each in self.server.issues if each["state"] == asked["state"])
            self._answer([each for each in found if asked["search"] in each[asked["in"]]], self.server.searches)

    def do_POST(self) -> None:
        if self._path == NOTES:
            self.server.add_note(BOT, **self._content())
        elif self._path == ISSUES:
            self.server.add_issue(**self._content())
        self._answer({})

    def do_PUT(self) -> None:
        (note,) = (each for each in self.server.notes if self._path == f"{NOTES}/{each['id']}")
        note.update(self._content())
        self._answer({})

    @property
    def _path(self) -> str:
        return urlsplit(self.path).path

    def _content(self) -> dict[str, str]:
        return dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))

    def _answer(self, content: object, works: bool = True) -> None:
        known = self.headers["PRIVATE-TOKEN"] == self.server.accepted
        status = HTTPStatus.OK if works else HTTPStatus.SERVICE_UNAVAILABLE
        self.reply(status if known else HTTPStatus.UNAUTHORIZED, json.dumps(content).encode())


@pytest.fixture
def gitlab() -> Iterator[GitLab]:
    if shutil.which("curl") is None:
        lacks("not on the PATH: curl; it is in the package curl")
    with running(server := GitLab()):
        yield server


def run(name: str, gitlab: GitLab, folder: Path, **variables: str) -> int:
    """Runs a job's script in a folder; returns its exit code."""
    job = yaml.safe_load(FILE.read_text())[name]
    known = {
        **os.environ,
        "CI_API_V4_URL": f"http://127.0.0.1:{gitlab.server_port}",
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_IID": "2",
        "REVIEW_TOKEN": SENT,
        "ISSUE_TOKEN": SENT,
        "PATH": os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "NO_PROXY": "127.0.0.1",
        **variables,
    }
    of_the_job = {key: Template(value).substitute(known) for key, value in job["variables"].items()}
    # The options are those of GitLab's runner.
    command = ["bash", "-e", "-o", "pipefail", "-c", "\n".join(job["script"])]
    return subprocess.run(command, cwd=folder, env=known | of_the_job, check=False).returncode


def test_the_comment_on_a_merge_request_is_updated_in_place(gitlab: GitLab, tmp_path: Path) -> None:
    gitlab.add_note(COLLEAGUE, f"{MARKER}\ncopied from another merge request")
    gitlab.add_note(BOT, f"The comment begins with {MARKER}.")
    before = gitlab.bodies
    for text in ("first & only", "100 % = second"):
        (tmp_path / "review.md").write_text(f"{MARKER}\n{text}\n")
        assert run("comment", gitlab, tmp_path) == 0
        assert gitlab.bodies == [*before, f"{MARKER}\n{text}\n"]


def test_a_comment_that_cannot_be_written_fails_the_job(gitlab: GitLab, tmp_path: Path) -> None:
    (tmp_path / "review.md").write_text(MARKER)
    gitlab.accepted = "another"
    assert run("comment", gitlab, tmp_path) != 0
    assert gitlab.notes == []


def drift(gitlab: GitLab, folder: Path, code: int) -> int:
    """Runs the job, with a `ray-platform` that prints its arguments and ends with this code; returns the job's code."""
    program = folder / "bin" / "ray-platform"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "ray-platform $*"\nexit {code}\n')
    program.chmod(0o755)
    return run("drift", gitlab, folder, STACK="prod")


class TestDrift:
    def test_a_stack_without_it_asks_for_no_issue(self, gitlab: GitLab, tmp_path: Path) -> None:
        assert drift(gitlab, tmp_path, 0) == 0
        assert gitlab.issues == []

    def test_it_fails_the_job_and_opens_an_issue_with_the_report(self, gitlab: GitLab, tmp_path: Path) -> None:
        gitlab.add_issue(TITLE, "last week's", state="closed")
        gitlab.add_issue(TITLE.replace("prod", "dev"), "another stack's")
        assert drift(gitlab, tmp_path, 3) == 3
        _, _, opened = gitlab.issues
        assert opened["title"] == TITLE
        assert opened["description"] == "ray-platform refresh prod --preview-only --expect-no-changes\n"

    def test_a_second_issue_is_not_opened(self, gitlab: GitLab, tmp_path: Path) -> None:
        gitlab.add_issue(TITLE, "yesterday's")
        assert drift(gitlab, tmp_path, 3) == 3
        assert len(gitlab.issues) == 1

    def test_an_issue_is_not_opened_if_gitlab_could_not_search(self, gitlab: GitLab, tmp_path: Path) -> None:
        gitlab.searches = False
        assert drift(gitlab, tmp_path, 3) != 0
        assert gitlab.issues == []
