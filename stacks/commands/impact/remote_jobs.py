"""What an edit does to the jobs that `up` itself submits. Pure functions."""

from collections.abc import Iterator

from components.ray_job.manifests import run
from components.remote_job.settings import RemoteJobSettings
from kuberay.edits import Verdict
from stacks.commands.impact.effects import Effect, ObjectImpact, impact
from stacks.settings import StackSettings

_SOURCE = "components/dynamic/remote_job.py"


def of_remote_jobs(before: StackSettings | None, after: StackSettings) -> Iterator[ObjectImpact]:
    """The jobs that are submitted or stopped."""
    was = {each.name: each for each in before.jobs} if before else {}
    will = {each.name: each for each in after.jobs}
    moved = _addresses(before).items() ^ _addresses(after).items() if before else set()
    for name in sorted({*was, *will}):
        yield impact("RemoteJob", name, _effects(was.get(name), will.get(name), {cluster for cluster, _ in moved}))


def _addresses(stack: StackSettings) -> dict[str, str]:
    return {each.name: each.dashboard_address for each in stack.external_clusters}


def _effects(was: RemoteJobSettings | None, will: RemoteJobSettings | None, moved: set[str]) -> Iterator[Effect]:
    """`moved`: external clusters with another address."""
    if was is None:
        if will:
            yield Effect(Verdict.CREATES, f"`up` submits it to Ray cluster {will.cluster}")
    elif will is None:
        text = f"if it still runs on Ray cluster {was.cluster}, it is stopped; Ray keeps its log"
        yield Effect(Verdict.DELETES, text, "the job leaves the stack file", "remove it once it has ended", _SOURCE)
    elif run(was) != run(will):
        text = f"if it still runs on Ray cluster {was.cluster}, it is stopped; `up` submits it to {will.cluster} again"
        yield Effect(Verdict.REPLACES, text, "its settings are another run", "edit it once it has ended", _SOURCE)
    elif will.external_cluster in moved:
        text = f"`up` looks for it at the new address of {will.cluster}; one that runs at the old address is left there"
        fix = "edit it once the job has ended, or change its runId later to submit it to the new cluster"
        yield Effect(Verdict.IN_PLACE, text, "dashboardAddress changes", fix, _SOURCE)
