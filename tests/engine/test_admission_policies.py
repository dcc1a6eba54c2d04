"""Rules that the API server enforces: CEL and Python have the same verdicts, and a stack with the policies works."""

import copy
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Any

import pytest

from components.admission_policies.settings import AdmissionPoliciesSettings, admission_policies
from core.body import Body
from local.rehearsal import Rehearsal
from policies.configuration import Configuration
from policies.judge import Judge
from policies.rules import ENFORCEABLE
from policies.values import Object
from testbed.kubectl import Kubectl
from testbed.policies.bodies import body, deployment, pod, ray_cluster, ray_job, service
from testbed.policies.case import Case, case, put
from tests.engine.conftest import MakeStack
from tests.unit.policies import cases_of_kubernetes, cases_of_pods, cases_of_ray

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

GROUP = ray_cluster()["spec"]["workerGroupSpecs"][0]
DELETION = {"deletionRules": [{"policy": "DeleteCluster", "condition": {"jobStatus": "FAILED", "ttlSeconds": 60}}]}

WHOLE = [
    case("ray-group-names", "spec workerGroupSpecs", [GROUP], [GROUP, GROUP], ray_cluster()),
    case("ray-job-deletion", "spec shutdownAfterJobFinishes", False, True, ray_job(deletionStrategy=DELETION)),
]
"""Cases of the unit tests, with the fields that the API server requires."""

CASES = [
    each
    for each in (*cases_of_ray.CASES, *cases_of_pods.CASES, *cases_of_kubernetes.CASES, *WHOLE)
    if each.rule in ENFORCEABLE and each.protected is None
]

SETTLES = 180.0
"""Seconds within which the API server enforces a policy; it takes one or two."""

SPACE = "admission"

_CONTENT = {"POST": "application/json", "PATCH": "application/strategic-merge-patch+json"}


@dataclass(frozen=True)
class Verdicts:
    """The rules that an object violates, by CEL and by Python."""

    cel: frozenset[str]
    python: frozenset[str]


class Judged:
    """Policies in namespaces, one for each set of options of a case. They warn, so that one answer has all verdicts."""

    def __init__(self, cluster: Rehearsal) -> None:
        self._api = cluster.client()
        self._does = Kubectl(cluster).does
        self._options: list[Body] = [{}, *({each.rule: each.options} for each in CASES if each.options)]

    def namespace(self, options: Body) -> str:
        return f"{SPACE}-{self._options.index(options)}"

    def bodies(self) -> list[Body]:
        """The policies as components render them, with names that no stack uses."""
        made = []
        for options in self._options:
            others = {id_: "Disabled" for id_ in ENFORCEABLE if options and id_ not in options}
            configured = {"action": "Warn", "options": options, "rules": others}
            settings = AdmissionPoliciesSettings.model_validate(configured)
            name = self.namespace(options)
            rendered = json.dumps(admission_policies(settings, (name,), (), date(2026, 11, 22)))
            made += json.loads(rendered.replace('"ray-platform-', f'"{name}-'))
        return made

    def namespaces(self) -> list[Body]:
        names = [self.namespace(options) for options in self._options]
        return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]

    def start(self) -> None:
        """Creates all policies, and waits until the API server enforces them."""
        made = [*self.namespaces(), *self.bodies()]
        self._does("apply", "--server-side", "--validate=false", "-f", "-", bodies=made)
        deadline = time.monotonic() + SETTLES
        # The last rule of each namespace is created last.
        last_rules = [(options, next(reversed(options), "net-ingress-tls")) for options in self._options]
        for options, rule in last_rules:
            last = next(each for each in CASES if each.rule == rule and each.options == options.get(rule, {}))
            while not any(rule in each.cel for each in verdicts_of(self, last, last.bad)):
                assert time.monotonic() < deadline, f"{rule} is not enforced"
                time.sleep(0.2)

    def stop(self) -> None:
        """Deletes everything."""
        made = [*self.bodies(), *self.namespaces()]
        self._does("delete", "--ignore-not-found", "-f", "-", bodies=made)

    def of(self, body: Body, options: Body, method: str = "POST", path: str = "") -> Verdicts | None:
        """The verdicts of both on an object as the API server would store it, with its defaults, as a dry run.

        None if the API server itself refuses it as invalid.
        """
        namespace = self.namespace(options)
        answer = self._send(body, namespace, method, path)
        kept = json.loads(answer.read())
        if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return None
        assert answer.status in (HTTPStatus.OK, HTTPStatus.CREATED), kept
        warned = re.findall(r"ValidatingAdmissionPolicy '([^']+)'", ", ".join(answer.headers.getlist("Warning")))
        judge = Judge(Configuration.model_validate({"options": options}), "prod")
        found = {each.rule.id for each in judge.report([Object(kept)]).findings}
        asked = ENFORCEABLE.keys() & (options or ENFORCEABLE)
        return Verdicts(frozenset(name.removeprefix(f"{namespace}-") for name in warned), frozenset(found & asked))

    def verdicts(self, body: Body, method: str = "POST", path: str = "") -> Verdicts:
        """The same for an object that the API server accepts, without options."""
        found = self.of(body, {}, method, path)
        assert found is not None
        return found

    def _send(self, body: Body, namespace: str, method: str, path: str) -> Any:
        api_version, kind = body["apiVersion"], body["kind"]
        root = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        plural = "ingresses" if kind == "Ingress" else f"{kind.lower()}s"
        return self._api.call_api(
            method,
            f"{self._api.configuration.host}/{root}/namespaces/{namespace}/{plural}{path}?dryRun=All",
            header_params={"Content-Type": _CONTENT[method], "Accept": "application/json"},
            body={**body, "metadata": {**body["metadata"], "namespace": namespace}},
        )


