"""Ray clusters on a local workspace of Cloudera ML, with real Ray and the real engine, and without Kubernetes."""

import json
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from components.cml.client import KEY_VARIABLE
from components.monitoring.metrics import Ray
from components.payloads.cml_application import API_KEYS
from local import paths
from local.control_plane import free_ports
from local.plugins import Selection
from testbed import language_model
from testbed.cml.runners import Processes
from testbed.cml.server import HOST, KEY, RUNTIMES, Server
from testbed.cml.workspace import App, Limits, Workspace
from testbed.harness import Project
from testbed.machine import lacks
from testbed.pods.prometheus import Prometheus
from testbed.ray_python import serve_python, vllm_python

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(700)]

PARAMS = {"dashboard-agent-listen-port": "0", "object-store-memory": "100000000"}
"""Nodes of Ray on one machine have different ports."""

LOAD = """
import os, sys, time, ray
ray.init(address=sys.argv[1], log_to_driver=False)

@ray.remote(num_cpus=1, max_retries=0)
def task(number):
    time.sleep(1)
    return number

numbers, running, done = iter(range(10_000)), [], 0
print("started", flush=True)
while not os.path.exists(sys.argv[2]) or running:
    while len(running) < 6 and not os.path.exists(sys.argv[2]):
        running.append(task.remote(next(numbers)))
    ready, running = ray.wait(running, timeout=1)
    done += len(ray.get(ready))
print("done", done)
"""
"""Tasks without a break, none of which is tried twice: a lost one ends the program with an error."""


SMALL = {
    "rayVersion": "2.60.0",
    "resources": {"cpu": 1, "memory": 2},
    "headRayStartParams": PARAMS,
    "workerRayStartParams": PARAMS,
}

HELLO = """
from ray import serve

@serve.deployment
class Hello:
    def reconfigure(self, config):
        self.greeting = config["greeting"]

    async def __call__(self, request):
        return f"{self.greeting} at {request.url.path}"

app = Hello.bind()
"""

JOB = "import ray; ray.init(); same = ray.remote(lambda it: it); print(sum(ray.get([same.remote(6), same.remote(9)])))"

OTHER = {
    **SMALL,
    "name": "serving",
    "project": "two",
    "runtimeIdentifier": RUNTIMES[1],
    "numWorkers": 1,
    "readyTimeout": "15m",
}
"""A second cluster, in another project, which serves."""


