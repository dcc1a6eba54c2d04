"""Jobs over time: seeded mixes, and traces from files."""

import csv
import random
from pathlib import Path

from stacks.commands.plan.history.jobs import Job

SIZES = {1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}
"""GPUs of jobs and their shares, in Microsoft's Philly cluster according to Gavel (OSDI'20; scripts/utils/ in
stanford-futuredata/gavel)."""

BUSY = 64
"""GPUs that a mix keeps busy on average: eight nodes of eight."""


def philly(seed: int, count: int, unit: float) -> list[Job]:
    """Jobs of the Philly mix, with Poisson arrivals.

    Gavel's durations: 10^1.5 to 10^3 units for four of five jobs, 10^3 to 10^4 for the fifth. Its unit is a minute.
    """
    seeded = random.Random(seed)  # noqa: S311 -- reproducible numbers
    mean = sum(gpus * share for gpus, share in SIZES.items()) * unit * _MEAN_UNITS
    jobs, now = [], 0.0
    for _ in range(count):
        now += seeded.expovariate(BUSY / mean)
        gpus = seeded.choices(list(SIZES), list(SIZES.values()))[0]
        low, high = (1.5, 3.0) if seeded.random() < _SHORT else (3.0, 4.0)
        jobs.append(Job(gpus, unit * 10 ** seeded.uniform(low, high), now))
    return jobs


_SHORT = 0.8
_MEAN_UNITS = 1006.0
"""Mean of those durations."""


def trace(path: Path, count: int) -> list[Job]:
    """The first jobs with GPUs of a trace, at most `count`.

    CSV with the columns `gpus,duration,arrival`; or `num_gpu,creation_time,deletion_time`, as in Alibaba's
    cluster-trace-gpu-v2023, where a fraction of a GPU counts as one.
    """
    with path.open(newline="") as file:
        jobs = [_job(row) for row in csv.DictReader(file)]
    with_gpus = sorted((job for job in jobs if job.gpus and job.duration > 0), key=lambda job: job.arrival)
    return with_gpus[:count]


def _job(row: dict[str, str]) -> Job:
    if "num_gpu" not in row:
        return Job(int(row["gpus"]), float(row["duration"]), float(row["arrival"]))
    arrival = float(row["creation_time"])
    return Job(int(row["num_gpu"]), float(row["deletion_time"] or arrival) - arrival, arrival)
