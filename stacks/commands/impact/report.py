"""What an edit does, for people and for programs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from core.problems import few
from kuberay.edits import Verdict
from stacks.commands.impact.comparison import ONLY_KUBERAY, Amounts, Budget, Figures, Impact
from stacks.commands.impact.effects import Effect, ObjectImpact, Range, worst
from stacks.commands.plan.report import NONE, Report, Table

_NAMED = 2
"""Number of objects that are named in a shared row."""


def report(title: str, impact: Impact, *, full: bool = False) -> Report:
    """The report: a row for each object, and below a sentence for each effect.

    Objects of a kind with the same effects share a row. Unless it is `full`, admission policies share one row, and
    details of effects are left out.
    """
    impact = impact if full else replace(impact, objects=tuple(_brief(impact.objects)))
    rows = tuple(_row(each) for each in together(impact))
    columns = ("Object", "What happens", "Pods ended", "Pods made")
    made = (Table("Objects", columns, rows), _figures(impact.budget))
    return Report(title, tuple(table for table in made if table.rows), tuple(_sentences(impact)))


_DONE = {Verdict.CREATES: "created", Verdict.REMOVES: "removed"}

_POLICIES = "ValidatingAdmissionPolicy"
"""Begin of the kinds of admission policies and their bindings."""


def _brief(objects: Iterable[ObjectImpact]) -> Iterator[ObjectImpact]:
    """The objects without details; the admission policies as one, at the end."""
    policies: list[ObjectImpact] = []
    for each in objects:
        if each.kind.startswith(_POLICIES) and not each.verdict.hurts:
            policies.append(each)
        else:
            yield replace(each, effects=tuple(replace(effect, detail="") for effect in each.effects))
    if policies:
        counts = Counter(_DONE.get(each.verdict, "changed") for each in policies)
        listed = ", ".join(f"{number} {what}" for what, number in counts.items())
        effect = Effect(
            worst(each.verdict for each in policies), f"{listed}; what runs stays. `--format json` has each"
        )
        yield ObjectImpact("Admission policies", "and their bindings", (effect,))


def _figures(budget: Budget) -> Table:
    rows = tuple((row.whose, *(change(row, part) for part in ("always", "most", "cost"))) for row in budget.rows)
    return Table("GPUs and cost", ("Tenant", "GPUs always", "GPUs at most", "Cost per hour"), rows)


def change(row: Figures, part: str) -> str:
    """A field of Amounts, before and after."""
    was, will = (getattr(each, part) if each else NONE for each in (row.before, row.after))
    return was if was == will else f"{was} -> {will}"


def _row(each: ObjectImpact) -> tuple[str, ...]:
    effects = _apart(each.effects)
    ended, made = (_total(getattr(effect, part) for effect in effects) for part in ("ended", "made"))
    return (f"{each.kind} {each.name}", each.verdict, f"{ended}{_busy(each, effects)}", made)


def pods_ended(impact: Impact) -> str:
    """How many pods an edit ends, of all objects together."""
    return _total(effect.ended for each in impact.objects for effect in _apart(each.effects))


def together(impact: Impact) -> list[ObjectImpact]:
    """The objects; those of a kind with the same effects are combined, with the names of some. RayClusters stay
    separate."""
    found: dict[tuple[Any, ...], list[ObjectImpact]] = {}
    for each in impact.objects:
        key = (each.kind, each.name if each.kind == "RayCluster" else None, each.effects)
        found.setdefault(key, []).append(each)
    return [replace(some[0], name=few([each.name for each in some], _NAMED)) for some in found.values()]


def _apart(effects: Sequence[Effect]) -> list[Effect]:
    """The effects whose pods no other effect covers: if one effect stops all pods, the effects that stop some add
    none."""
    whole = next((effect for effect in effects if effect.ended and not effect.groups), None)
    return [effect for effect in effects if whole in (None, effect) or not effect.ended]


def _busy(each: ObjectImpact, effects: Iterable[Effect]) -> str:
    """How many of the pods that are stopped, busy or not, are busy."""
    stopping = [effect for effect in effects if effect.ended and effect.verdict.hurts]
    if each.busy_unknown and stopping:
        return ", busy: unknown"
    known = [effect.busy for effect in stopping if effect.busy is not None]
    return f", {_total(known).replace(NONE, '0')} busy" if known else ""


def _total(ranges: Iterable[Range]) -> str:
    """The sum, for a column."""
    summed = list(ranges)
    most = None if any(each.most is None for each in summed) else sum(each.most or 0 for each in summed)
    total = Range(sum(each.least for each in summed), most)
    return str(total) if total else NONE


def _sentences(impact: Impact) -> Iterator[str]:
    for each in together(impact):
        for effect in each.effects:
            yield f"{each.kind} {each.name}: {_sentence(effect)}"
    yield from (f"Overcommitted from now on: {each}." for each in impact.budget.promises)
    # The last sentence says it, unless something is disrupted.
    yield from (note for note in impact.notes if impact.verdict.hurts or note != ONLY_KUBERAY)
    # No verdict on what was not looked at.
    compared = ONLY_KUBERAY not in impact.notes
    nothing = (
        "nothing that runs"
        if compared
        else "no RayCluster, RayService, RayJob or tenant that runs; other objects were not compared"
    )
    if not impact.objects:
        yield f"The edit affects {nothing}."
    elif impact.verdict.hurts:
        disrupted = [each for each in impact.objects if each.verdict.hurts]
        yield f"Disrupts what runs: {', '.join(f'{each.kind} {each.name}' for each in disrupted)}."
    elif impact.verdict is Verdict.REFUSED:
        refused = [each for each in together(impact) if each.verdict is Verdict.REFUSED]
        names = ", ".join(f"{each.kind} {each.name}" for each in refused)
        yield f"`pulumi up` fails: {names}. The edit disrupts {nothing}."
    else:
        limits = dict.fromkeys(effect.limit for each in impact.objects for effect in each.effects if effect.limit)
        longer = f", except work that is longer than {' or '.join(limits)}" if limits else ""
        yield f"The edit disrupts {nothing}{longer}."


_WAYS = {
    Verdict.IGNORED: "To apply it",
    Verdict.NEW_PODS: "To apply it everywhere",
    Verdict.REFUSED: "Instead",
}
"""What precedes the way out, which is not always the safer one."""


def _sentence(effect: Effect) -> str:
    parts = [f"{effect.text} ({effect.detail})" if effect.detail else effect.text]
    if effect.reason:
        parts.append(f"Why: {effect.reason}")
    if effect.safer:
        parts.append(f"{_WAYS.get(effect.verdict, 'Safer')}: {effect.safer}")
    return ". ".join(parts) + "."


def as_object(impact: Impact) -> dict[str, Any]:
    """The impact for programs. Keys stay the same; `most` of pods is null if no limit is set.

    `podsEndedBusy` is null if nobody asked, if it is unknown (`busyUnknown` has the reason), and if pods are stopped
    only when they are idle.
    """
    return {
        "verdict": impact.verdict,
        "hurts": impact.verdict.hurts,
        "objects": [
            {
                "kind": each.kind,
                "name": each.name,
                "verdict": each.verdict,
                "hurts": each.verdict.hurts,
                "busyUnknown": each.busy_unknown or None,
                "effects": [_effect(effect) for effect in each.effects],
            }
            for each in impact.objects
        ],
        "figures": [
            {"tenant": row.whose, **{part: _figure(getattr(row, part)) for part in ("before", "after")}}
            for row in impact.budget.rows
        ],
        "overcommitments": list(impact.budget.promises),
        "notes": list(impact.notes),
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "verdict": effect.verdict,
        "hurts": effect.verdict.hurts,
        "says": effect.text,
        "detail": effect.detail,
        "reason": effect.reason,
        "safer": effect.safer,
        "source": effect.source,
        "limit": effect.limit or None,
        "groups": list(effect.groups),
        "podsEnded": asdict(effect.ended),
        "podsEndedBusy": None if effect.busy is None else asdict(effect.busy),
        "podsMade": asdict(effect.made),
    }


def _figure(amounts: Amounts | None) -> dict[str, str] | None:
    return {"gpusAlways": amounts.always, "gpusAtMost": amounts.most, "costPerHour": amounts.cost} if amounts else None