class Cml:
    """A stack with a cluster on the workspace, and with those that a test adds."""

    def __init__(self, folder: Path, server: Server, runner: Processes, project: Project) -> None:
        self.folder, self.server, self.runner, self.project = folder, server, runner, project
        self.shown = ""
        free = free_ports()
        self.ports = [{"port": next(free), "dashboardPort": next(free)} for _ in range(2)]
        """Those of the two heads: a GCS listens at all addresses of the machine."""
        self.others: list[dict[str, Any]] = []
        self.jobs: list[dict[str, Any]] = []

    def greet(self, greeting: str) -> None:
        """Lets the second cluster serve HELLO with another greeting."""
        no_cpu = {"num_cpus": 0}  # that of the worker is for tasks
        deployment = {"name": "Hello", "user_config": {"greeting": greeting}, "ray_actor_options": no_cpu}
        application = {"name": "hello", "import_path": "hello:app", "deployments": [deployment]}
        self.others = [
            {
                **OTHER,
                **self.ports[1],
                "env": {"PYTHONPATH": str(self.folder)},
                "serveConfigV2": {"applications": [application]},
            }
        ]
        self.set()
        self.run("up", "--yes", "--skip-preview")

    @contextmanager
    def client(self, output: str, key: str) -> Iterator[httpx.Client]:
        """Calls an address of the second cluster, with a key or token."""
        url = self.project.outputs()["cmlClusters"]["serving"][output]
        verified = ssl.create_default_context(cafile=str(self.server.ca_file))
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(
            base_url=url, verify=verified, proxy=self.server.proxy, headers=headers, trust_env=False, timeout=60
        ) as client:
            yield client

    def asks(self, path: str, key: str) -> tuple[int, str]:
        """Status and body of an answer of what the second cluster serves."""
        with self.client("endpoint", key) as client:
            answer = client.get(path)
        return answer.status_code, answer.text

    def runs(self, entrypoint: str) -> tuple[str, str]:
        """Status and log of a job that is submitted to the second cluster."""
        token = self.applications("serving")["head"].environment["RAY_AUTH_TOKEN"]
        with self.client("jobsUrl", token) as client:
            job = f"/api/jobs/{client.post('/api/jobs/', json={'entrypoint': entrypoint}).json()['submission_id']}"
            end = time.monotonic() + 120
            while (status := client.get(job).json()["status"]) in ("PENDING", "RUNNING") and time.monotonic() < end:
                time.sleep(0.5)
            return status, client.get(f"{job}/logs").json()["logs"]

    def set(self, **changes: Any) -> None:
        """Writes the stack file, with the encrypted key that it has."""
        file = self.project.folder / "Pulumi.test.yaml"
        content = yaml.safe_load(file.read_text()) if file.exists() else {}
        cluster = {
            **SMALL,
            "name": "training",
            "project": "one",
            "numWorkers": 2,
            **self.ports[0],
            "readyTimeout": "15m",
            "drainTimeout": "90s",
            **changes,
        }
        settings = {"host": f"https://{HOST}", "caFile": str(self.server.ca_file), "clusters": [cluster, *self.others]}
        content.setdefault("config", {})["ray-platform:cml"] = settings
        content["config"]["ray-platform:jobs"] = self.jobs
        file.write_text(yaml.safe_dump(content))

    def run(self, *arguments: str) -> str:
        output = self.project.pulumi(*arguments).output
        self.shown += output
        return output

    def command(self, *arguments: str, **environment: str) -> str:
        """The output of a command of `ray-platform`."""
        output = self.project.ray_platform(*arguments, environment=environment).output
        self.shown += output
        return output

    def applications(self, cluster: str = "training") -> dict[str, App]:
        """Those of a cluster, by the last part of their names."""
        found = {app.body["name"]: app for app in self.server.workspace.apps.values()}
        return {name.rpartition(".")[2]: app for name, app in found.items() if f".{cluster}." in name}

    def statuses(self, cluster: str = "training") -> dict[str, str]:
        return {name: app.status for name, app in self.applications(cluster).items()}


@pytest.fixture
def cml(tmp_path: Path, plugins: Selection) -> Iterator[Cml]:
    runner = Processes(tmp_path / "cml", {}, {RUNTIMES[1]: serve_python()})
    workspace = Workspace(runner, ("one", "two"), Limits())
    (tmp_path / "cml").mkdir()
    (tmp_path / "hello.py").write_text(HELLO)
    with Server(workspace, tmp_path / "cml") as server:
        without_key = {name: value for name, value in server.environment.items() if name != KEY_VARIABLE}
        # As a workspace may do for applications of a user.
        runner.allow({**without_key, API_KEYS[0]: KEY})
        project = Project.make(tmp_path / "pulumi", paths.ROOT / "__main__.py", plugins, name="ray-platform")
        project.environment |= {**without_key, "PYTHONPATH": str(paths.ROOT), "KUBECONFIG": os.devnull}
        yield Cml(tmp_path, server, runner, project)
        for log in sorted((tmp_path / "cml").glob("*.log")):
            print(f"== {log.name}\n{log.read_text()[-2000:]}")


