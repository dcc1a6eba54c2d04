"""Measures how many lines of Ray's logs the collector of a stack reads for each second of CPU, and its memory.

The peer is the same collector without operators: it reads, keeps its places and sends the same lines, and neither joins
nor masks them. The runs alternate. CPU seconds are those of the collector's process alone, without its start.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import psutil
import typer
import yaml

from benchmarks.page import write_tables
from local import paths
from local.control_plane import free_ports
from testbed.log_collector import otelcol, written
from testbed.log_receiver import receiver_config

PAGE = paths.ROOT / "docs" / "measurements" / "logs.md"

LINES = (
    "2026-11-25 08:00:00,{0:03} INFO worker.py:1843 -- Connected to Ray cluster {0}.",
    "[2026-11-25 08:00:00,{0:03} I 77 77] core_worker.cc:1024: Task {0} is finished and its object is in the store.",
    "epoch {0}: loss 0.4321, accuracy 0.8765, 812 samples per second, 3.1 GiB of memory",
    "(train pid=77) step {0} took 0.123 s; the next checkpoint is written to /mnt/models/run/checkpoint_{0}",
)
"""Repeated: lines of Ray in Python and in C++, and of what people print."""

WAIT_SECONDS = 300.0


@dataclass(frozen=True)
class Took:
    """CPU seconds of a run, and the memory in bytes that the collector had at its end."""

    cpu: float
    memory: int


def whole(config: Path) -> None:
    """The configuration as a stack has it."""


def without_operators(config: Path) -> None:
    """The same without operators."""
    content = yaml.safe_load(config.read_text())
    del content["receivers"]["file_log"]["operators"]
    config.write_text(yaml.safe_dump(content))


KINDS: dict[str, Callable[[Path], None]] = {
    "The collector of a stack": whole,
    "The same, which neither joins nor masks": without_operators,
}


def collected(count: int, change: Callable[[Path], None]) -> Took:
    """A run: the collector reads a file with that number of lines, and sends them to a receiver."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        address, sent = f"127.0.0.1:{next(free_ports())}", folder / "records.json"
        (folder / "receiver.yaml").write_text(receiver_config(address, sent))
        config = written(folder, {"endpoint": f"http://{address}"})
        change(config)
        receiver = otelcol(f"--config={folder / 'receiver.yaml'}", log=folder / "receiver.log")
        collector = otelcol(f"--config={config}", log=folder / "log")
        try:
            process = psutil.Process(collector.pid)
            time.sleep(3)
            before = process.cpu_times()
            logs = folder / "ray" / "session_2026-11-25_08-00-00_000000_1" / "logs"
            logs.mkdir(parents=True)
            text = "".join(f"{LINES[number % len(LINES)].format(number)}\n" for number in range(count))
            (logs / "worker-0123456789abcdef-02000000-77.out").write_text(text)
            _wait(sent, count)
            after = process.cpu_times()
            return Took(after.user + after.system - before.user - before.system, process.memory_info().rss)
        finally:
            for each in (collector, receiver):
                each.kill()
                each.wait()


def _wait(sent: Path, count: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not sent.exists() or sent.read_text().count('"body":') < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all of {count} lines have arrived after {WAIT_SECONDS:.0f} s")
        time.sleep(1)


def table(count: int, took: dict[str, list[Took]]) -> Iterator[str]:
    """The table: medians."""
    runs = min(map(len, took.values()))
    yield f"{count} lines, {runs} runs in turns, medians:\n"
    yield "| | Lines for each CPU second | Memory | CPU beside the one without operators |"
    yield "| --- | ---: | ---: | ---: |"
    *_, peer = (statistics.median(each.cpu for each in some) for some in took.values())
    for title, some in took.items():
        cpu, memory = (statistics.median(getattr(each, name) for each in some) for name in ("cpu", "memory"))
        yield f"| {title} | {round(count / cpu, -2):,.0f} | {memory / 2**20:.0f} MiB | {cpu / peer:.1f} |"


def main(
    lines: Annotated[int, typer.Option(min=1000, help="Lines of a run.")] = 200_000,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 3,
    write: Annotated[bool, typer.Option("--write", help="Write the table into docs/measurements/logs.md.")] = False,
) -> None:
    """Print or write the table."""
    took: dict[str, list[Took]] = {title: [] for title in KINDS}
    for _ in range(runs):
        for title, change in KINDS.items():
            took[title].append(collected(lines, change))
    text = "\n".join(table(lines, took))
    typer.echo(text)
    if write:
        write_tables(PAGE, "logs", text)


if __name__ == "__main__":
    typer.run(main)
