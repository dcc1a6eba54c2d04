"""The operator that all tests here ask."""

from collections.abc import Iterator

import pytest

from tests.differential.operator import Operator, running


@pytest.fixture(scope="session")
def operator() -> Iterator[Operator]:
    """The operator's functions, built from its module."""
    with running() as started:
        yield started