def test_clusters_form_scale_under_load_are_repaired_and_leave_nothing(cml: Cml) -> None:
    cml.run("config", "set", "--secret", "ray-platform:cmlApiKey", KEY)
    cml.set()
    cml.project.killed(lambda: bool(cml.server.workspace.apps))
    cml.shown += cml.project.recover().output
    # On a busy machine `ray start` may fail by its own time limits, and the update replaces that application.
    assert cml.server.workspace.created - cml.server.workspace.failed == 3
    assert cml.statuses() == dict.fromkeys(("head", "workers-0", "workers-1"), "APPLICATION_RUNNING")
    cml.greet("Hello")
    assert cml.server.workspace.created - cml.server.workspace.failed == 5
    other = {name: app.id for name, app in cml.applications("serving").items()}
    assert other.keys() == {"head", "workers-0"}
    assert {app.project for app in cml.applications("serving").values()} == {"two"}
    cml.project.changes_nothing()
    outputs = cml.project.outputs()["cmlClusters"]
    for name, workers in (("training", 2), ("serving", 1)):
        assert outputs[name]["state"] == "ready"
        assert outputs[name]["status"]["worker"] == {"desired": workers, "readyReplicas": workers}

    shown = cml.project.pulumi("stack", "output", "cmlServeKeys", "--show-secrets", "--json").output
    key = json.loads(shown)["serving"]
    assert cml.asks("/there", key) == (200, "Hello at /serve/there")
    assert cml.asks("/there", "another key")[0] == 401
    status, log = cml.runs(f"{serve_python()} -c '{JOB}'")
    assert (status, "15\n" in log) == ("SUCCEEDED", True), log
    cml.greet("Good evening")
    assert cml.asks("", key) == (200, "Good evening at /serve/")

    with Load(cml) as load:
        cml.set(numWorkers=3)
        cml.run("up", "--yes", "--skip-preview")
        assert len(cml.statuses()) == 4
        cml.set(numWorkers=1)
        cml.run("up", "--yes", "--skip-preview")
        assert len(cml.statuses()) == 2
    assert load.done > 0

    [worker] = cml.statuses().keys() - {"head"}
    cml.server.workspace.fail(cml.applications()[worker])
    assert "FAILED" in cml.run("refresh", "--yes", "--skip-preview", "--diff")
    cml.run("up", "--yes", "--skip-preview")
    assert cml.statuses() == dict.fromkeys(("head", worker), "APPLICATION_RUNNING")
    assert {name: app.id for name, app in cml.applications("serving").items()} == other

    name = cml.project.name
    assert "(gcs_server) " in cml.command("logs", name, "serving", **{KEY_VARIABLE: KEY})
    assert cml.command("cml", "stop", name, "training").endswith("so does `ray-platform cml start`\n")
    assert cml.statuses() == {}
    ended = "training: none of its applications exists, as after `ray-platform cml stop`: `up` creates them"
    assert ended in cml.run("preview", "--diff")
    cml.command("cml", "start", name, "training")
    assert cml.statuses() == dict.fromkeys(("head", "workers-0"), "APPLICATION_RUNNING")
    cml.project.changes_nothing()
    old = {app.environment["RAY_AUTH_TOKEN"] for app in cml.applications().values()}
    cml.set(numWorkers=1, tokenGeneration=2)
    cml.run("up", "--yes", "--skip-preview")
    tokens = json.loads(cml.project.pulumi("stack", "output", "cmlTokens", "--show-secrets", "--json").output)
    new = {app.environment["RAY_AUTH_TOKEN"] for app in cml.applications().values()}
    assert new == {tokens["training"]} != old

    holders = cml.runner.holders(KEY)
    assert len(holders) == len(cml.server.workspace.apps), "one process for each: its script, which starts Ray"
    assert all(Path(command[-1]).parent.name == "ray-platform" for command in holders)

    secrets = {KEY, key, *old, *(app.environment["RAY_AUTH_TOKEN"] for app in cml.server.workspace.apps.values())}
    state = json.dumps(cml.project.resources())
    cml.run("config", "set", "--path", "ray-platform:cml.clusters[0].suspend", "true")
    cml.run("up", "--yes", "--skip-preview")
    assert cml.statuses() == {}
    cml.run("destroy", "--yes", "--skip-preview")
    assert cml.server.workspace.apps == {}
    assert cml.server.workspace.files == {"one": {}, "two": {}}
    for secret in secrets:
        assert secret not in state
        assert secret not in cml.shown
    assert not [request for request in cml.server.requests if KEY in request]
    assert "workers have joined" in cml.shown
    folders = (cml.folder, cml.runner.short)
    written = [path for each in folders for path in each.rglob("*") if path.is_file() and path.suffix != ".pem"]
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


def test_a_job_is_submitted_to_the_head_once_and_again_after_an_edit(cml: Cml) -> None:
    job = {"name": "count", "cmlCluster": "training", "waitFor": "succeeded", "waitTimeout": "3m"}

    def submitted(entrypoint: str, **changes: str) -> dict[str, Any]:
        cml.jobs = [{**job, "entrypoint": entrypoint, **changes}]
        cml.set(numWorkers=0, runtimeIdentifier=RUNTIMES[1])
        cml.run("up", "--yes", "--skip-preview")
        found: dict[str, Any] = cml.project.outputs()["submittedJobs"]["count"]
        return found

    cml.project.environment[KEY_VARIABLE] = KEY
    first = submitted("echo first")
    cml.project.changes_nothing()
    second = submitted("echo second")
    assert first["submissionId"] != second["submissionId"]
    for found in (first, second):
        assert (found["cluster"], found["status"]) == ("training", "SUCCEEDED")
        assert found["jobsUrl"] == cml.project.outputs()["cmlClusters"]["training"]["jobsUrl"]
    shown = cml.command("runs", cml.project.name, "--cluster", "training", **{KEY_VARIABLE: KEY})
    assert all(each["submissionId"] in shown for each in (first, second))

    token = cml.applications()["head"].environment["RAY_AUTH_TOKEN"]
    state = json.dumps(cml.project.resources())
    assert submitted("sleep 600", waitFor="running")["status"] == "RUNNING"
    # The job is stopped while its head still answers.
    assert "warning" not in cml.run("destroy", "--yes", "--skip-preview")
    assert cml.server.workspace.apps == {}
    assert token not in state + cml.shown


