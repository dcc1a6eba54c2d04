"""Volcano with the gangs and queues of a stack, on eight simulated nodes of eight GPUs."""

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from components.monitoring.metrics import Job
from local.rehearsal import Rehearsal
from stacks.load import load
from testbed.gangs import settled
from testbed.machine import lacks
from testbed.platform_stack import Stack, rehearsing
from tests.engine.conftest import POOL, MakeStack
from tests.engine.ray_gangs import RayGangs

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

NODES = POOL.model_copy(update={"count": 8})

NAMESPACES = {"team-a": "of-a", "team-b": "of-b", "team-c": "of-c", "team-d": "of-d"}

QUEUES: dict[str, dict[str, Any]] = {
    "of-a": {"guarantee": {"gpus": 8, "cpu": 2}, "deserved": {"gpus": 32, "cpu": 8}},
    "of-b": {},
    "of-c": {"capability": {"gpus": 16, "cpu": 100}},
    "of-d": {"capability": {"gpus": 8, "cpu": 100}},
}


def gangs_and_queues(settings: dict[str, Any]) -> None:
    """A team for each queue, without RayClusters of the stack's own."""
    settings["nodes"][0]["count"] = NODES.count
    settings["scheduler"] = {"volcano": {}}
    settings["tenants"] = [
        {"name": tenant, "namespace": namespace, "allowDelete": True, "queue": QUEUES[namespace]}
        for tenant, namespace in NAMESPACES.items()
    ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """A separate control plane with eight nodes."""
    with rehearsing(tmp_path_factory.mktemp("cluster") / "run", NODES) as rehearsal:
        yield rehearsal


@pytest.fixture(scope="module")
def up(stack: MakeStack) -> Stack:
    """The stack after `pulumi up`."""
    made = stack("gangs")
    made.edit(gangs_and_queues)
    made.up()
    return made


@pytest.fixture
def a(up: Stack, cluster: Rehearsal) -> RayGangs:
    """A team that deserves half of the GPUs; one node of them is reserved for it."""
    return RayGangs(cluster, "of-a")


@pytest.fixture
def b(up: Stack, cluster: Rehearsal) -> RayGangs:
    """A team that uses what others leave."""
    return RayGangs(cluster, "of-b")


@pytest.fixture
def c(up: Stack, cluster: Rehearsal) -> RayGangs:
    """A team that may have 16 GPUs."""
    return RayGangs(cluster, "of-c")


@pytest.fixture
def d(up: Stack, cluster: Rehearsal) -> RayGangs:
    """A team that may have 8 GPUs."""
    return RayGangs(cluster, "of-d")


def test_of_two_gangs_that_do_not_both_fit_one_starts_and_the_other_uses_nothing(b: RayGangs) -> None:
    """Each needs five of the eight nodes."""
    for name in ("one", "two"):
        b.start_ray(name, {8: 5}, "of-b")
    settled(lambda: {len(b.placed_ray("one")), len(b.placed_ray("two"))} == {6, 0})
    first, second = ("one", "two") if b.placed_ray("one") else ("two", "one")
    settled(lambda: "NotEnoughResources" in b.conditions(f"ray-{second}-pg"))
    assert b.placed_ray(second) == []
    b.end_ray(first)
    settled(lambda: len(b.placed_ray(second)) == 6)
    b.end_ray(second)


def test_jobs_of_a_queue_start_in_the_order_of_their_creation(d: RayGangs) -> None:
    """There is room for one of the ten at a time."""
    names = [f"job-{number}" for number in range(10)]
    for name in names:
        d.start(name, pods=1, gpus=8, queue="of-d")
        time.sleep(1.1)  # Kubernetes' times of creation are in whole seconds
    for name in names:
        settled(partial(d.placed, name))
        assert [other for other in names if other != name and d.placed(other)] == []
        d.end(name)


def test_autoscaled_workers_never_exceed_their_queue(c: RayGangs) -> None:
    most, ending = [0], threading.Event()

    def watch() -> None:
        while not ending.wait(0.1):
            most[0] = max(most[0], c.held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    seeded = random.Random(8)  # noqa: S311 -- it generates the same numbers each time
    try:
        c.start_ray("elastic", {1: 0, 2: 0, 4: 0, 8: 0}, "of-c", scales=True)
        settled(lambda: c.placed_ray("elastic"))
        for _ in range(8):
            c.scale_ray("elastic", {gpus: seeded.randrange(0, 16 // gpus + 2) for gpus in (1, 2, 4, 8)}, "of-c")
            time.sleep(2)
        c.scale_ray("elastic", {1: 0, 2: 0, 4: 0, 8: 3}, "of-c")
        settled(lambda: c.held() == 16)
    finally:
        ending.set()
        watcher.join()
    c.end_ray("elastic")
    assert most[0] == 16


def test_borrowers_return_what_a_queue_deserves(a: RayGangs, b: RayGangs) -> None:
    b.start_ray("borrower", {8: 8}, "of-b", scales=True)
    settled(lambda: b.held() == 56)
    a.start_ray("owner", {8: 4}, "of-a")
    settled(lambda: len(a.placed_ray("owner")) == 5)
    assert b.held() <= 32
    assert b.placed_ray("borrower") != [], "the head of the borrower has ended, too"
    a.end_ray("owner")
    b.end_ray("borrower")


def test_clusters_of_one_name_in_two_namespaces_are_separate_gangs(a: RayGangs, b: RayGangs) -> None:
    for team in (a, b):
        team.start_ray("same", {8: 1}, team.home)
    for team in (a, b):
        settled(partial(_has_placed, team, "same", 2))
        assert team.group(team.home, "ray-same-pg")["spec"]["queue"] == team.home
    a.end_ray("same")
    assert len(b.placed_ray("same")) == 2
    b.end_ray("same")


def _has_placed(team: RayGangs, name: str, pods: int) -> bool:
    return len(team.placed_ray(name)) == pods


def test_a_prometheus_of_the_rehearsal_scrapes_operator_and_scheduler(up: Stack, cluster: Rehearsal) -> None:
    """The jobs of the stack answer, its rules are loaded, and a second start keeps the process."""
    if shutil.which("prometheus") is None:
        lacks("not on the PATH: prometheus; it is in the package prometheus")
    cluster.monitor(load(up.file))

    def ask(path: str) -> Any:
        with urlopen(f"{cluster.prometheus.url}/api/v1/{path}", timeout=10) as answer:  # noqa: S310 -- its own URL
            return json.load(answer)["data"]

    def answering() -> set[str]:
        return {each["metric"]["job"] for each in ask("query?query=up==1")["result"]}

    settled(lambda: answering() == {Job.OPERATOR, Job.VOLCANO_SCHEDULER, Job.VOLCANO_CONTROLLERS})
    assert ask("query?query=up==0")["result"] == []
    rules = {each["name"]: each["rules"] for each in ask("rules")["groups"]}
    assert {each["name"] for each in rules["ray-platform-alerts"]} > {"KubeRayOperatorDown"}
    assert {each["health"] for each in rules["ray-platform-records"]} <= {"ok", "unknown"}
    before = cluster.supervisor.state("prometheus").pid
    cluster.monitor(load(up.file))
    assert cluster.supervisor.state("prometheus").pid == before
    addresses = {each.laddr.ip for each in psutil.Process(before).net_connections("inet") if each.status == "LISTEN"}
    assert addresses == {"127.0.0.1"}
