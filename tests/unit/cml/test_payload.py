"""What an application answers at CDSW_APP_PORT, how it starts Ray, and what status shows of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from components.cml.manifests import head_url
from components.payloads import cml_application
from components.payloads.cml_application import DRAIN, NODES, Front, Records, command, serve_key
from stacks.commands.status.cml import CmlState, CmlStatus, cml_statuses
from testbed.cml.server import KEY
from testbed.commands import stacks
from testbed.web_server import Answers, serving
from tests.unit.cml.conftest import TOKEN, Place

SETTINGS = {
    "group": "workers",
    "rayVersion": "2.60.0",
    "port": 6379,
    "dashboardPort": 8265,
    "servePath": "/serve",
    "servePort": 8000,
    "cpus": 4,
    "gpus": 1,
    "rayStartParams": {"object-store-memory": "1000000000", "num-cpus": "3"},
    "head": "https://head.ml.example.test",
    "ca": None,
}


def test_a_worker_joins_the_head_whose_dashboard_listens_inside_its_pod_alone() -> None:
    head = command({**SETTINGS, "head": None, "cpus": 0, "rayStartParams": {}}, "10.0.0.3", None)
    assert {"--head", "--port=6379", "--dashboard-host=127.0.0.1", "--num-cpus=0"} <= set(head)
    worker = set(command(SETTINGS, "10.0.0.7", "10.0.0.3:6379"))
    assert "--head" not in worker
    assert worker >= {"--block", "--address=10.0.0.3:6379", "--node-ip-address=10.0.0.7", "--num-gpus=1"}
    assert "--num-cpus=3" in worker


def front(dashboard: int | None, gcs: str = "", serve_port: int = 1, records: Records | None = None) -> Front:
    return Front(dashboard, gcs, "/serve", serve_port, records)


@asynccontextmanager
async def listening(answer: Callable[..., Any]) -> AsyncIterator[int]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def ask(port: int, text: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.replace("\n", "\r\n").encode())
    whole = (await reader.read()).decode()
    writer.close()
    return int(whole.split(" ", 2)[1]), whole.partition("\r\n\r\n")[2]


@pytest.fixture
def drains(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def drained(_: str, drain: Any) -> Any:
        asked.append(drain)
        return {"nodes": {"head.1": "IDLE"}, "accepted": list(drain)}

    monkeypatch.setattr(cml_application, "drained", drained)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "right")
    return asked


def test_a_head_answers_who_has_the_token(drains: list[Any]) -> None:
    async def asks() -> None:
        async with listening(front(1, "10.0.0.3:6379").answer) as port:
            assert (await ask(port, f"GET {NODES} HTTP/1.1\n\n"))[0] == 401
            assert (await ask(port, f"POST {DRAIN} HTTP/1.1\nAuthorization: Bearer wrong\n\n"))[0] == 401
            status, body = await ask(port, f"GET {NODES} HTTP/1.1\nAuthorization: Bearer right\n\n")
            assert (status, json.loads(body)["address"]) == (200, "10.0.0.3:6379")
            desired = json.dumps({"drain": {"workers-0.1": None}})
            head = f"POST {DRAIN} HTTP/1.1\nX-Ray-Authorization: Bearer right\nContent-Length: {len(desired)}\n\n"
            status, body = await ask(port, head + desired)
            assert (status, json.loads(body)["accepted"]) == (200, ["workers-0.1"])

            many = {f"workers-{number}.0123abcd": number + 0.5 for number in range(2000)}
            desired = json.dumps({"drain": many})
            head = f"POST {DRAIN} HTTP/1.1\nAuthorization: Bearer right\nContent-Length: {len(desired)}\n\n"
            assert (await ask(port, head + desired))[0] == 200

    asyncio.run(asks())
    assert drains[:2] == [{}, {"workers-0.1": None}]
    assert len(drains[2]) == 2000


def test_everything_else_is_answered_by_the_dashboard(drains: list[Any]) -> None:
    seen = []

    async def dashboard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        seen.append((await reader.readexactly(2)).decode())
        writer.write(b"HTTP/1.1 200 OK\r\n\r\njobs")
        await writer.drain()
        writer.close()

    async def asks() -> None:
        async with listening(dashboard) as behind, listening(front(behind).answer) as port:
            text = "POST /api/jobs/ HTTP/1.1\nConnection: keep-alive\nContent-Length: 2\n\n{}"
            assert await ask(port, text) == (200, "jobs")
        async with listening(front(1).answer) as port:
            assert (await ask(port, "GET / HTTP/1.1\n\n"))[0] == 503
        async with listening(front(None).answer) as port:
            assert await ask(port, f"GET {NODES} HTTP/1.1\n\n") == (200, '{"node": "worker"}')

    asyncio.run(asks())
    assert "Connection: close" in seen[0]
    assert "keep-alive" not in seen[0]
    assert seen[1] == "{}"
    assert drains == []


def test_what_is_below_serve_is_answered_by_its_proxy_to_who_has_the_key(drains: list[Any]) -> None:
    seen: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def asks() -> None:
        key = f"Authorization: Bearer {serve_key('right')}"
        async with listening(proxy) as behind, listening(front(1, serve_port=behind).answer) as port:
            assert await ask(port, f"GET /serve/v1/models?x=/serve HTTP/1.1\n{key}\n\n") == (200, "hello")
            assert await ask(port, "POST /serve HTTP/1.1\nAuthorization: Bearer right\n\n") == (200, "hello")
            assert await ask(port, f"GET /serve?a=b HTTP/1.1\n{key}\n\n") == (200, "hello")
            for wrong in ("", "Authorization: Bearer\n", "Authorization: Bearer wrong\n", "Authorization: right\n"):
                assert (await ask(port, f"GET /serve/ HTTP/1.1\n{wrong}\n"))[0] == 401
            for others in (NODES, DRAIN):
                assert (await ask(port, f"GET {others} HTTP/1.1\n{key}\n\n"))[0] == 401
            assert (await ask(port, f"GET /served HTTP/1.1\n{key}\n\n"))[0] == 503
        async with listening(front(1).answer) as port:
            assert await ask(port, f"GET /serve/ HTTP/1.1\n{key}\n\n") == (503, '{"error": "nothing is served"}')

    asyncio.run(asks())
    assert seen == ["GET /v1/models?x=/serve HTTP/1.1", "POST / HTTP/1.1", "GET /?a=b HTTP/1.1"]
    assert drains == []


def test_a_worker_asks_the_head_at_its_subdomain(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = place.inputs()
    place.make(inputs)
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    node = json.loads(place.app("workers-0").environment["RAY_PLATFORM"])
    assert node["head"] == head_url(inputs)
    assert cml_application._gcs_address(node["head"], node["ca"]) == "127.0.0.1:6379"
    assert json.loads(place.app("head").environment["RAY_PLATFORM"])["head"] is None


def test_the_token_follows_no_redirection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    asked: list[tuple[str, bool]] = []

    class Login(Answers):
        def do_GET(self) -> None:
            asked.append((self.path, TOKEN in str(self.headers)))
            self.reply(302 if self.path == NODES else 200, b'{"address": "10.0.0.3:6379"}', {"Location": "/login"})

    with serving(Login) as url:
        cml_application._gcs_address(url, None)
    assert asked == [(NODES, True), ("/login", False)]


def test_a_runtime_with_another_ray_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_PLATFORM", json.dumps({**SETTINGS, "rayVersion": "2.1.0"}))
    assert cml_application.main() == 1
    assert (
        ", not 2.1.0: use a runtime with it, or run `pip install 'ray[default,serve]==2.1.0'`"
        in capsys.readouterr().err
    )


def status(place: Place, **changes: object) -> CmlStatus:
    [found] = cml_statuses(place.settings(**changes), "dev")
    return found


def test_a_cluster_is_missing_then_ready_and_unknown_without_the_key(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = status(place)
    assert (found.ok, found.state, found.head, found.gpus) == (False, CmlState.MISSING, None, 0)
    absent = "none of its applications exists: `up` creates them; after `cml stop` so does `ray-platform cml start`"
    assert found.reasons == (absent,)
    place.make(place.inputs())
    found = status(place)
    assert (found.ok, found.state, found.head) == (True, CmlState.READY, "RUNNING")
    assert (found.joined, found.desired, found.gpus, found.reasons) == (2, 2, 2, ())
    monkeypatch.delenv("CML_API_KEY")
    found = status(place)
    assert (found.ok, found.state, found.gpus) == (False, CmlState.UNKNOWN, None)
    assert "set CML_API_KEY" in found.reasons[0]


def test_an_application_of_serve_that_does_not_run_is_named(place: Place) -> None:
    serves: dict[str, Any] = {"serveConfigV2": {"applications": [{"name": "chat", "import_path": "chat:app"}]}}
    place.make(place.inputs(**serves))
    assert status(place, **serves).ok
    place.ray.statuses["chat"] = "UNHEALTHY"
    found = status(place, **serves)
    assert (found.state, found.joined) == (CmlState.NOT_READY, 2)
    assert found.reasons == ("application chat of Serve is UNHEALTHY: chat cannot start",)
    assert status(place).ok


def test_a_suspended_cluster_is_as_desired_once_nothing_runs(place: Place) -> None:
    place.make(place.inputs())
    assert status(place, suspend=True).state is CmlState.NOT_READY
    place.make(place.inputs(suspend=True))
    assert (status(place, suspend=True).ok, status(place, suspend=True).desired) == (True, 0)


def test_what_failed_or_does_not_exist_is_named(place: Place) -> None:
    place.make(place.inputs())
    place.workspace.fail(place.app("workers-1"))
    found = status(place, numWorkers=3)
    assert (found.state, found.joined, found.desired) == (CmlState.NOT_READY, 1, 3)
    assert found.reasons == (
        "ray.dev.training.workers-1 is FAILED, and `up` deletes it",
        "ray.dev.training.workers-2 does not exist: `up` creates it",
    )


def test_the_command_needs_no_cluster_of_kubernetes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    place.make(place.inputs())
    file = place.file(tmp_path)
    shown = stacks("status", str(file))
    assert shown.exit_code == 0, shown.output
    first, _, title, columns, row = shown.output.splitlines()
    assert first == "dev: 1 of 1 Ray clusters on Cloudera ML ready"
    assert (title, columns.split()[:3]) == ("Cloudera ML", ["Ray", "cluster", "State"])
    assert row.split()[:5] == ["training", "ready", "RUNNING", "2/2", "2"]
    assert TOKEN not in shown.output
    assert KEY not in shown.output
    [found] = json.loads(stacks("status", str(file), "--format", "json").output)["cml"]
    assert (found["state"], found["workers"]) == ("ready", {"joined": 2, "desired": 2})
    assert json.loads(stacks("cml", "status", file, "--format", "json").output) == [found]
    shown = stacks("cml", "status", file, "training")
    assert shown.output.splitlines()[3:] == [
        "Application                 Status   Ray node",
        "ray.dev.training.head       RUNNING  IDLE",
        "ray.dev.training.workers-0  RUNNING  IDLE",
        "ray.dev.training.workers-1  RUNNING  IDLE",
    ]


def test_logs_are_those_of_the_head(place: Place, tmp_path: Path) -> None:
    file = place.file(tmp_path)
    missing = stacks("logs", file, "training")
    assert (missing.exit_code, missing.output) == (
        1,
        "ray.dev.training.head is missing and does not answer: Cloudera ML has its output, at Applications\n",
    )
    place.make(place.inputs())
    assert stacks("logs", file, "training", "--tail", 5).output == "gcs_server.out at 127.0.0.1\n"
    refused = stacks("logs", file, "training", "--pod", "workers-0")
    assert (refused.exit_code, "only the head's log is read" in refused.output) == (2, True)


def test_a_command_names_what_it_lacks(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = place.file(tmp_path)
    wrong = stacks("cml", "status", file, "trainig")
    assert (wrong.exit_code, "has no Ray cluster 'trainig' on Cloudera ML" in wrong.output) == (2, True)
    monkeypatch.setenv("PATH", str(tmp_path))
    for verb in ("start", "stop"):
        unreadable = stacks("cml", verb, file, "training")
        assert (unreadable.exit_code, "`pulumi` is not on the PATH" in unreadable.output) == (2, True)
    monkeypatch.delenv("CML_API_KEY")
    unknown = stacks("cml", "status", file)
    assert (unknown.exit_code, "set CML_API_KEY" in unknown.output) == (1, True)
