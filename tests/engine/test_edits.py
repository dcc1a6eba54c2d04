"""Random edits of all kinds while simulated autoscalers run: no busy worker is lost that `impact` did not predict.

Many more of them: `python -m benchmarks.edits` (docs/measurements/edit-sequences.md).
"""

import pytest

from local.rehearsal import Rehearsal
from testbed.edits.rounds import Rounds
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(900)]

SEED = 7


def test_five_ray_clusters_are_edited_twice_each(shared_cluster: Rehearsal, stack_on_operator: MakeStack) -> None:
    stack = stack_on_operator("edits")
    rounds = Rounds(stack, shared_cluster.client(), SEED)
    for line in rounds.run(0, sequences=5, edits=2):
        print(line)
    tally = rounds.tally
    assert tally.unpredicted == []
    assert tally.set_back == []
    # The test would be useless if nothing had happened.
    assert (tally.edits.total(), tally.wrong) == (10, 1)
    assert tally.busy.total() > 10
    assert tally.patches > 10
