"""A RayCluster that asks for tokens of Kubernetes lets in whom the stack file names, and nobody else."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest

from testbed.pods.platform import NAMESPACE, REVIEWED, USER, Platform
from tests.pods.jobs import Jobs

pytestmark = [pytest.mark.pods, pytest.mark.timeout(300, func_only=True)]


@pytest.fixture(scope="module")
def reviewed(platform: Platform) -> Iterator[str]:
    """The address of its dashboard, and two accounts, of which the stack file names one."""
    for account in (USER, "may-not"):
        platform.kubectl("create", "serviceaccount", "-n", NAMESPACE, account)
    with platform.forwarded(f"{REVIEWED}-head-svc", 8265) as address:
        yield address


def token(platform: Platform, account: str) -> str:
    """A token of an account, as Kubernetes gives it."""
    return platform.kubectl("create", "token", "-n", NAMESPACE, account).strip()


def test_who_is_a_user_of_the_cluster_runs_a_job(platform: Platform, reviewed: str) -> None:
    assert "here" in Jobs(reviewed, token(platform, USER)).run("echo here")


def test_who_is_none_is_refused(platform: Platform, reviewed: str) -> None:
    assert Jobs(reviewed, token(platform, "may-not")).submit("true").status == HTTPStatus.FORBIDDEN
    assert Jobs(reviewed, "not-of-kubernetes").submit("true").status == HTTPStatus.FORBIDDEN
    assert Jobs(reviewed, None).submit("true").status == HTTPStatus.UNAUTHORIZED
