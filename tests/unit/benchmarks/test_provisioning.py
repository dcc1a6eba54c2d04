"""The tables of the provisioning benchmark."""

from benchmarks.provisioning.__main__ import FLAT, FLAT_WITH, OURS, Row, tables
from benchmarks.provisioning.cost import Cost


def cost(seconds: float, stopped: bool = False) -> Cost:
    programs = {"engine": seconds / 2, "program": seconds / 4, "Kubernetes provider": seconds / 4}
    return Cost(seconds, seconds, programs, {"engine": 1}, stopped)


def row(tenants: int, program: str, up: float, preview: float | None) -> Row:
    previews = [] if preview is None else [cost(preview)]
    return Row(tenants, program, cost(up, stopped=preview is None), previews, 28 * tenants, 1_000_000)


ROWS = [
    row(2, OURS, 20.0, 6.0),
    row(2, FLAT, 10.0, 5.0),
    row(2, FLAT_WITH, 60.0, None),
    row(20, OURS, 220.0, 12.0),
]


def test_ratios_are_those_of_one_size_and_a_stopped_peer_gives_a_bound() -> None:
    lines = list(tables(ROWS))
    assert "| 2 tenants, this checkout / flat: seconds of `up` | 2.00 |" in lines
    assert "| 2 tenants, this checkout / flat: CPU of a preview | 1.20 |" in lines
    assert "| 2 tenants, this checkout / flat, with the CRDs: seconds of `up` | < 0.33 |" in lines
    assert not any("with the CRDs: CPU of a preview" in line for line in lines)


def test_growth_is_reported_per_tenant() -> None:
    assert "| Seconds of `up` for each tenant, this checkout, 20 tenants / 2 tenants | 1.10 |" in list(tables(ROWS))


def test_the_plot_has_a_bar_for_each_row() -> None:
    [bars] = [line for line in tables(ROWS) if line.strip().startswith("bar ")]
    assert bars.count(",") == len(ROWS) - 1
