"""What Pulumi's engine reports while it runs: changes, errors and steps."""

from collections.abc import Mapping
from typing import Any

from pulumi.automation import EngineEvent, OpType, StepEventMetadata

from stacks.commands.environment.state_move import ROOT_TYPE, is_default_provider

Step = Mapping[str, Any]
"""What the engine does to one resource, as in the output of `pulumi preview --json`, but without states: they have
values."""


class EventLog:
    """Engine events that a summary needs, collected while the engine runs."""

    def __init__(self) -> None:
        self.changes: Mapping[str, int] = {}
        self.errors: list[str] = []
        self.steps: list[Step] = []

    def __call__(self, event: EngineEvent) -> None:
        if event.summary_event:
            self.changes = {
                str(getattr(key, "value", key)): n for key, n in event.summary_event.resource_changes.items()
            }
        elif event.resource_pre_event:
            found = event.resource_pre_event.metadata
            if _is_shown(found):
                self.steps.append(_step(found))
        elif (diagnostic := event.diagnostic_event) and diagnostic.severity == "error":
            self._add(diagnostic.message)
        elif (broken := event.policy_event) and broken.enforcement_level == "mandatory":
            self._add(f"{broken.policy_name}: {broken.message}")

    def _add(self, message: str) -> None:
        text = " ".join(message.split())
        # The engine's last message after a failure; the errors come before it.
        if text not in (*self.errors, "update failed", "preview failed"):
            self.errors.append(text)


def _is_shown(found: StepEventMetadata) -> bool:
    """Whether Pulumi shows a step: of unchanged resources that of the stack alone, which names it, and none of its own
    providers (pulumi, pkg/backend/display/json.go: ShowPreviewDigest, pkg/engine/update.go: isInternalStep)."""
    if found.op is OpType.SAME:
        return found.type == ROOT_TYPE
    return found.op is not OpType.REMOVE_PENDING_REPLACE and not is_default_provider(found.urn)


def _step(found: StepEventMetadata) -> Step:
    differences = {path: {"kind": each.diff_kind.value} for path, each in (found.detailed_diff or {}).items()}
    return {
        "op": found.op.value,
        "urn": found.urn,
        **({"diffReasons": found.diffs} if found.diffs else {}),
        **({"detailedDiff": differences} if differences else {}),
    }
