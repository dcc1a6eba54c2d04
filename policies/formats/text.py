"""A report for people."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from core.problems import dotted

from ..configuration import Level
from ..judge import Finding, Report

_STYLES = {True: "bold red", False: "yellow"}


def show(report: Report) -> None:
    """Print a report; in colours where it is a terminal."""
    console = Console(highlight=False, soft_wrap=True, emoji=False, markup=False)
    for line in lines(report):
        console.print(line)


def lines(report: Report) -> Iterator[Text]:
    """Violations by object, what is not known, exceptions, and the count."""
    of_objects: dict[str, list[Finding]] = defaultdict(list)
    for each in report.findings:
        if each.known and each.exception is None:
            of_objects[f"{each.owner.source}: {each.owner}".removeprefix(": ")].append(each)
    for named, findings in of_objects.items():
        yield Text(named, "bold")
        for each in findings:
            yield from _of(each)
    yield from _unknown(report.findings)
    yield from exceptions(report)
    yield _count(report)


def exceptions(report: Report) -> Iterator[Text]:
    """Every exception: what it excepts now, until when, and who answers for it."""
    if report.exceptions:
        yield Text("Exceptions", "bold")
    for each in report.exceptions:
        if not each.holds(report.today):
            found = ": it holds no more"
        elif used := report.used(each):
            found = f", {used} found"
        else:
            found = ", excepts nothing: remove it"
        state = f"{each.term(report.today)}{found}"
        yield Text(f"  {each.rule} for {each.object}: {state}. {each.reason} ({each.owner})")


def _of(finding: Finding) -> Iterator[Text]:
    line = finding.owner.line(finding.path)
    yield Text.assemble(
        "  ",
        (finding.level, _STYLES[finding.blocks]),
        f" {finding.rule.severity} ",
        (f"{dotted(finding.path)}", "cyan"),
        f" {finding.message}" if finding.path else finding.message,
        (f" [{finding.rule.id}]", "dim"),
        (f" line {line}" if line else "", "dim"),
    )
    yield Text(f"      {finding.rule.what} {finding.rule.fix}", "dim")
    if finding.expired:
        yield Text(f"      Its exception ended on {finding.expired.expires} ({finding.expired.owner}).", "yellow")


def _unknown(findings: Iterable[Finding]) -> Iterator[Text]:
    places: dict[str, list[str]] = defaultdict(list)
    for each in findings:
        if not each.known and each.rule.id not in places[each.place]:
            places[each.place].append(each.rule.id)
    if places:
        yield Text("Cannot be known before `pulumi up`", "bold")
    for place, rules in places.items():
        yield Text.assemble("  ", (place, "cyan"), f" [{', '.join(rules)}]")


def _count(report: Report) -> Text:
    found = [each for each in report.findings if each.known and each.exception is None]
    blocking = sum(each.blocks for each in found)
    advice = sum(each.level is Level.ADVISORY for each in found)
    objects = f"{report.objects} object{'' if report.objects == 1 else 's'}"
    said = f"{objects}: {blocking} mandatory, {advice} advisory"
    return Text(said, "bold red" if blocking else "bold green")
