"""A RayCluster that asks for tokens of Kubernetes lets in whom the stack file names, and nobody else."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from tests.engine.platform_stack import training
from tests.pods.jobs import Jobs
from tests.pods.platform import NAMESPACE, Platform

pytestmark = [pytest.mark.pods, pytest.mark.timeout(300, func_only=True)]

REVIEWED = "reviewed"


@pytest.fixture(scope="module")
def reviewed(platform: Platform) -> Iterator[str]:
    """The address of its dashboard. It has a head alone, and one user: the account `may`."""

    def add(settings: dict[str, Any]) -> None:
        tenant = settings["tenants"][0]
        asks = {"authOptions": {"enableK8sTokenAuth": True}, "autoscaling": False}
        tenant["clusters"].append({**training(settings), "name": REVIEWED, **asks})
        for key in ("workers", "idleTimeout"):
            del tenant["clusters"][-1][key]
        tenant["users"] = [{"subject": f"serviceAccount:{NAMESPACE}/may", "clusters": [REVIEWED]}]

    def remove(settings: dict[str, Any]) -> None:
        tenant = settings["tenants"][0]
        tenant["clusters"].pop()
        del tenant["users"]

    for account in ("may", "may-not"):
        platform.kubectl("create", "serviceaccount", "-n", NAMESPACE, account)
    platform.stack.edit(add)
    platform.stack.up()
    with platform.forwarded(f"{REVIEWED}-head-svc", 8265) as address:
        yield address
    platform.stack.edit(remove)
    platform.stack.up()


def token(platform: Platform, account: str) -> str:
    """A token of an account, as Kubernetes gives it."""
    return platform.kubectl("create", "token", "-n", NAMESPACE, account).strip()


def test_who_is_a_user_of_the_cluster_runs_a_job(platform: Platform, reviewed: str) -> None:
    assert "here" in Jobs(reviewed, token(platform, "may")).run("echo here")


def test_who_is_none_is_refused(platform: Platform, reviewed: str) -> None:
    assert Jobs(reviewed, token(platform, "may-not")).submit("true").status == HTTPStatus.FORBIDDEN
    assert Jobs(reviewed, "not-of-kubernetes").submit("true").status == HTTPStatus.FORBIDDEN
    assert Jobs(reviewed, None).submit("true").status == HTTPStatus.UNAUTHORIZED