def test_prometheus_reads_every_node_and_records_of_jobs_outlive_the_head(cml: Cml) -> None:
    job = {"name": "count", "cmlCluster": "training", "waitFor": "succeeded", "waitTimeout": "3m"}
    fails = {"name": "fails", "cmlCluster": "training", "entrypoint": "exit 1"}
    cml.jobs = [{**job, "entrypoint": "echo counted"}, fails]
    cml.project.environment[KEY_VARIABLE] = KEY
    cml.set(numWorkers=1, runtimeIdentifier=RUNTIMES[1], resources={"cpu": 1, "memory": 2, "gpus": 1})
    cml.run("up", "--yes", "--skip-preview")
    name, folder = cml.project.name, cml.folder / "prometheus"
    cml.command("cml", "monitor", name, "--output", str(folder))

    training = 'namespace="one",ray_io_cluster="training"'

    def fires(alert: str) -> str:
        return f'ALERTS{{alertname="{alert}",alertstate="firing",{training}}}'

    with Monitor(folder, cml.server.proxy) as monitor:
        assert monitor.until(f'ray_platform:gpus_held{{{training},ray_io_group="workers"}}') == "1"
        assert monitor.until(f"ray_platform:gpus_used{{{training}}}") == "0"
        for alert in ("RayGpusIdle", "RayClusterJobFailed"):
            monitor.until(fires(alert))
        up = monitor.labels(f"up{{{training}}} == 1", "job", "pod")
        assert up == {("ray-head", "head"), ("ray-jobs", "head"), ("ray-worker", "workers-0")}
        found = {name for (name,) in monitor.labels(f"{{{training}}}", "__name__")}
        assert set(OF_RAY) <= found
        assert monitor.prometheus.not_evaluated() == {}

        assert not monitor.prometheus.query(fires("RayWorkersPending"))
        cml.server.workspace.fail(cml.applications()["workers-0"])
        monitor.until(fires("RayWorkersPending"))

        submitted = cml.project.outputs()["submittedJobs"]["count"]["submissionId"]
        cml.command("cml", "stop", name, "training")
        assert cml.statuses() == {}
        monitor.until(fires("RayHeadUnreachable"))
        assert not monitor.prometheus.query(fires("RayWorkersPending"))

    def runs(*arguments: str) -> str:
        return cml.command("runs", name, *arguments, "--cluster", "training", **{KEY_VARIABLE: KEY})

    assert submitted in (listed := runs())
    assert "SUCCEEDED" in listed
    assert "no head runs now" in listed
    assert runs(submitted, "--logs").strip().endswith("counted")
    cml.run("destroy", "--yes", "--skip-preview")
    assert submitted in runs()


OF_RAY = (Ray.STARTED, Ray.RESOURCES, Ray.OBJECT_STORE, Ray.DISK_PERCENT, Ray.GCS)
"""Metrics that exist although nothing is wrong."""