REQUIRED: dict[str, Body] = {"Service": {"ports": [{"port": 80}]}, "CronJob": {"schedule": "@daily"}}
"""Fields that the API server requires and no rule reads."""


def changed(case: Case, value: Any) -> Body:
    """The object of a case with a value at its place."""
    made = copy.deepcopy(case.objects[case.of])
    made["spec"] = {**REQUIRED.get(made["kind"], {}), **made["spec"]}
    put(made, case.at, value)
    return made


def wrapped(body: Body) -> Iterator[Body]:
    """An object; for a pod also objects with such a pod template, because the API server itself validates only pods."""
    yield body
    if body["kind"] == "Pod":
        cluster, job, made = ray_cluster(), ray_job(), deployment()
        cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"] = body["spec"]
        job["spec"]["submitterPodTemplate"]["spec"] = {**body["spec"], "restartPolicy": "Never"}
        made["spec"]["selector"] = {"matchLabels": made["spec"]["template"]["metadata"]["labels"]}
        made["spec"]["template"]["spec"] = body["spec"]
        yield from (cluster, job, made)


@pytest.fixture(scope="module")
def judged(shared_cluster: Rehearsal, operator: None) -> Iterator[Judged]:
    """The policies on the API server. The operator's installation includes KubeRay's kinds."""
    made = Judged(shared_cluster)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def verdicts_of(judged: Judged, case: Case, value: Any) -> list[Verdicts]:
    options = {case.rule: case.options} if case.options else {}
    found = (judged.of(each, options) for each in wrapped(changed(case, value)))
    return [each for each in found if each is not None]


CaseVerdicts = list[tuple[list[Verdicts], list[Verdicts]]]


@pytest.fixture(scope="module")
def case_verdicts(judged: Judged) -> CaseVerdicts:
    """For each case, in their order, the verdicts on the objects that meet the rule and on those that violate it."""
    return [(verdicts_of(judged, each, each.good), verdicts_of(judged, each, each.bad)) for each in CASES]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{each.rule}-{each.at}" for each in CASES])
def test_cel_and_python_agree(number: int, case_verdicts: CaseVerdicts) -> None:
    met, violated = case_verdicts[number]
    assert [each.cel for each in (*met, *violated)] == [each.python for each in (*met, *violated)]
    assert all(CASES[number].rule not in each.cel for each in met)


def test_each_rule_has_objects_that_meet_and_violate_it(case_verdicts: CaseVerdicts) -> None:
    """The API server accepts these objects otherwise."""
    met = {each.rule for each, (of_good, _) in zip(CASES, case_verdicts, strict=True) if of_good}
    violated = {
        each.rule
        for each, (_, of_bad) in zip(CASES, case_verdicts, strict=True)
        if any(each.rule in verdicts.cel for verdicts in of_bad)
    }
    assert set(ENFORCEABLE) - met == set()
    assert set(ENFORCEABLE) - violated == set()


