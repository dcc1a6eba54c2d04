"""A RayCluster that requires tokens of Kubernetes accepts only the users in the stack file."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest

from testbed.pods.platform import NAMESPACE, REVIEWED, USER, Platform
from tests.pods.jobs import Jobs

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]


@pytest.fixture(scope="module")
def reviewed(platform: Platform) -> Iterator[str]:
    """The address of its dashboard. There are two accounts, one of which is in the stack file."""
    for account in (USER, "may-not"):
        platform.kubectl("create", "serviceaccount", "-n", NAMESPACE, account)
    with platform.forwarded(f"{REVIEWED}-head-svc", 8265) as address:
        yield address


def token(platform: Platform, account: str) -> str:
    """A token of an account, issued by Kubernetes."""
    return platform.kubectl("create", "token", "-n", NAMESPACE, account).strip()


def test_a_user_of_the_cluster_runs_a_job(platform: Platform, reviewed: str) -> None:
    assert "here" in Jobs(reviewed, token(platform, USER)).run("echo here")


def test_another_account_is_refused(platform: Platform, reviewed: str) -> None:
    assert Jobs(reviewed, token(platform, "may-not")).submit("true").status == HTTPStatus.FORBIDDEN
    assert Jobs(reviewed, "not-of-kubernetes").submit("true").status == HTTPStatus.FORBIDDEN
    assert Jobs(reviewed, None).submit("true").status == HTTPStatus.UNAUTHORIZED
