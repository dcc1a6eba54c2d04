"""The same jobs on a RayCluster that stands, on one that scales, and each on a RayCluster of its own, on real pods.

It measures the GPUs that pods hold while the jobs come and go, and how long a job takes from its submission to its end.
GPUs are counted by Kubernetes and Ray; the real node has none.
"""

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.page import write_tables
from core.nodes import GPU_RESOURCE
from local import paths
from testbed.platform_stack import training
from testbed.pods.platform import NAMESPACE, Platform, brought_up, pods_cluster
from testbed.pods.steps import Steps, until

PAGE = paths.ROOT / "docs" / "measurements" / "job-clusters.md"

GPUS = 4
"""Of each job; a half of the node's."""

STANDING, SCALING, OWN = "standing", "scaling", "own"

WAYS = {
    STANDING: "one RayCluster, its worker always there",
    SCALING: "one RayCluster that scales from no worker",
    OWN: "a RayCluster for each job",
}

LOOK_SECONDS = 1.0


@dataclass
class Way:
    """What jobs cost in one way. Fields: `took`: seconds of each job from its submission to its end; `held`:
    GPU-seconds that pods held, from the first submission to the end of the last pause."""

    took: list[float] = field(default_factory=list)
    held: float = 0.0


def template(way: str) -> str:
    """The name of its job template."""
    return f"{way}-job"


def edited(settings: dict[str, Any], work: int) -> None:
    """Two RayClusters, and a job template for each way."""
    (tenant,) = settings["tenants"]
    model = pods_cluster()
    fixed = {**model["workers"], "variants": [{"gpus": GPUS, "cpu": 1, "memory": "2Gi", "minReplicas": 1}]}
    alone = {key: value for key, value in model.items() if key not in ("workers", "idleTimeout", "name")}
    training(settings).update(name=SCALING)
    tenant["clusters"].append({**alone, "name": STANDING, "autoscaling": False, "workers": fixed})
    code = f"import ray, time; ray.get(ray.remote(num_gpus={GPUS}, num_cpus=0)(lambda: time.sleep({work})).remote())"
    common = {"entrypoint": f'python -c "{code}"', "submissionMode": "HTTPMode"}
    tenant["jobTemplates"] = [
        {**common, "name": template(STANDING), "clusterSelector": {"ray.io/cluster": STANDING}},
        {**common, "name": template(SCALING), "clusterSelector": {"ray.io/cluster": SCALING}},
        {
            **common,
            "name": template(OWN),
            "cluster": {**alone, "autoscaling": False, "workers": fixed},
            "ttlSecondsAfterFinished": 0,
        },
    ]


def way_of(pod: dict[str, Any]) -> str:
    """The way that a pod of Ray belongs to."""
    cluster: str = pod["metadata"]["labels"]["ray.io/cluster"]
    return cluster if cluster in (STANDING, SCALING) else OWN


def held(pod: dict[str, Any]) -> int:
    """The GPUs of a pod that is on a node and has not ended."""
    if "nodeName" not in pod["spec"] or pod["status"]["phase"] not in ("Pending", "Running"):
        return 0
    return sum(int(each["resources"].get("limits", {}).get(GPU_RESOURCE, 0)) for each in pod["spec"]["containers"])


@contextmanager
def watched(platform: Platform, name: str, way: Way) -> Iterator[None]:
    """Adds up the GPUs that pods of a way hold during the context."""
    ended = threading.Event()

    def look() -> None:
        last = time.monotonic()
        while not ended.wait(LOOK_SECONDS):
            pods = platform.pods("ray.io/cluster", NAMESPACE).values()
            now = time.monotonic()
            way.held += (now - last) * sum(held(pod) for pod in pods if way_of(pod) == name)
            last = now

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measured(platform: Platform, name: str, jobs: int, pause: int) -> Way:
    """Runs the jobs of a way one after the other, each some time after the end of the one before."""
    way = Way()
    with watched(platform, name, way):
        for _ in range(jobs):
            begun = time.monotonic()
            created = platform.stacks("run", str(platform.stack.file), template(name), "--wait").strip()
            way.took.append(time.monotonic() - begun)
            job = created.partition("/")[2]
            body = json.loads(platform.kubectl("get", "rayjob", "-n", NAMESPACE, job, "-o", "json"))
            if body["status"]["jobStatus"] != "SUCCEEDED":
                raise SystemExit(f"{created} has not succeeded: {body['status']}")
            print(f"{name}: a job took {way.took[-1]:.0f} s", flush=True)
            time.sleep(pause)
    return way


def table(ways: dict[str, Way], work: int) -> str:
    """The results in Markdown."""
    lines = [
        "| The jobs run on | A job, from submission to end | GPU-seconds held for each job | of which its task used |",
        "| --- | --- | --- | --- |",
    ]
    for name, way in ways.items():
        jobs, used = len(way.took), GPUS * work
        each = way.held / jobs
        lines.append(
            f"| {WAYS[name]} | {min(way.took):.0f} to {max(way.took):.0f} s | {each:.0f} | {min(used / each, 1):.0%} |"
        )
    return "\n".join(lines)


def main(
    jobs: Annotated[int, typer.Option(min=1, help="Jobs for each way.")] = 3,
    work: Annotated[int, typer.Option(min=1, help="Seconds for which a job uses its GPUs.")] = 60,
    pause: Annotated[int, typer.Option(min=1, help="Seconds between the end of a job and the next one.")] = 120,
    write: Annotated[bool, typer.Option("--write", help="Write the table into the page.")] = False,
) -> None:
    """Prints the table."""
    with (
        tempfile.TemporaryDirectory() as folder,
        brought_up(Path(folder), Steps([]), lambda settings: edited(settings, work)) as platform,
    ):
        until(lambda: platform.head(STANDING) and platform.head(SCALING), "both heads are ready")
        ways = {name: measured(platform, name, jobs, pause) for name in WAYS}
    text = (
        f"{jobs} jobs in each way; each uses {GPUS} GPUs for {work} s, and the next comes {pause} s after its end.\n"
        f"Workers of the cluster that scales end after {pods_cluster()['idleTimeout']} without work.\n\n"
        f"{table(ways, work)}"
    )
    print(text)
    if write:
        write_tables(PAGE, "job_clusters", text)


if __name__ == "__main__":
    typer.run(main)
