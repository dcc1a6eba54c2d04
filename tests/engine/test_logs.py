"""The real OpenTelemetry Collector with the configurations of stacks: it accepts them, and masks, joins and follows."""

import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.logs.collector import NAMES
from local.control_plane import free_ports
from testbed.log_collector import otelcol, written
from testbed.log_receiver import Record, receiver_config, records
from testbed.logged_secrets import KEYS, ONE_LINE, WITHOUT

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

JOB_FILE = "worker-0123456789abcdef-02000000-77.out"

TRACEBACK = """\
2026-11-25 08:00:00,000\tERROR train.py:7 -- the step failed
Traceback (most recent call last):
  File "train.py", line 5, in step
    read()
OSError: no such bucket
During handling of the above exception, another exception occurred:
Traceback (most recent call last):
  File "train.py", line 7, in <module>
    step()
ray.exceptions.RayTaskError(OSError): step failed"""

OF_RAY = {"RAY_ROTATION_MAX_BYTES": "100000", "RAY_ROTATION_BACKUP_COUNT": "20", "RAY_AUTH_MODE": "disabled"}
"""As many files as the task fills, so that none is gone before a slow machine has read it."""

LINES = 10_000

PRINTS = f"""
import ray, sys
ray.init(_temp_dir=sys.argv[1], num_cpus=1, object_store_memory=80_000_000, include_dashboard=False)
def count():
    for number in range({LINES}):
        print(f"line {{number:06}} of a task with many lines", flush=True)
ray.get(ray.remote(count).remote())
"""

WAIT_SECONDS = 300.0


def until(true: Callable[[], object], what: Callable[[], object]) -> None:
    """Waits for a condition; fails the test with the last `what`."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"after {WAIT_SECONDS:.0f} s only {what()!r}"
        time.sleep(0.2)


class Place:
    """A collector, and a receiver that it sends to."""

    def __init__(self, folder: Path) -> None:
        self.ray, self._records, self._folder = folder / "ray", folder / "records.json", folder
        address = f"127.0.0.1:{next(free_ports())}"
        (folder / "receiver.yaml").write_text(receiver_config(address, self._records))
        self._config = written(folder, {"endpoint": f"http://{address}", "redact": ["EMP-[0-9]{6}"]})
        self.receive()
        self.start()

    def receive(self) -> None:
        self._receiver = otelcol(f"--config={self._folder / 'receiver.yaml'}", log=self._folder / "receiver.log")

    def lose_receiver(self) -> None:
        self._receiver.kill()
        self._receiver.wait()

    def start(self) -> None:
        self._collector = otelcol(f"--config={self._config}", log=self._folder / "log")

    def end(self) -> None:
        """Ends the collector as a kubelet does."""
        self._collector.terminate()
        assert self._collector.wait(timeout=20) == 0, (self._folder / "log").read_text()

    def stop(self) -> None:
        for process in (self._collector, self._receiver):
            process.kill()
            process.wait()

    def write(self, name: str, *texts: str) -> None:
        logs = self.ray / "session_2026-11-25_08-00-00_000000_1" / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / name).open("a") as file:
            file.writelines(f"{text}\n" for text in texts)

    def records(self) -> list[Record]:
        """All records that have arrived."""
        return records(self._records)

    def of(self, name: str) -> list[Record]:
        """Those of a file."""
        return [each for each in self.records() if each.attributes["log.file.name"] == name]

    def bodies(self, name: str) -> list[str]:
        return [each.body for each in self.of(name)]

    def arrive(self, name: str, *bodies: str) -> None:
        """Waits until the file's records are these."""
        until(lambda: self.bodies(name) == list(bodies), lambda: self.bodies(name))


@pytest.fixture
def place() -> Iterator[Place]:
    # Not tmp_path, which is too long for the sockets of Ray.
    with tempfile.TemporaryDirectory(prefix="logs-") as folder:
        made = Place(Path(folder))
        try:
            yield made
        finally:
            made.stop()


