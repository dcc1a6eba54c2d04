"""The page of versions."""

from local import paths
from local.versions import PAGE, page, rows


def test_the_committed_page_is_generated_from_the_pins() -> None:
    assert PAGE.read_text() == page(), "run `python -m local.versions`"


def test_each_program_is_run_by_a_test() -> None:
    for row in rows():
        assert row.run
        assert (paths.ROOT / row.shown).is_file()
