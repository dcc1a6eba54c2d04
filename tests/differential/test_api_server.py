"""Compares the program's API server with a real one, which gets the same manifests in dry runs."""

import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
import yaml
from hypothesis import given
from kubernetes import client

from components.crds.decoding import decodable_definition
from core.body import Body
from kuberay import OperatorContext
from kuberay.cron import NEVER, cron_job_fault
from local.rehearsal import Rehearsal
from local.tools import KUBERAY
from tests.conftest import Compared
from tests.differential import strategies
from tests.differential.operator import Operator
from tests.differential.test_generated import Case
from tests.differential.values import SCHEDULES
from tests.unit.kuberay.examples import EXAMPLES
from tests.unit.kuberay.manifests import SPECS

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.differential]

NAMESPACE = "default"

SECONDS = 60
"""An API server takes a few to serve a new kind."""

Refusal = Callable[[Body], str]


@pytest.fixture(scope="module")
def refusal(cluster: Rehearsal) -> Refusal:
    """A real API server's error for a manifest, with the CRDs that a stack installs and strict field validation; empty
    if none."""
    definitions = client.ApiextensionsV1Api(cluster.client())
    objects = client.CustomObjectsApi(cluster.client())
    crds: list[Any] = [
        decodable_definition(yaml.load(file.read_text(), yaml.CSafeLoader))
        for file in (KUBERAY.share("config") / "crd" / "bases").glob("*")
    ]
    plurals = {crd["spec"]["names"]["kind"]: crd["spec"]["names"]["plural"] for crd in crds}

    def ask(body: Body) -> str:
        try:
            objects.create_namespaced_custom_object(
                "ray.io", "v1", NAMESPACE, plurals[body["kind"]], body, dry_run="All", field_validation="Strict"
            )
        except client.ApiException as error:
            if error.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise
            return str(error.body)
        return ""

    for crd in crds:
        definitions.create_custom_resource_definition(crd)
    for plural in plurals.values():
        _wait_until_served(objects, plural)
    return ask


def _wait_until_served(objects: Any, plural: str) -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            objects.list_namespaced_custom_object("ray.io", "v1", NAMESPACE, plural)
        except client.ApiException:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
        else:
            return


def agree(operator: Operator, refusal: Refusal, body: Body) -> bool:
    """Fails if only one of the two refuses the manifest, or if the operator cannot decode what the API server accepts.
    Returns whether it is refused."""
    error, answer = refusal(body), operator.ask(body, OperatorContext())
    refused = bool(answer.api_server) or any(each.startswith("decoding: ") for each in answer.operator)
    assert bool(error) == refused, f"{error!r} and {answer} on {body}"
    return bool(error)


def test_examples_are_accepted_and_refused_like_by_a_real_api_server(operator: Operator, refusal: Refusal) -> None:
    bodies = [body for example in EXAMPLES for body in (example.wrong, example.right) if _can_be_sent(body)]
    assert len(bodies) > 150
    for body in bodies:
        agree(operator, refusal, body)


@pytest.mark.parametrize("cases", [strategies.with_fields(1, 4), strategies.wild()], ids=["with fields", "wild"])
def test_generated_manifests_are_accepted_and_refused_like_by_a_real_api_server(
    operator: Operator, refusal: Refusal, compared: Compared, request: pytest.FixtureRequest, cases: Any
) -> None:
    tally: Counter[str] = Counter()

    @given(cases)
    def judge(case: Case) -> None:
        body, _ = case
        if _can_be_sent(body):
            tally["refused" if agree(operator, refusal, body) else "accepted"] += 1

    judge()
    compared("a real API server", f"manifests {request.node.callspec.id}", tally)


def test_schedules_of_cron_jobs_are_accepted_and_refused_like_by_a_real_api_server(
    cluster: Rehearsal, compared: Compared
) -> None:
    tally: Counter[str] = Counter()
    jobs = client.BatchV1Api(cluster.client())
    pod = {"restartPolicy": "Never", "containers": [{"name": "backup", "image": "redis"}]}

    def refused(schedule: str) -> bool:
        spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
        body: Any = {"metadata": {"name": "backup"}, "spec": spec}
        try:
            jobs.create_namespaced_cron_job(NAMESPACE, body, dry_run="All")
        except client.ApiException as error:
            return bool(error.status == HTTPStatus.UNPROCESSABLE_ENTITY)
        return False

    # At a time zone with nothing behind it robfig/cron panics, and the API server closes the connection.
    @given(SCHEDULES.filter(lambda schedule: "TZ" not in schedule or " " in schedule))
    def judge(schedule: str) -> None:
        answer = refused(schedule)
        assert answer == (cron_job_fault(schedule) not in (None, NEVER)), schedule
        tally["refused" if answer else "accepted"] += 1

    judge()
    compared("a real API server", "schedules of CronJobs", tally)


def _can_be_sent(body: Body) -> bool:
    """Whether the API server would judge the manifest: its kind is served, and its namespace exists."""
    metadata = body.get("metadata")
    namespace = metadata.get("namespace", NAMESPACE) if isinstance(metadata, dict) else NAMESPACE
    return body["kind"] in SPECS and body["apiVersion"] == "ray.io/v1" and namespace == NAMESPACE
