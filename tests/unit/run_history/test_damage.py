"""What people or others have damaged ends neither the program nor the record of another run."""

from pathlib import Path

import pytest

from tests.unit.run_history.api import BEGIN, ID, NAMESPACE, Cluster, collector, rayjob


def test_a_job_that_cannot_be_recorded_keeps_no_other_from_it_and_its_problem_ends_with_it(tmp_path: Path) -> None:
    cluster = Cluster()
    strange, recursive = rayjob("strange"), rayjob("recursive")
    strange["spec"]["rayClusterSpec"] = "not a mapping"
    recursive["spec"]["runtimeEnvYAML"] = "&a [*a]"
    cluster.objects["rayjobs"] = [strange, recursive, rayjob()]
    program = collector(cluster, tmp_path)
    program.look(BEGIN)
    assert program.store.records.keys() == {"recursive.uid-of-recursive", ID}
    assert program.problems.keys() == {"strange.uid-of-strange"}
    cluster.objects["rayjobs"] = [rayjob()]
    program.look(BEGIN + 5)
    assert program.problems == {}


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"complete": true}', '{"name": "a", "recorded": "yesterday"}'])
def test_what_is_no_record_is_left_alone(tmp_path: Path, text: str) -> None:
    damaged = tmp_path / NAMESPACE / "old.uid" / "record.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text(text)
    program = collector(Cluster(), tmp_path)
    program.look(BEGIN)
    assert (damaged.read_text(), program.store.records, program.problems) == (text, {}, {})