@pytest.mark.parametrize(
    "settings",
    [
        {"exporter": "otlp", "endpoint": "http://otel.logs.svc:4318"},
        {
            "exporter": "loki",
            "endpoint": "https://loki.example.com/$team",
            "headers": {"X-Scope-OrgID": "a$b", "Authorization": {"secret": "s", "key": "k"}},
            "ca": {"secret": "s", "key": "ca.crt"},
            "redact": [r"\bEMP-\d+$", "[^a]`b"],
        },
    ],
    ids=["otlp", "loki"],
)
def test_the_collector_accepts_the_configuration(settings: Mapping[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "log"
    checked = otelcol("validate", f"--config={written(tmp_path, settings)}", log=log)
    assert checked.wait(timeout=60) == 0, log.read_text()
    assert "deprecated" not in log.read_text()


def test_secrets_are_masked_and_other_texts_stay(place: Place) -> None:
    place.write("job-driver-raysubmit_a.log", *(each.text for each in ONE_LINE), *WITHOUT, "of EMP-123456")
    place.arrive("job-driver-raysubmit_a.log", *(each.masked for each in ONE_LINE), *WITHOUT, "of ***")


def test_a_private_key_and_a_traceback_are_one_record(place: Place) -> None:
    place.write(JOB_FILE, "begin", *KEYS, TRACEBACK.replace("During", "\nDuring"), "end")
    place.arrive(JOB_FILE, "begin", *("***" for _ in KEYS), TRACEBACK, "end")
    failed = place.of(JOB_FILE)[-2]
    assert failed.severity == "ERROR"
    assert failed.attributes == {
        **{name: variable.lower() for name, variable in NAMES.items()},
        "ray.tenant": "team-a",
        "ray.job_id": "02000000",
        "log.file.name": JOB_FILE,
    }


def test_workers_that_begin_with_the_same_lines_are_two_files(place: Place) -> None:
    same = [f"warning {number} of a library" for number in range(100)]
    names = [f"worker-{letter * 16}-02000000-7{at}.err" for at, letter in enumerate("ab")]
    for name in names:
        place.write(name, *same, f"only {name}")
    for name in names:
        until(functools.partial(_has, place, name, f"only {name}"), functools.partial(place.bodies, name))


def _has(place: Place, name: str, body: str) -> bool:
    return body in place.bodies(name)


def test_a_collector_that_ends_keeps_all_that_it_has_read_and_its_successor_sends_nothing_twice(place: Place) -> None:
    place.write("raylet.out", "first", "second")
    until(lambda: _has(place, "raylet.out", "first"), lambda: place.bodies("raylet.out"))
    # It ends while `second` could still be continued, and sends it or keeps it in its queue.
    place.end()
    place.write("raylet.out", "third")
    place.start()
    until(lambda: {"second", "third"} <= set(place.bodies("raylet.out")), lambda: place.bodies("raylet.out"))
    assert sorted(place.bodies("raylet.out")) == ["first", "second", "third"]


def test_lines_wait_for_a_receiver_that_is_down(place: Place) -> None:
    place.lose_receiver()
    place.write("raylet.out", "first", "second")
    time.sleep(3)  # It sends what it has read after a second, and logs no failure that it tries again.
    place.receive()
    # Each was a request, and requests that are tried again arrive in any order.
    until(lambda: len(place.bodies("raylet.out")) == 2, lambda: place.bodies("raylet.out"))
    assert sorted(place.bodies("raylet.out")) == ["first", "second"]


def test_each_line_of_real_ray_that_rotates_its_files_arrives_once(place: Place) -> None:
    ray = subprocess.run(
        [sys.executable, "-c", PRINTS, place.ray], env={**os.environ, **OF_RAY}, capture_output=True, check=False
    )
    assert ray.returncode == 0, ray.stderr.decode()
    logs = next(place.ray.glob("session_2*/logs"))
    rotated = list(logs.glob("worker-*.out*"))
    assert len(rotated) > 3

    def numbers() -> list[int]:
        return sorted(int(each.body.split()[1]) for each in place.records() if each.body.startswith("line "))

    until(lambda: len(numbers()) >= LINES, lambda: len(numbers()))
    assert numbers() == list(range(LINES))
    assert all("ray.job_id" not in each.attributes for each in place.records())