@pytest.mark.llm
@pytest.mark.timeout(2400)
def test_a_real_vllm_answers_also_after_a_lost_worker_and_a_wrong_setting(cml: Cml) -> None:
    python, model = vllm_python()
    cml.runner.runtimes[RUNTIMES[2]] = python
    cml.project.environment[KEY_VARIABLE] = KEY
    cml.project.seconds = 1200.0

    def serve(longest: int, **engine: str) -> None:
        serves = {"env": language_model.ON_CPUS, "llm": language_model.llm(str(model), longest, **engine)}
        resources = {"cpu": 4, "memory": 4, "gpus": 1}
        cml.others = [{**OTHER, **cml.ports[1], "runtimeIdentifier": RUNTIMES[2], "resources": resources, **serves}]
        cml.set(suspend=True)

    serve(256)
    cml.run("up", "--yes", "--skip-preview")
    shown = cml.project.pulumi("stack", "output", "cmlServeKeys", "--show-secrets", "--json").output
    key = json.loads(shown)["serving"]

    def answers() -> None:
        with cml.client("openaiBaseUrl", key) as client:
            language_model.answers(client)
        with cml.client("openaiBaseUrl", "another") as client:
            assert client.post("chat/completions", json=language_model.QUESTION).status_code == 401

    answers()
    cml.server.workspace.fail(cml.applications("serving")["workers-0"])
    cml.run("up", "--yes", "--skip-preview", "--refresh")
    answers()
    serve(100_000)
    refused = cml.project.pulumi("up", "--yes", "--skip-preview", fails=True).output
    assert "max_model_len (100000) is greater than the derived max_model_len" in refused
    serve(224)
    cml.run("up", "--yes", "--skip-preview")
    answers()

    serve(224, runner="pooling", convert="embed")
    cml.run("up", "--yes", "--skip-preview")
    with cml.client("openaiBaseUrl", key) as client:
        answer = client.post("embeddings", json={"model": "tiny", "input": ["Hello", "Good evening"]})
        assert answer.status_code == 200, answer.text
        assert len({tuple(each["embedding"]) for each in answer.json()["data"]}) == 2


class Monitor:
    """Debian's Prometheus, with the files that `cml monitor` has written; only it evaluates more often, and alerts fire
    soon."""

    def __init__(self, folder: Path, proxy: str) -> None:
        """`proxy`: by which the workspace is reached."""
        program = shutil.which("prometheus")
        if program is None:
            lacks("not on the PATH: prometheus")
        config = yaml.safe_load((folder / "scrape.yaml").read_text())
        for scrape in config["scrape_configs"]:
            for part in (scrape, *scrape["http_sd_configs"]):
                part["proxy_url"] = proxy
            scrape["scrape_interval"] = scrape["http_sd_configs"][0]["refresh_interval"] = "2s"
        rules = yaml.safe_load((folder / "rules.yaml").read_text())
        for group in rules["groups"]:
            group["interval"] = "2s"
            for rule in group["rules"]:
                if "alert" in rule:
                    rule["for"] = "4s"
        (folder / "rules-of-test.yaml").write_text(yaml.safe_dump(rules))
        (folder / "prometheus.yml").write_text(yaml.safe_dump({**config, "rule_files": ["rules-of-test.yaml"]}))
        address = f"127.0.0.1:{next(free_ports())}"
        self._folder, self.prometheus = folder, Prometheus(f"http://{address}")
        self._command = [program, "--config.file=prometheus.yml", f"--web.listen-address={address}"]

    def __enter__(self) -> "Monitor":
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        print((self._folder / "log").read_text()[-3000:])

    def labels(self, query: str, *names: str) -> set[tuple[str, ...]]:
        return {tuple(each["metric"][name] for name in names) for each in self.prometheus.query(query)}

    def until(self, query: str) -> str:
        """The first value, once there is one."""
        end = time.monotonic() + 90
        while time.monotonic() < end:
            with suppress(httpx.HTTPError):
                if found := self.prometheus.query(query):
                    return str(found[0]["value"][1])
            time.sleep(1)
        raise AssertionError(f"{query} has no result; {self.prometheus.query('up')}")


class Load:
    """A program on the cluster that runs tasks until the end of the block, and fails if one is lost."""

    def __init__(self, cml: Cml) -> None:
        head = cml.applications()["head"]
        self._stop, self.done = cml.folder / "stop", 0
        environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": head.environment["RAY_AUTH_TOKEN"],
            "RAY_TMPDIR": str(cml.folder),
        }
        script = cml.folder / "load.py"
        script.write_text(LOAD)
        address = f"{head.body['address']}:{cml.ports[0]['port']}"
        self._process = subprocess.Popen(
            [sys.executable, str(script), address, str(self._stop)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> "Load":
        assert self._process.stdout
        seen = [self._process.stdout.readline()]
        while seen[-1] and seen[-1].strip() != "started":
            seen.append(self._process.stdout.readline())
        assert seen[-1], "".join(seen)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.touch()
        output = self._process.communicate(timeout=300)[0]
        assert self._process.returncode == 0, output
        self.done = int(output.split()[-1])
