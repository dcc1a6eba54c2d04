"""The model of the replay decides as Ray's own scheduler does, which gets the same input."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.variants.clusters import CLUSTERS, ray_cluster
from benchmarks.variants.ray_scheduler import RaysAutoscaler
from stacks.commands.plan.history.jobs import Job
from stacks.commands.plan.history.replay import START, ModelledAutoscaler, Running, play

pytestmark = pytest.mark.thorough

TILING = RaysAutoscaler(ray_cluster(CLUSTERS["tiling"], 8))


def launched(*tasks: int, running: tuple[Running, ...] = (), autoscaler: RaysAutoscaler = TILING) -> dict[int, int]:
    """Number of workers that Ray launches, by GPUs."""
    decision = autoscaler.decide(tasks, running)
    return {autoscaler.gpus[group]: number for group, number in decision.launch.items()}


def test_ray_launches_the_smallest_worker_for_one_task_and_a_larger_one_for_many_after_those_that_exist() -> None:
    assert launched(1) == {1: 1}
    assert launched(3) == {4: 1}
    assert launched(*[1] * 7) == {8: 1}
    assert launched(2, running=(Running("a", "a100-4gpu", free_gpus=3),)) == {}
    assert launched(2, running=(Running("a", "a100-4gpu", free_gpus=4, starting=True),)) == {}
    assert launched(4, running=(Running("a", "a100-4gpu", free_gpus=3),)) == {4: 1}


def test_full_workers_count_towards_the_maximum_of_their_group() -> None:
    ado = RaysAutoscaler(ray_cluster(CLUSTERS["ado"], 8))
    full = tuple(Running(f"w{number}", "a100-1gpu", free_gpus=0) for number in range(2))
    assert launched(1, autoscaler=ado) == {1: 1}
    assert launched(1, running=full, autoscaler=ado) == {2: 1}


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[int], list[Running]]:
    """Waiting tasks, and workers within the limits of their groups."""
    tasks = draw(st.lists(st.sampled_from([1, 2, 4, 8]), max_size=8))
    running = []
    for gpus in (1, 2, 4, 8):
        for number in range(draw(st.integers(0, 2))):
            free, starting = draw(st.integers(0, gpus)), draw(st.booleans())
            running.append(Running(f"w{gpus}{number}", f"a100-{gpus}gpu", gpus if starting else free, 0.0, starting))
    return tasks, running


@settings(max_examples=60)
@given(situations())
def test_ray_launches_the_same_workers_if_full_ones_are_omitted(case: tuple[list[int], list[Running]]) -> None:
    tasks, running = case
    ado = RaysAutoscaler(ray_cluster(CLUSTERS["ado"], 2))
    partial = ado.decide(tasks, running)
    whole = ado.decide(tasks, running, leave_out_full=False)
    assert (partial.launch, partial.unmet) == (whole.launch, whole.unmet)


@settings(max_examples=100)
@given(situations(), st.sampled_from(["ado", "tiling", "1+8"]))
def test_the_model_launches_what_ray_launches(case: tuple[list[int], list[Running]], name: str) -> None:
    tasks, running = case
    nodes = 2
    rays = RaysAutoscaler(ray_cluster(CLUSTERS[name], nodes))
    existing = [each for each in running if each.group in rays.gpus]
    model = ModelledAutoscaler(rays.sizes)
    expected, ours = rays.decide(tasks, existing), model.decide(tasks, existing)
    assert (ours.launch, ours.unmet) == (expected.launch, expected.unmet)


def test_an_idle_worker_ends_after_its_timeout_as_in_the_replay() -> None:
    for name, timeout in (("tiling", 60), ("tiling, idle 10s", 10)):
        autoscaler = RaysAutoscaler(ray_cluster(CLUSTERS[name], 8))
        assert autoscaler.idle["a100-2gpu"] == timeout
        for idle, terminated in ((timeout - 1, ()), (timeout + 1, ("a",))):
            assert autoscaler.decide((), [Running("a", "a100-2gpu", 2, idle)]).terminate == terminated


def test_a_job_waits_for_its_worker_which_ends_after_its_idle_timeout_unless_it_is_used_again() -> None:
    played = play(TILING, [Job(3, 1000.0, 5.0)])
    [worker] = played.workers
    assert (worker.gpus, worker.launched, worker.gone) == (4, 5.0, 5.0 + START + 1000 + 60)
    assert (played.waits, played.used, played.held) == ([START], 3000.0, 4 * (START + 1000 + 60))
    played = play(TILING, [Job(1, 100.0, 0.0), Job(1, 100.0, START + 100 + 59)])
    assert (len(played.workers), played.waits) == (1, [START, 0.0])


def test_a_job_that_fits_no_worker_is_counted_separately() -> None:
    played = play(RaysAutoscaler(ray_cluster(CLUSTERS["all-1"], 8)), [Job(1, 100.0, 0.0), Job(8, 100.0, 0.0)])
    assert (played.infeasible, played.infeasible_used, played.used, len(played.waits)) == (1, 800.0, 100.0, 1)


def test_jobs_wait_if_all_allowed_workers_are_busy() -> None:
    one_node = RaysAutoscaler(ray_cluster(CLUSTERS["all-8"], 1))
    played = play(one_node, [Job(8, 100.0, 0.0), Job(8, 100.0, 1.0), Job(8, 100.0, 2.0)])
    assert (len(played.workers), played.waits) == (1, [60.0, 159.0, 258.0])


def test_pods_that_fit_no_node_wait_and_use_nothing() -> None:
    played = play(TILING, [Job(8, 100.0, 0.0), Job(4, 50.0, 1.0), Job(4, 50.0, 2.0)], most_gpus=12)
    # The third pod has room after the largest worker has started, worked and been idle for its timeout. By then the
    # third job has already run on the second worker.
    assert [(each.gpus, each.launched) for each in played.workers] == [(8, 0.0), (4, 1.0), (4, START + 100.0 + 60.0)]
    assert played.waits == [60.0, 60.0, 109.0]
