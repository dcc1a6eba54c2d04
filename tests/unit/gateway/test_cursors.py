"""Cursors that clients receive in scans."""

from gateway.cursors import OPEN_SCANS, Cursors


def test_a_scan_continues_on_the_node_that_returned_its_cursor() -> None:
    cursors = Cursors()
    number = cursors.given("process-a", b"17")
    assert cursors.followed("process-a", number) == (b"17", False)


def test_a_scan_restarts_on_another_node() -> None:
    cursors = Cursors()
    number = cursors.given("process-a", b"17")
    assert cursors.followed("process-b", number) == (b"0", True)


def test_two_scans_with_the_same_cursor_are_distinguished() -> None:
    cursors = Cursors()
    first, second = cursors.given("process-a", b"17"), cursors.given("process-b", b"17")
    assert first != second
    assert cursors.followed("process-b", first) == (b"0", True)
    assert cursors.followed("process-b", second) == (b"17", False)


def test_zero_begins_and_ends_a_scan() -> None:
    cursors = Cursors()
    assert cursors.given("process-a", b"0") == b"0"
    assert cursors.followed("process-a", b"0") == (b"0", False)


def test_cursors_fit_the_integers_of_clients() -> None:
    cursors = Cursors()
    assert all(0 < int(cursors.given("process-a", b"1")) < 2**63 for _ in range(100))


def test_a_scan_with_a_forgotten_cursor_restarts() -> None:
    cursors = Cursors()
    first = cursors.given("process-a", b"17")
    for _ in range(OPEN_SCANS):
        cursors.given("process-a", b"18")
    assert cursors.followed("process-a", first) == (b"0", True)
