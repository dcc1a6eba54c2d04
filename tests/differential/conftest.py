"""Fixtures: the operator, and an API server."""

from collections.abc import Iterator

import pytest

from tests.differential.operator import Operator, running
from tests.engine.conftest import cluster

__all__ = ["cluster"]


@pytest.fixture(scope="session")
def operator() -> Iterator[Operator]:
    """The operator's functions, built from its module."""
    with running() as started:
        yield started
