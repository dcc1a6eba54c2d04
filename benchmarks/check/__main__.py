"""Measures `ray-platform check` and a peer that uses only libraries, each in a separate process.

The peer reads the file with PyYAML and validates it against the JSON Schema for editors. That finds wrong types and
unknown keys, without lines. `check` also renders each RayCluster and applies KubeRay's rules to it.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parents[2]

CLUSTER = """\
        - name: cluster-{number}
          rayVersion: 2.60.0
          image: rayproject/ray:2.60.0
          head: {{cpu: 4, memory: 32Gi}}
          workers: {{pool: a100}}
          idleTimeout: 5m
          env:
            HF_HOME: /models
            EXPERIMENT: "{number}"
          labels: {{team: team-a}}
"""
HEAD = """\
config:
  ray-platform:nodes:
    - {pool: a100, count: 4, cpu: 64, memory: 1000Gi, gpus: 8}
  ray-platform:tenants:
"""
CLUSTERS_OF_A_TENANT = 10

PEER = """
import json, sys, jsonschema_rs, yaml
schema = json.load(open("stack-file.schema.json"))
document = yaml.load(open(sys.argv[1]), Loader=getattr(yaml, sys.argv[2]))
assert not list(jsonschema_rs.validator_for(schema).iter_errors(document))
"""


def stack_file(clusters: int) -> str:
    """A stack file with this number of ordinary clusters, ten per tenant."""
    lines = [HEAD]
    for number in range(clusters):
        if number % CLUSTERS_OF_A_TENANT == 0:
            lines.append(f"    - name: tenant-{number}\n      clusters:\n")
        lines.append(CLUSTER.format(number=number))
    return "".join(lines)


def seconds(command: list[str], runs: int) -> float:
    """Wall time of the fastest of several runs."""
    return min(_once(command) for _ in range(runs))


def _once(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main(
    clusters: Annotated[int, typer.Option(help="Clusters in the stack file.")] = 1000,
    runs: Annotated[int, typer.Option(help="Runs of each, of which the best counts.")] = 5,
    at_most: Annotated[float | None, typer.Option(help="Fail where the check takes more seconds.")] = None,
) -> None:
    """Print the seconds of each, and the ratio to the first."""
    with tempfile.TemporaryDirectory() as folder:
        large, ordinary = Path(folder) / "Pulumi.large.yaml", ROOT / "Pulumi.dev.yaml"
        large.write_text(stack_file(clusters))
        measured = _measured(large, ordinary, runs)
        typer.echo(f"{clusters} clusters, {large.stat().st_size / 1000:.0f} kB; best of {runs} runs, start included")
    check = measured["check"]
    for name, took in measured.items():
        typer.echo(f"{name:<50} {took:6.2f} s  {took / check:5.2f}")
    if at_most is not None and check > at_most:
        raise typer.Exit(1)


def _measured(large: Path, ordinary: Path, runs: int) -> dict[str, float]:
    check = [sys.executable, "-m", "stacks", "check"]
    peer = [sys.executable, "-c", PEER]
    return {
        "check": seconds([*check, str(large)], runs),
        "PyYAML in Python (safe_load) and the JSON Schema": seconds([*peer, str(large), "SafeLoader"], runs),
        "PyYAML in C and the JSON Schema": seconds([*peer, str(large), "CSafeLoader"], runs),
        "check of Pulumi.dev.yaml, one cluster": seconds([*check, str(ordinary)], runs),
    }


if __name__ == "__main__":
    typer.run(main)
