"""What the tests of the program share."""

import pytest

from tests.unit.run_history.api import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """The objects of a namespace: none."""
    return Cluster()
