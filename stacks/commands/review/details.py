"""The folded parts of a comment: everything that the review of a stack has found."""

from collections.abc import Iterable, Iterator

from core.problems import in_one_line
from core.secrets import SECRET_VALUE
from policies.judge import Finding
from stacks.commands.impact.report import report as impact_report
from stacks.commands.plan.report import Report, Table
from stacks.commands.plan.report import report as plan_report
from stacks.commands.plan.text import escaped, in_markdown
from stacks.commands.review.judged import Judged
from stacks.commands.review.previewed import Preview
from stacks.commands.review.reviewed import Reviewed

_MOST = 100
"""Number of rows of a folded table, and of sentences below it."""


def details(each: Reviewed) -> Iterator[str]:
    """The folded parts, as lines."""
    name = each.name
    if each.checked and each.checked.advice:
        advice = [one.in_file(each.checked.file) for one in each.checked.advice]
        yield from _folded(f"Advice on {name}: {len(advice)}", _items(advice))
    if each.impact and each.impact.objects:
        found = impact_report("", each.impact)
        yield from _folded(f"Impact on {name}: each object, why, and what would be safer", _reported(found))
    if each.policies and (each.policies.new or each.policies.old or each.policies.mended):
        yield from _folded(_title(name, each.policies), _judged(each.policies))
    if each.plan:
        yield from _folded(f"Plan of {name} after the change", _reported(plan_report("", each.plan)))
    if each.preview and each.preview.steps:
        yield from _folded(f"Preview of {name}: {len(each.preview.steps)} resources", _previewed(each.preview))
    if each.rehearsal and each.rehearsal.problems:
        problems = each.rehearsal.problems
        yield from _folded(f"Problems of the rehearsal of {name}: {len(problems)}", _items(problems))


def plain(text: str) -> str:
    """A text without secrets that are known by their look, in one line, in which Markdown finds no marks."""
    return escaped(SECRET_VALUE.sub("***", in_one_line(text)))


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    # GitHub and GitLab read Markdown inside HTML only after an empty line.
    yield from ("", f"<details><summary>{plain(title)}</summary>", "", *lines, "", "</details>")


def _reported(report: Report) -> Iterator[str]:
    for table in report.tables:
        yield from (f"**{table.title}**", "", *in_markdown(_hidden(table)), "")
        yield from _rest(len(table.rows), "rows")
    yield from _items(report.sentences)


def _hidden(table: Table) -> Table:
    """The first rows of a table, without secrets."""
    rows = tuple(tuple(SECRET_VALUE.sub("***", in_one_line(cell)) for cell in row) for row in table.rows[:_MOST])
    return Table(table.title, table.columns, rows)


def _items(texts: Iterable[str]) -> Iterator[str]:
    found = list(texts)
    yield from (f"- {plain(each)}" for each in found[:_MOST])
    yield from _rest(len(found), "lines")


def _rest(number: int, what: str) -> Iterator[str]:
    if number > _MOST:
        yield f"\n{number - _MOST} more {what} are not shown.\n"


def _title(name: str, found: Judged) -> str:
    return f"Policies of {name}: {len(found.new)} new, {len(found.old)} as before, {found.mended} no longer"


def _judged(found: Judged) -> Iterator[str]:
    for title, some in (("New", found.new), ("As before", found.old)):
        if some:
            yield from (f"**{title}**", "", *_items(map(_of_rule, by_rule(some))), "")


def by_rule(findings: Iterable[Finding]) -> list[list[Finding]]:
    """The findings of each rule, those that block first."""
    rules: dict[str, list[Finding]] = {}
    for each in sorted(findings, key=lambda each: not each.blocks):
        rules.setdefault(each.rule.id, []).append(each)
    return list(rules.values())


def _of_rule(some: list[Finding]) -> str:
    one, more = some[0], len(some) - 1
    others = f", and {more} more" if more else ""
    return f"{one.level} {one.rule.id}: {one.place}: {one.message}{others}. {one.rule.fix}"


def _previewed(preview: Preview) -> Iterator[str]:
    rows = tuple((each.resource, each.operation, each.shown) for each in preview.steps[:_MOST])
    yield from in_markdown(_hidden(Table("", ("Resource", "Operation", "Fields"), rows)))
    yield from _rest(len(preview.steps), "resources")
