"""Metrics of clusters on Cloudera ML, through the head, and the records of their jobs."""

import asyncio
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
import yaml

from components.cml.manifests import claim, head_url, log_path, records_path
from components.monitoring.metrics import Cml
from components.payloads import cml_application
from components.payloads.cml_application import DRAIN, JOBS, METRICS, NODES, TARGETS, Records, metrics_key, record_id
from stacks.commands.cml.monitoring import write
from testbed.commands import stacks
from testbed.machine import lacks
from testbed.web_server import Answers, serving
from tests.unit.cml.conftest import TOKEN, Place
from tests.unit.cml.test_payload import ask, front, listening
from tests.unit.cml.test_provider import State


def test_prometheus_finds_the_workers_and_reads_each_node_through_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nray_resources 1")
        writer.close()

    async def asks() -> None:
        key = f"Authorization: Bearer {metrics_key(TOKEN)}\nAccept: text/plain"
        async with listening(agent) as node, listening(front(1).answer) as port:
            nodes = {"head": ("127.0.0.1", 1), "big-gpus-3.0a1b": ("127.0.0.1", node)}
            monkeypatch.setattr(cml_application, "metrics_addresses", lambda _: nodes)
            status, body = await ask(port, f"GET {TARGETS} HTTP/1.1\n{key}\n\n")
            [target] = json.loads(body)
            assert (status, target["targets"]) == (200, ["big-gpus-3.0a1b"])
            path = target["labels"].pop("__metrics_path__")
            assert target["labels"] == {
                "ray_io_node_type": "worker",
                "ray_io_group": "big-gpus",
                "pod": "big-gpus-3",
            }
            assert await ask(port, f"GET {path} HTTP/1.1\n{key}\n\n") == (200, "ray_resources 1")
            assert (await ask(port, f"GET {METRICS}/head HTTP/1.1\n{key}\n\n"))[0] == 503
            assert (await ask(port, f"GET {METRICS}/gone.1 HTTP/1.1\n{key}\n\n"))[0] == 404
            assert (await ask(port, f"GET {TARGETS} HTTP/1.1\nAuthorization: Bearer wrong\n\n"))[0] == 401
            for others in (NODES, DRAIN, "/serve"):
                assert (await ask(port, f"GET {others} HTTP/1.1\n{key}\n\n"))[0] == 401

    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    asyncio.run(asks())
    assert seen[0].splitlines()[:3] == ["GET /metrics HTTP/1.1", "Host: 127.0.0.1", "Accept: text/plain"]
    assert metrics_key(TOKEN) not in seen[0]


def made(place: Place) -> State:
    claimed = {**claim(place.inputs()), "token": TOKEN, "former": []}
    return State(claimed, place.inputs())


