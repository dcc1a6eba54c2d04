"""Fixtures: the pods of a Redis."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.gateway.conftest import programs
from tests.redis.pods import Pods

__all__ = ["programs"]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Pods]:
    """Three nodes in sync, with their Sentinels."""
    yield from _started(tmp_path / "redis")


@pytest.fixture(scope="module")
def redis_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    """The same, for tests that change nothing."""
    yield from _started(tmp_path_factory.mktemp("redis") / "redis")


def _started(folder: Path) -> Iterator[Pods]:
    made = Pods(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the ends of the containers' logs to the report of a failed test."""
    report = yield
    if report.failed and (folder := getattr(item, "funcargs", {}).get("tmp_path")):
        for log in sorted(folder.glob("redis/*/*.log")):
            report.sections.append((f"{log.parent.name} {log.stem}", "\n".join(log.read_text().splitlines()[-40:])))
    return report