def test_an_object_with_an_earlier_violation_may_be_changed_but_gets_no_new_one(judged: Judged, core: Any) -> None:
    namespace = judged.namespace({})
    for name, kind in (("open", "NodePort"), ("closed", "ClusterIP")):
        made = service(type=kind, ports=[{"port": 80}])
        core.create_namespaced_service(namespace, {**made, "metadata": {"name": name}})
    labelled = body("v1", "Service", metadata={"name": "open", "labels": {"a": "b"}})
    before = judged.verdicts(labelled, "PATCH", "/open")
    assert before == Verdicts(frozenset(), frozenset({"net-no-public-service"}))
    opened = body("v1", "Service", metadata={"name": "closed"}, spec={"type": "NodePort"})
    begins = judged.verdicts(opened, "PATCH", "/closed")
    assert begins.cel == begins.python == {"net-no-public-service"}


def test_a_container_for_debugging_is_judged(judged: Judged, core: Any) -> None:
    """As `kubectl debug` adds it to a running pod."""
    namespace = judged.namespace({})
    runs = pod()
    runs["metadata"] = {"name": "runs"}
    core.create_namespaced_pod(namespace, runs)
    debugging = {"name": "debug", "image": "busybox:1.37", "securityContext": {"privileged": True}}
    added = body("v1", "Pod", metadata={"name": "runs"}, spec={"ephemeralContainers": [debugging]})
    violated = judged.verdicts(added, "PATCH", "/runs/ephemeralcontainers").cel
    assert {"pod-no-privileged", "pod-drop-all"} <= violated
    assert "pod-requests" not in violated


def test_a_large_raycluster_is_judged_within_the_api_servers_budget(judged: Judged) -> None:
    """The API server refuses an object whose rules exceed the budget (celconfig.PerCallLimit)."""
    large = ray_cluster()
    [group] = large["spec"]["workerGroupSpecs"]
    variables = [{"name": f"VARIABLE_{number}", "value": "a value of some length" * 4} for number in range(60)]
    group["template"]["spec"]["containers"][0]["env"] += variables
    large["spec"]["workerGroupSpecs"] = [{**group, "groupName": f"group-{number}"} for number in range(40)]
    assert judged.verdicts(large).cel == frozenset()


def until_refused(kubectl: Kubectl, body: Body, rule: str) -> None:
    """Waits until a rule of the stack refuses an object, with what is wrong and what to change."""
    each = ENFORCEABLE[rule]
    says = (f"ValidatingAdmissionPolicy 'ray-platform-{rule}'", f"{rule}: {each.what} {each.fix}")
    deadline = time.monotonic() + SETTLES
    while not all(text in (refused := kubectl.creates("team-a", body)) for text in says):
        assert time.monotonic() < deadline, f"{rule} does not refuse it: {refused or 'it is accepted'}"
        time.sleep(0.2)


def test_a_stack_with_the_policies_works_and_violations_of_others_are_refused(
    stack_on_operator: MakeStack, shared_cluster: Rehearsal, core: Any
) -> None:
    """The operator creates the stack's own pods, which are judged like all others."""
    made = stack_on_operator("admission")

    def enforced(settings: Body) -> None:
        settings["admissionPolicies"] = {"rules": {"ray-head-zero-cpu": "Warn"}}

    made.edit(enforced)
    made.up()
    [head] = core.list_namespaced_pod("team-a", label_selector="ray.io/node-type=head").items
    assert head.metadata.labels["ray.io/cluster"] == "training"
    kubectl = Kubectl(shared_cluster)
    latest, open_ = pod(), ray_cluster()
    latest["spec"]["containers"][0]["image"] = "rayproject/ray:latest"
    open_["spec"]["headGroupSpec"]["serviceType"] = "LoadBalancer"
    for each, rule in ((latest, "img-no-latest"), (open_, "ray-no-public-dashboard")):
        until_refused(kubectl, each, rule)
    assert kubectl.creates("team-a", ray_cluster()) == ""
    made.destroy()