def test_prometheus_gets_files_with_keys_and_without_rays_token(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "prometheus"
    assert write(place.file(tmp_path), folder, made(place)) == ["training"]
    files = {each.name: each.read_text() for each in folder.iterdir()}
    assert files.keys() == {"scrape.yaml", "rules.yaml", "training.key", "ca.pem"}
    assert files["training.key"] == metrics_key(TOKEN)
    assert (folder / "training.key").stat().st_mode & 0o077 == 0
    assert TOKEN not in "".join(files.values())
    [scrape] = yaml.safe_load(files["scrape.yaml"])["scrape_configs"]
    host = head_url(place.inputs()).removeprefix("https://")
    assert scrape["http_sd_configs"][0]["url"] == f"https://{host}{TARGETS}"
    groups = yaml.safe_load(files["rules.yaml"])["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert {"RayHeadUnreachable", "RayGpusIdle", "RayWorkersPending", "RayClusterJobFailed"} <= alerts
    [workers] = [rule for group in groups for rule in group["rules"] if "labels" in rule and "record" in rule]
    assert workers["expr"] == "vector(2)"
    assert workers["labels"] == {"namespace": "one", "ray_io_cluster": "training"}
    # Without Kubernetes there is no operator whose metrics could be missing.
    assert not alerts & {"KubeRayOperatorDown", "RayClusterNotReady", "RayJobFailed", "RayServiceNotReady"}

    promtool = shutil.which("promtool")
    if promtool is None:
        lacks("not on the PATH: promtool; it is in the package prometheus")
    (folder / "prometheus.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"]}) + files["scrape.yaml"])
    command = [promtool, "check", "config", str(folder / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_gpus_of_these_clusters_have_the_price_in_the_stack_file(place: Place, tmp_path: Path) -> None:
    file = place.file(tmp_path)
    content = yaml.safe_load(file.read_text())
    content["config"]["ray-platform:cml"]["gpuHourPrice"] = 2.5
    file.write_text(yaml.safe_dump(content))
    write(file, tmp_path, made(place))
    assert 'ray_platform:gpus_held{ray_io_group=~"workers"} * 2.5' in (tmp_path / "rules.yaml").read_text()


def job(name: str, start: int, **changes: Any) -> dict[str, Any]:
    return {
        "type": "SUBMISSION",
        "submission_id": name,
        "job_id": None,
        "status": "SUCCEEDED",
        "start_time": start,
        "end_time": start + 1000,
        "entrypoint": f"python {name}.py",
        "metadata": {"user": "eve"},
        "runtime_env": {"env_vars": {"HF_TOKEN": "hf_secret"}},
        **changes,
    }


def test_a_head_records_its_jobs_and_those_of_the_heads_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    monkeypatch.setattr(cml_application, "_MOST_JOBS", 3)
    monkeypatch.setattr(cml_application, "_LONGEST_LOG", 100)
    listed: list[dict[str, Any]] = []
    asked: list[str] = []

    class Dashboard(Answers):
        def do_GET(self) -> None:
            if f"Bearer {TOKEN}" not in str(self.headers):
                self.reply(401, b"")
            elif found := re.fullmatch("/api/jobs/(.+)/logs", self.path):
                asked.append(unquote(found[1]))
                log = "first line\n" * 20 + "last \u00fc" if found[1] == "long" else "done\n"
                self.reply(200, json.dumps({"logs": log}).encode())
            else:
                self.reply(200, json.dumps(listed).encode())

    def known() -> dict[str, str]:
        return {each["submission_id"]: each["status"] for each in json.loads(file.read_text()).values()}

    def log(name: str, start: int) -> Path:
        return file.with_suffix("") / f"{record_id({'submission_id': name, 'start_time': start})}.log"

    file = tmp_path / "ray-platform" / "ray.dev.training.jobs.json"
    with serving(Dashboard) as url:
        listed[:] = [job("../../up", 1000), job("long", 2000), job("runs", 3000, status="RUNNING", end_time=None)]
        Records(url, file).look()
        assert known() == {"../../up": "SUCCEEDED", "long": "SUCCEEDED", "runs": "RUNNING"}
        assert "hf_secret" not in file.read_text()
        assert log("../../up", 1000).read_text() == "done\n"
        assert log("long", 2000).read_text().splitlines()[-2:] == ["first line", "last \u00fc"]
        assert not log("runs", 3000).exists()

        listed[:] = [job("new", 4000)]
        Records(url, file).look()
        assert known() == {"long": "SUCCEEDED", "runs": "RUNNING", "new": "SUCCEEDED"}
        assert not log("../../up", 1000).exists()
        assert log("new", 4000).exists()
    assert asked == ["../../up", "long", "new"]


def test_a_head_counts_the_jobs_that_failed_within_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    now = round(time.time() * 1000)
    jobs = [
        job("hour", now - 3600_000, status="FAILED"),
        job("days", now - 48 * 3600_000, status="FAILED"),
        job("stopped", now - 3600_000, status="STOPPED"),
        job("runs", now - 1000, status="RUNNING", end_time=None),
    ]
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({record_id(each): each for each in jobs}))

    async def asks() -> httpx.Response:
        headers = {"Authorization": f"Bearer {metrics_key(TOKEN)}"}
        records = Records("http://127.0.0.1:1", file)
        async with listening(front(1, records=records).answer) as port, httpx.AsyncClient(trust_env=False) as client:
            return await client.get(f"http://127.0.0.1:{port}{METRICS}/{JOBS}", headers=headers)

    answer = asyncio.run(asks())
    assert answer.text == f"{Cml.FAILED_JOBS} 1\n"
    assert answer.headers["content-type"].startswith("text/plain")


def test_runs_are_read_after_their_head_has_ended(place: Place, tmp_path: Path) -> None:
    def runs(*arguments: str) -> Any:
        return stacks("runs", file, "--cluster", "training", *arguments)

    file, inputs = place.file(tmp_path), place.inputs()
    assert "ray.dev.training.head is missing" in runs().output
    ended, running = job("ended", 1000), job("running", 2000, status="RUNNING", end_time=None, seen=2060.0)
    project = place.workspace.files["one"]
    project[records_path(inputs)] = json.dumps({record_id(each): each for each in (ended, running)}).encode()
    project[log_path(inputs, record_id(ended))] = b"counted\n"

    shown = runs()
    assert shown.exit_code == 0, shown.output
    assert "as its project has recorded them: no head runs now" in " ".join(shown.output.split())
    records = {each["id"]: each for each in json.loads(runs("--format", "json").output)["runs"]}
    assert (records["ended"]["status"], records["ended"]["author"]) == ("SUCCEEDED", "eve")
    assert records["running"]["lastSeen"] == "1970-01-01T00:34:20Z"
    assert runs("ended", "--logs").output == "counted\n"
    lost = runs("running", "--logs")
    assert (lost.exit_code, "the log of training/running was not kept" in lost.output) == (1, True)
