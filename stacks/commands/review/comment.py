"""A review as Markdown for one comment: first what happens to whom, then everything in folded parts."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from core.problems import few, in_one_line
from core.secrets import SECRET_VALUE
from kuberay.edits import Verdict
from policies.judge import Finding
from stacks.commands.impact.comparison import ALL, Figures, Impact
from stacks.commands.impact.effects import Effect, ObjectImpact
from stacks.commands.impact.other_objects import RIGHTS
from stacks.commands.impact.report import change, pods_ended, together
from stacks.commands.impact.report import report as impact_report
from stacks.commands.plan.report import NONE, Report, Table
from stacks.commands.plan.report import report as plan_report
from stacks.commands.plan.text import escaped, in_markdown
from stacks.commands.review.reports import Preview, Rehearsal
from stacks.commands.review.reviewed import Judged, Review, Reviewed

MARKER = "<!-- ray-platform review -->"
"""First line, by which a workflow finds the comment to update."""

LONGEST = 60_000
"""Characters. GitHub refuses comments of more than 65,536 (gitlab.com allows a million)."""

_SHOWN = 5
"""Number of lines of one sort that are not folded."""

_LONGEST_TEXT = 300
"""Characters of a line that is not folded."""

_NOTHING = "none"

_QUIET = {
    Verdict.CREATES: "created",
    Verdict.REMOVES: "removed",
    Verdict.IN_PLACE: "changed in place",
    Verdict.NEW_PODS: "changed for new pods",
}
"""What happens to objects that have no line of their own."""

_STRONG = re.compile(
    r"\*|\b(secrets|exec|ephemeralcontainers|token|(cluster)?role(binding)?s|impersonate|escalate|bind)\b"
)
"""Rights by which somebody reads secrets, runs commands in pods of others, or gets more rights."""

_MAIN = ("Stack", "Result", "Pods ended", "GPUs at most", "Cost per hour", "Changed rights", "New violations")


def comment(review: Review) -> str:
    """The comment. Values that look like secrets are hidden; folded parts that make it too long are left out."""
    short = [MARKER, *_head(review)]
    parts = [["", *_of_stack(each, review.change.base)] for each in review.stacks]
    folded = [list(details(each)) for each in review.stacks]
    room = LONGEST - sum(len(line) + 1 for lines in (short, *parts) for line in lines)
    for each, part, more in zip(review.stacks, parts, folded, strict=True):
        size = sum(len(line) + 1 for line in more)
        if size > room:
            impact = f"ray-platform impact --from {review.change.base} --to {each.name}"
            plan = f"ray-platform plan {each.name}"
            more = ["", f"The details are too long for a comment: see `{impact}` and `{plan}`."]
        else:
            room -= size
        part += more
    ending = ["", f"Written by `ray-platform review --base {review.change.base}`."]
    return _within("\n".join([*short, *(line for part in parts for line in part), *ending]))


def _within(text: str) -> str:
    """A text of thousands of stacks, cut where it is too long."""
    if len(text) <= LONGEST:
        return text
    return text[: text.rindex("\n", 0, LONGEST)] + "\n\nThe rest is too long for a comment."


def _head(review: Review) -> Iterator[str]:
    number = len(review.stacks)
    if not number:
        yield "### Stack review: this change touches no stack"
        return
    worst = review.stacks[0].result
    concerned = [plain(each.name) for each in review.stacks if each.result is worst]
    others = f"; {number - len(concerned)} more touched" if number > len(concerned) else ""
    yield f"### Stack review: {few(concerned, _SHOWN)}: {worst}{others}\n"
    yield from in_markdown(Table("", _MAIN, tuple(_row(each) for each in review.stacks)))
    if files := review.change.program:
        named = few([f"`{each}`" for each in files], _SHOWN)
        yield (
            f"\nThe program changes ({named}), which concerns all stacks. Both sides are computed by the new program: "
            "what it creates in another way, only a preview shows."
        )


def _row(each: Reviewed) -> tuple[str, ...]:
    result = f"new, {each.result}" if each.new else str(each.result)
    if each.impact is None:
        return each.name, result, *["unknown" if each.checked else NONE] * 4, _violations(each)
    whole = next((row for row in each.impact.budget.rows if row.whose == ALL), None)
    gpus, cost = (change(whole, part) if whole else "same" for part in ("most", "cost"))
    rights = sum(one.kind == RIGHTS for one in each.impact.objects)
    ended = pods_ended(each.impact).replace(NONE, _NOTHING)
    return each.name, result, ended, gpus, cost, str(rights or _NOTHING), _violations(each)


def _violations(each: Reviewed) -> str:
    if each.policies is None:
        return "unknown" if each.checked else NONE
    mandatory = sum(one.blocks for one in each.policies.new)
    others = len(each.policies.new) - mandatory
    counts = [f"{number} {what}" for number, what in ((mandatory, "mandatory"), (others, "advisory")) if number]
    return ", ".join(counts) or _NOTHING


def _of_stack(each: Reviewed, base: str) -> Iterator[str]:
    lines = list(_lines(each, base))
    if lines or each.touched.bases:
        by = f", through {few([f'`{one}`' for one in each.touched.bases], _SHOWN)}" if each.touched.bases else ""
        yield f"#### {plain(each.name)}{by}\n"
        yield from (f"- {line}" for line in lines)


def _lines(each: Reviewed, base: str) -> Iterator[str]:
    if each.checked is None:
        yield (
            f"**Deleted**: `{each.touched.file}`. What the stack has created stays in the cluster. To remove it, run "
            f"`pulumi destroy -s {each.name}` before you merge this"
        )
    else:
        found = [one.in_file(each.checked.file) for one in each.checked.findings]
        yield from _some(
            [f"**Error**: {_short(one, 'in full by `check`')}" for one in found],
            f"`ray-platform check {each.name}`",
        )
    if each.invalid_before:
        yield f"The file has errors in {base}, so it is unknown what changes for running pods"
    if each.policies:
        new = (_violation(some, "new") for some in _by_rule(one for one in each.policies.new if one.blocks))
        old = (_violation(some, "not new") for some in _by_rule(one for one in each.policies.old if one.blocks))
        yield from _some([*new, *old], "below")
    if each.impact:
        yield from _of_impact(each.impact)
    if each.preview:
        yield from _of_preview(each.preview)
    if each.rehearsal:
        yield from _of_rehearsal(each.rehearsal)


def _of_preview(preview: Preview) -> Iterator[str]:
    counts = ", ".join(f"{number} to {operation}" for operation, number in preview.counts.items())
    errors = f". It reported errors, {preview.errors}: its log has them" if preview.errors else ""
    yield f"**Preview**: {counts or 'no changes'}{errors}"
    lost = [each for each in preview.steps if each.operation in ("delete", "replace")]
    yield from _some([f"**Preview, {each.operation}**: {plain(each.resource)}" for each in lost], "below")


def _of_rehearsal(rehearsal: Rehearsal) -> Iterator[str]:
    ready = f"{rehearsal.ready} of {rehearsal.number} RayClusters were ready"
    yield f"**Rehearsal**: {ready}{', all as planned' if rehearsal.well else ''}"
    yield from _some([f"**Rehearsal**, {_short(each)}" for each in rehearsal.problems], "below")


def _violation(some: Sequence[Finding], when: str) -> str:
    """All violations of one rule."""
    one, more = some[0], len(some) - 1
    others = f" (and {more} more)" if more else ""
    rule = f"**Mandatory policy `{one.rule.id}`** ({when})"
    return f"{rule}: {_short(f'{one.place}: {one.message}')}{others}. {plain(one.rule.fix)}"


def _of_impact(impact: Impact) -> Iterator[str]:
    objects = together(impact)
    rights = sorted((each for each in objects if each.kind == RIGHTS), key=lambda each: not _gains(each))
    shown = [each for each in objects if any(map(_matters, each.effects))]
    yield from _some([_effect(each, effect) for each in shown for effect in each.effects if _matters(effect)], "below")
    yield from (f"**Overcommitted from now on**: {plain(each)}" for each in impact.budget.promises)
    yield from _some([_gpus(row) for row in impact.budget.rows if row.whose != ALL], "below")
    changed = [(plain(each.name), "; ".join(map(_strongest_first, each.effects))) for each in rights]
    yield from _some([f"**Rights** of {name}: {_short(texts)}" for name, texts in changed], "below")
    rest = [each.verdict for each in impact.objects if each.kind != RIGHTS and not any(map(_matters, each.effects))]
    if rest:
        listed = ", ".join(f"{number} {_QUIET.get(verdict, verdict)}" for verdict, number in Counter(rest).items())
        yield f"**{'Other o' if shown else 'O'}bjects**: {listed}"


def _matters(effect: Effect) -> bool:
    """Whether it has a line of its own: it ends pods, or fails, or leaves running pods without the edit."""
    return effect.verdict.harm >= Verdict.IGNORED.harm or bool(effect.ended)


def _effect(each: ObjectImpact, effect: Effect) -> str:
    fails = effect.verdict is Verdict.REFUSED
    verdict = "`pulumi up` fails" if fails else str(effect.verdict).capitalize()
    safer = f" *Safer*: {_short(effect.safer)}." if effect.safer and (fails or effect.verdict.hurts) else ""
    return f"**{verdict}**: {plain(f'{each.kind} {each.name}')}: {_short(effect.text)}.{safer}"


def _gpus(row: Figures) -> str:
    # Of a tenant that is new or removed only one side has figures.
    one = replace(row, before=row.before or row.after, after=row.after or row.before)
    always, most, cost = (plain(change(one, part)) for part in ("always", "most", "cost"))
    state = " (new)" if row.before is None else " (removed)" if row.after is None else ""
    paid = "" if cost == NONE else f"; cost per hour {cost}"
    return f"**GPUs** of {plain(row.whose)}{state}: {most} at most, {always} always{paid}"


def _strongest_first(effect: Effect) -> str:
    """`gains in namespace team-a: get secrets; list pods`: a text that is cut still has what matters."""
    if effect.detail:
        return effect.text
    where, _, rights = effect.text.partition(": ")
    return f"{where}: {'; '.join(sorted(rights.split('; '), key=lambda one: not _STRONG.search(one)))}"


def _gains(each: ObjectImpact) -> bool:
    return any(effect.text.startswith(("gains", "now")) for effect in each.effects)


def _some(lines: Sequence[str], where: str) -> Iterator[str]:
    """The first lines, and the number of the others."""
    yield from lines[:_SHOWN]
    if (more := len(lines) - _SHOWN) > 0:
        yield f"and {more} more: {where}"


def _short(text: str, where: str = "in full below") -> str:
    """A text, cut between two words if it is long."""
    if len(text) <= _LONGEST_TEXT:
        return plain(text)
    return f"{plain(text[: text.rfind(' ', 0, _LONGEST_TEXT)])} … ({where})"


_MOST = 100
"""Number of rows of a folded table, and of sentences below it."""


def details(each: Reviewed) -> Iterator[str]:
    """The folded parts, as lines."""
    name = each.name
    if each.checked and each.checked.advice:
        advice = [one.in_file(each.checked.file) for one in each.checked.advice]
        yield from _folded(f"Advice on {name}: {len(advice)}", _items(advice))
    if each.impact and each.impact.objects:
        found = impact_report("", each.impact, full=True)
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
            yield from (f"**{title}**", "", *_items(map(_of_rule, _by_rule(some))), "")


def _by_rule(findings: Iterable[Finding]) -> list[list[Finding]]:
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
