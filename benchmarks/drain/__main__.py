"""Takes workers of Ray away while they work, on two real nodes, and counts what is lost.

First on one RayCluster with three groups: with a preStop hook `ray stop`, as rendered by default, and with a
`drainTimeout` of two minutes. Then `kubectl drain` of a node with a worker of a RayCluster and one of a RayService,
again and again; and a spot node that gets a taint thirty seconds before all its pods are killed. At last Volcano takes
back a worker for a gang of another queue.
"""

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from benchmarks.page import write_tables
from local import paths
from local.real_node.box import Box, hierarchies
from testbed.gangs import Gangs
from testbed.pods import serving
from testbed.pods.node import is_ready
from testbed.pods.platform import NAMESPACE, Platform, brought_up, pods_cluster
from testbed.pods.serving import CLIENTS, asked
from testbed.pods.steps import Steps, until, until_printed

PAGE = paths.ROOT / "docs" / "measurements" / "draining.md"

STAYS, DRAINED = "real-0", "real-1"

VARIANTS = {"hook": "preStop `ray stop`", "default": "as rendered: 40 s", "long": "`drainTimeout: 2m`"}

CLUSTER = "drained"

MOVES = "moves"
"""The group whose worker is on the node that is drained."""

GPUS = 8
"""Those of a node: counted, not there."""

URGENT = "urgent"
"""The queue that takes a worker back, and its gang."""

SPOT_SECONDS = 30.0
"""Seconds from the warning to the end of a spot node: Azure's and Google's (docs/pods.md)."""

WORK = """
    import json, ray, sys, time
    count, seconds, retries, slot = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    ray.init(logging_level="error")

    @ray.remote(num_cpus=0, resources={"node:__internal_head__": 0.001})
    class Begun:
        def __init__(self):
            self.times = {}

        def begin(self, number):
            self.times[number] = self.times.get(number, 0) + 1

        def twice(self):
            return sum(times > 1 for times in self.times.values())

    begun = Begun.remote()

    @ray.remote(num_cpus=0, max_retries=retries, resources={slot: 1})
    def work(number):
        ray.get(begun.begin.remote(number))
        if number == 0:
            print("it runs", flush=True)
        time.sleep(seconds)

    tasks, lost = [work.remote(number) for number in range(count)], 0
    for task in tasks:
        try:
            ray.get(task)
        except ray.exceptions.RayError:
            lost += 1
    print("counted " + json.dumps({"tasks": count, "lost": lost, "twice": ray.get(begun.twice.remote())}), flush=True)
"""


def group(name: str, slot: str, node: str | None = None, *, only: bool = False, **settings: Any) -> dict[str, Any]:
    """A worker group of one worker with eight slots of a resource. `node`: where it prefers to be, or has to."""
    workers = pods_cluster()["workers"]
    template = workers["podTemplate"]
    if node:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
        template["spec"]["affinity"] = {"nodeAffinity": required if only else preferred}
    slots = {"resources": f"'{json.dumps({slot: 8})}'"}
    return {
        "groupName": name,
        "replicas": 1,
        "cpu": 1,
        "memory": "2Gi",
        "rayStartParams": {**workers["rayStartParams"], "num-cpus": "4", **slots},
        "podTemplate": template,
        **settings,
    }


