"""Prints what checkov, kube-score and this project's policies find in the same manifests, or writes the tables.

A checker finds a fault if it reports something for the manifest with the fault that it does not report without it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
import yaml

from benchmarks.checkers.faults import ELSEWHERE, IN_PODS, OF_RAY, PLACES, Case, of_objects, of_pods
from benchmarks.checkers.tools import Checker, Run, checkers, folder_of
from benchmarks.page import write_tables
from testbed.policies.rendered import stack
from testbed.policies.verdicts import files

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "measurements" / "checkers.md"
COUNTS = DOCS / "reference" / "policy-verdicts.md"

RAY = ("RayCluster", "RayJob", "RayService", "RayCronJob")

Hits = dict[str, list[Case]]
"""The cases whose fault a checker finds, by checker."""


def _cases(cases: list[Case]) -> dict[str, str]:
    """Two files for each case: the manifests with the fault, and without it."""
    texts = {}
    for number, case in enumerate(cases):
        for which, objects in (("good", case.good), ("bad", case.bad)):
            # Each manifest has its own namespace: rules about all objects together see it alone.
            alone = [_moved(each, f"{which}-{number}") for each in objects]
            texts[f"{number}/{which}.yaml"] = yaml.dump_all(alone, Dumper=yaml.CSafeDumper)
    return texts


def hits(cases: list[Case], runs: dict[str, Run]) -> Hits:
    """The cases whose fault each checker finds."""
    return {name: [case for number, case in enumerate(cases) if _found(run, number)] for name, run in runs.items()}


def of(hits_: Hits, faults: Iterable[str]) -> Hits:
    """The hits of some faults."""
    names = set(faults)
    return {name: [case for case in cases if case.fault in names] for name, cases in hits_.items()}


def checked(title: str, texts: dict[str, str], all_checkers: list[Checker]) -> dict[str, Run]:
    """Runs each checker over these files."""
    runs = {}
    with folder_of(texts) as folder:
        for each in all_checkers:
            runs[each.name] = each.run(Path(folder))
            typer.echo(f"{each.name}: {title}: {runs[each.name].seconds:.0f} s", err=True)
    return runs


def _moved(body: dict[str, object], namespace: str) -> dict[str, object]:
    return dict(json.loads(json.dumps(body).replace("team-a", namespace)))


def _found(run: Run, number: int) -> bool:
    reported = {
        which: Counter(
            (each.check, each.what.replace(f"{which}-{number}", ""))
            for each in run.found
            if each.file == f"{number}/{which}.yaml"
        )
        for which in ("good", "bad")
    }
    return bool(reported["bad"] - reported["good"])


def of_faults(found: Hits, title: str, faults: Iterable[str], places: int) -> Iterator[str]:
    """A row for each fault: the number of places where it is found, or whether it is found."""
    yield f"| {title} | {' | '.join(found)} |"
    yield f"| --- |{' :---: |' * len(found)}"
    for fault in faults:
        counts = [sum(case.fault == fault for case in cases) for cases in found.values()]
        cells = (f"{count} of {places}" if places > 1 else "yes" if count else "-" for count in counts)
        yield f"| {fault} | {' | '.join(cells)} |"
    yield ""


def of_places(found: Hits) -> Iterator[str]:
    """A row for each place of a pod template: the number of faults that are found there."""
    yield f"| Place of the pod template | {' | '.join(found)} |"
    yield f"| --- |{' :---: |' * len(found)}"
    for place in PLACES:
        counts = (sum(case.place == place for case in cases) for cases in found.values())
        yield f"| {place} | {' | '.join(f'{count} of {len(IN_PODS)}' for count in counts)} |"
    yield ""


def of_manifests(runs: dict[str, dict[str, Run]]) -> Iterator[str]:
    """A row for each set of manifests and checker."""
    yield "| Manifests | Checker | Findings | of Ray's kinds | Checks that found something | Seconds |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for title, by_checker in runs.items():
        for checker, run in by_checker.items():
            of_ray = sum(each.kind in RAY for each in run.found)
            checks = len({each.check for each in run.found})
            yield f"| {title} | {checker} | {len(run.found)} | {of_ray} | {checks} | {run.seconds:.1f} |"
    yield ""


def of_files(runs: dict[str, Run], names: Iterable[str]) -> Iterator[str]:
    """A row for each file: the number of findings of each checker."""
    counts = {checker: Counter(each.file for each in run.found) for checker, run in runs.items()}
    yield f"| File | {' | '.join(counts)} |"
    yield f"| --- |{' ---: |' * len(counts)}"
    for name in names:
        yield f"| {name} | {' | '.join(str(found[name]) for found in counts.values())} |"


def tables(tried: int, found: Hits, runs: dict[str, dict[str, Run]]) -> Iterator[str]:
    """All tables of the page."""
    in_pods = of(found, IN_PODS)
    yield f"{tried} manifests with one fault each, beside the same manifests without it.\n"
    yield from of_places(in_pods)
    yield from of_faults(in_pods, "Fault of a pod", IN_PODS, len(PLACES))
    yield from of_faults(of(found, OF_RAY), "Fault of Ray", OF_RAY, 1)
    yield from of_faults(of(found, ELSEWHERE), "Fault of another object", ELSEWHERE, 1)
    yield from of_manifests(runs)


def main(
    write: Annotated[bool, typer.Option("--write", help="Write the tables into their pages.")] = False,
) -> None:
    """Print or write the tables."""
    all_checkers = checkers()
    cases = [*of_pods(), *of_objects(OF_RAY), *of_objects(ELSEWHERE)]
    found = hits(cases, checked("faults", _cases(cases), all_checkers))
    published = {name: file.read_text() for name, file in files().items()}
    manifests = {
        "the dev stack": {"dev.yaml": stack("dev")},
        "the prod stack": {"prod.yaml": stack("prod")},
        f"KubeRay's samples and ado's, {len(published)} files": published,
    }
    runs = {title: checked(title, texts, all_checkers) for title, texts in manifests.items()}
    text = "\n".join(tables(len(cases), found, runs))
    counts = "\n".join(of_files(list(runs.values())[-1], published))
    if write:
        write_tables(PAGE, "checkers", text)
        write_tables(COUNTS, "checkers", counts)
    else:
        typer.echo(f"{text}\n{counts}")


if __name__ == "__main__":
    typer.run(main)
