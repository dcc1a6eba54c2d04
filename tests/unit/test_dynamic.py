"""Resources with providers of this program's own."""

import sys
from typing import Any

import pytest
from pulumi.dynamic import CreateResult, ResourceProvider

from components.dynamic import Resource
from testbed.recorder import record

pytestmark = pytest.mark.thorough


class _Provider(ResourceProvider):
    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("one")


def test_a_stack_may_have_more_of_them_than_python_may_recurse() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        made = record(lambda: [Resource(_Provider(), f"one-{number}", {}) for number in range(500)])
    finally:
        sys.setrecursionlimit(limit)
    [names] = [names for kind, names in made.kinds().items() if kind.startswith("pulumi-python:dynamic")]
    assert len(names) == 500