def cluster(groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A RayCluster without autoscaling, with its head on the node that stays."""
    model = pods_cluster()
    head = model["head"]
    head["podTemplate"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": STAYS}
    head["rayStartParams"]["num-cpus"] = "0"
    return {
        **{key: model[key] for key in ("rayVersion", "image")},
        "autoscaling": False,
        "head": head,
        "workerGroups": list(groups),
    }


def variants(settings: dict[str, Any]) -> None:
    """The stack with the three groups."""
    hooked = group("hook", "hook")
    (container,) = hooked["podTemplate"]["spec"]["containers"]
    container["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}
    groups = [hooked, group("default", "default"), group("long", "long", drainTimeout="2m")]
    settings["tenants"][0]["clusters"] = [{"name": CLUSTER, **cluster(groups)}]


def with_queues(settings: dict[str, Any]) -> None:
    """The stack with a RayCluster that has all GPUs of both nodes, while its queue deserves those of one."""
    settings["scheduler"] = {"volcano": {}}
    settings["nodes"][0]["count"] = 2
    deserved = {"deserved": {"gpus": GPUS}}
    settings["queues"] = [
        {"name": "research", **deserved},
        {"name": URGENT, **deserved, "allowedNamespaces": [NAMESPACE]},
    ]
    gang = group("stays", "slot", STAYS, only=True, gpus=GPUS, minReplicas=1, maxReplicas=1)
    beyond = group(MOVES, "slot", DRAINED, gpus=GPUS, replicas=0, minReplicas=0, maxReplicas=1)
    shared = {"name": CLUSTER, **cluster([gang, beyond]), "autoscaling": True, "queue": "research"}
    settings["tenants"][0]["clusters"] = [shared]


def on_two_nodes(settings: dict[str, Any]) -> None:
    """The stack with a RayCluster and a RayService, each with a worker on either node."""
    groups = [group("stays", "slot", STAYS, only=True), group(MOVES, "slot", DRAINED)]
    service = serving.service("1")
    deployments = [{"name": name, "num_replicas": 2, "max_replicas_per_node": 1} for name in ("Model", "OpenAiIngress")]
    (application,) = service["serveConfigV2"]["applications"]
    application |= {"args": {"version": "1", "seconds": 0.5}, "deployments": deployments}
    service["cluster"] |= cluster(groups)
    (tenant,) = settings["tenants"]
    tenant |= {
        "clusters": [{"name": CLUSTER, **cluster(groups)}],
        "services": [service],
        "network": {"serveFrom": [CLIENTS]},
    }


@dataclass
class Lost:
    """What a round has lost. Times are in seconds."""

    round: str
    seconds: float
    tasks: int
    lost: int
    twice: int
    served: int
    others: dict[str, int]
    """Requests without an answer of the application, by what they got."""


class Working:
    """Tasks that run on the workers with a resource, until they are counted."""

    def __init__(self, platform: Platform, count: int, seconds: float, retries: int, slot: str) -> None:
        head = platform.head(CLUSTER)
        assert head is not None, "the head is not ready"
        arguments = (str(count), str(seconds), str(retries), slot)
        self._process = platform.start_in(head, "ray-head", WORK, *arguments)
        until_printed(self._process, "it runs")

    def counted(self) -> dict[str, int]:
        """`tasks`, `lost`, `twice`."""
        output, _ = self._process.communicate(timeout=900)
        (line,) = (each for each in output.splitlines() if each.startswith("counted "))
        found: dict[str, int] = json.loads(line.removeprefix("counted "))
        return found


def worker(platform: Platform, name: str) -> str:
    """The worker of a group once it is Ready."""

    def found() -> list[str]:
        pods = platform.pods(f"ray.io/group={name},ray.io/cluster={CLUSTER}", NAMESPACE)
        return [name for name, pod in pods.items() if is_ready(pod)]

    until(found, f"the worker of group {name} is ready")
    return found()[0]


def evict(platform: Platform, pod: str) -> float:
    """Evicts a pod. Seconds until it is gone."""
    begun = time.monotonic()
    platform.evict(pod, NAMESPACE)
    platform.kubectl("wait", "-n", NAMESPACE, f"pod/{pod}", "--for=delete", "--timeout=300s")
    return time.monotonic() - begun


def compared(platform: Platform) -> Iterator[str]:
    """The table of hook, default and longer drain."""
    columns = ("A worker's pod is evicted", "Tasks of 18 s lost", "until gone", "A task of 60 s", "until gone", "Idle")
    yield f"| {' | '.join(columns)} |"
    yield "| --- | ---: | ---: | --- | ---: | ---: |"
    for name, title in VARIANTS.items():
        pod = worker(platform, name)
        short = Working(platform, 4, 18.0, 0, name)
        short_gone, short_lost = evict(platform, pod), short.counted()["lost"]
        pod = worker(platform, name)
        long = Working(platform, 1, 60.0, 0, name)
        long_gone, long_lost = evict(platform, pod), long.counted()["lost"]
        idle = evict(platform, worker(platform, name))
        typer.echo(f"{name}: {short_lost} {short_gone:.0f} {long_lost} {long_gone:.0f} {idle:.0f}", err=True)
        kept = "lost" if long_lost else "kept"
        yield f"| {title} | {short_lost} of 4 | {short_gone:.0f} s | {kept} | {long_gone:.0f} s | {idle:.0f} s |"


def settled(platform: Platform) -> None:
    """Has a worker of RayCluster and RayService on either node, and both replicas of each deployment running."""
    platform.kubectl("uncordon", DRAINED)
    label = f"ray.io/group={MOVES}"
    strays = [name for name, pod in platform.pods(label, NAMESPACE).items() if pod["spec"].get("nodeName") != DRAINED]
    if strays:
        platform.kubectl("delete", "pod", "-n", NAMESPACE, "--grace-period=1", *strays)

    def there() -> bool:
        pods = platform.pods(label, NAMESPACE).values()
        return len(pods) == 2 and all(is_ready(pod) and pod["spec"]["nodeName"] == DRAINED for pod in pods)

    until(there, f"both workers that move are ready on {DRAINED}", seconds=600, pause=2)
    (head,) = platform.pods(f"ray.io/node-type=head,ray.io/cluster!={CLUSTER}", NAMESPACE)

    def replicas() -> int:
        status = platform.kubectl("exec", "-n", NAMESPACE, head, "-c", "ray-head", "--", "serve", "status")
        deployments = yaml.safe_load(status)["applications"][serving.NAME]["deployments"].values()
        return min(int(each["replica_states"].get("RUNNING", 0)) for each in deployments)

    until(lambda: replicas() == 2, "both replicas of each deployment run", seconds=600, pause=5)


def patient(settings: dict[str, Any]) -> None:
    """The same stack with more time for the tasks."""
    settings["tenants"][0]["clusters"][0]["drainTimeout"] = "10m"


def brief(settings: dict[str, Any]) -> None:
    """The same stack with a service whose drain ends before the spot node does."""
    (service,) = settings["tenants"][0]["services"]
    service["cluster"]["drainTimeout"] = "25s"
    for deployment in service["serveConfigV2"]["applications"][0]["deployments"]:
        deployment["graceful_shutdown_timeout_s"] = 5


def lost_while(platform: Platform, goes: Callable[[Platform], None], title: str, tasks: int, seconds: float) -> Lost:
    """One round: a node goes while tasks and requests run."""
    settled(platform)
    with asked(platform, 12) as answers:
        work = Working(platform, tasks, seconds, 3, "slot")
        time.sleep(5)
        begun = time.monotonic()
        goes(platform)
        took = time.monotonic() - begun
        counted = work.counted()
    return Lost(title, took, **counted, served=sum(answers.served.values()), others=answers.others)


def drained(platform: Platform, title: str, tasks: int = 100, seconds: float = 10.0) -> Lost:
    """One `kubectl drain`."""

    def drain(platform: Platform) -> None:
        platform.kubectl("drain", DRAINED, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=900s")

    return lost_while(platform, drain, f"`kubectl drain`{title}", tasks, seconds)


def interrupted(platform: Platform, title: str) -> Lost:
    """A spot node: a taint that ends pods, and the end of the node thirty seconds later."""

    def taint_and_kill(platform: Platform) -> None:
        begun = time.monotonic()
        platform.kubectl("taint", "node", DRAINED, "spot=interrupted:NoExecute")
        time.sleep(SPOT_SECONDS - (time.monotonic() - begun))
        kill_pods(platform.rehearsal.run)

    title = f"spot node, killed {SPOT_SECONDS:.0f} s after its taint, {title}"
    lost = lost_while(platform, taint_and_kill, title, 100, 10.0)
    platform.kubectl("taint", "node", DRAINED, "spot-")
    return lost


def reclaimed(platform: Platform) -> Lost:
    """Volcano takes back one of two workers, whichever it chooses, for a gang of the queue that deserves its GPUs."""
    work = Working(platform, 100, 10.0, 3, "slot")
    workers = {worker(platform, "stays"), worker(platform, MOVES)}
    time.sleep(5)
    begun = time.monotonic()
    Gangs(platform.rehearsal, NAMESPACE).start(URGENT, 1, GPUS, URGENT)
    until(lambda: not workers <= platform.pods("ray.io/node-type=worker", NAMESPACE).keys(), "a worker is gone")
    took = time.monotonic() - begun
    return Lost("Volcano takes a worker back, tasks of 10 s", took, **work.counted(), served=0, others={})


def kill_pods(run: Path) -> None:
    """Kills all processes in the cgroups of the second node."""
    for folder in hierarchies():
        for file in (folder / Box(run).cgroup.strip("/") / "1").rglob("cgroup.procs"):
            with suppress(OSError):
                for process in file.read_text().split():
                    with suppress(ProcessLookupError):
                        os.kill(int(process), signal.SIGKILL)


def rounds(platform: Platform, drains: int) -> Iterator[str]:
    """The table of drains."""
    serving.prepare(platform, STAYS)
    yield "| A node goes | Seconds | Tasks | lost | begun twice | Requests | lost |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    platform.stack.edit(on_two_nodes)
    platform.stack.up()
    for number in range(drains):
        yield _row(drained(platform, f" {number + 1}, tasks of 10 s"))
    for _ in range(2):
        yield _row(interrupted(platform, "tasks of 10 s"))
    platform.stack.edit(brief)
    platform.stack.up()
    for _ in range(4):
        yield _row(interrupted(platform, "service with `drainTimeout: 25s`, `graceful_shutdown_timeout_s: 5`"))
    platform.stack.edit(patient)
    platform.stack.up()
    yield _row(drained(platform, ", tasks of 5 min, `drainTimeout: 10m`", 16, 300.0))


def _row(round_: Lost) -> str:
    typer.echo(round_, err=True)
    lost = sum(round_.others.values())
    cells = (round_.round, f"{round_.seconds:.0f}", round_.tasks, round_.lost, round_.twice, round_.served + lost, lost)
    return f"| {' | '.join(map(str, cells))} |"


def all_tables(folder: Path, drains: int) -> Iterator[str]:
    """The lines of both tables."""
    nodes, queues = folder / "nodes", folder / "queues"
    nodes.mkdir()
    queues.mkdir()
    with brought_up(nodes, Steps([]), variants, nodes=2) as platform:
        yield from compared(platform)
        yield ""
        yield from rounds(platform, drains)
    with brought_up(queues, Steps([]), with_queues, nodes=2) as platform:
        yield _row(reclaimed(platform))


def main(
    drains: Annotated[int, typer.Option(min=1, help="How often the node is drained.")] = 10,
    write: Annotated[
        bool, typer.Option("--write", help="Write the tables into docs/measurements/draining.md.")
    ] = False,
) -> None:
    """Print or write the tables."""
    with tempfile.TemporaryDirectory() as folder:
        text = "\n".join(all_tables(Path(folder), drains))
    typer.echo(text)
    if write:
        write_tables(PAGE, "drain", text)


if __name__ == "__main__":
    typer.run(main)
