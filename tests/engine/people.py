"""The people and accounts of docs/access.md in a stack of two tenants, and the API server that judges them."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import yaml
from kubernetes import client

from components.logs.settings import DEFAULT_NAMESPACE as LOG_STORE
from components.monitoring.prometheus import NAME as PROMETHEUS
from components.monitoring.settings import DEFAULT_NAMESPACE
from components.payloads.idle_termination import NAME as IDLE_TERMINATION
from components.payloads.run_history import NAME as RUN_HISTORY
from local.pulumi import PROJECT
from local.rehearsal import Rehearsal
from stacks.load import parse
from stacks.settings import StackSettings
from testbed.platform_stack import DEV, WORKERS, Rays, training
from tests.engine.access_table import Action

TEAM, OTHER_TEAM = "team-access", "team-foreign"

OPERATOR_NAMESPACE, SCHEDULER_NAMESPACE, OUTSIDE = "ray-system", "volcano-system", "default"

MONITORING_NAMESPACE, LOGS_NAMESPACE = DEFAULT_NAMESPACE, LOG_STORE

KUBERNETES_OWN = ("view", "edit", "admin")
"""Kubernetes' own roles."""

_AUTHORIZATION = "apis/authorization.k8s.io/v1"


@dataclass(frozen=True)
class Person:
    """A user of the API server."""

    user: str
    groups: tuple[str, ...] = ()
    home: str = TEAM
    """The namespace of the person's tenant."""

    def namespace(self, place: str) -> str:
        """A namespace of a kind, relative to the person; empty for no namespace."""
        foreign = OTHER_TEAM if self.home == TEAM else TEAM
        programs = {
            "operator": OPERATOR_NAMESPACE,
            "scheduler": SCHEDULER_NAMESPACE,
            "monitoring": MONITORING_NAMESPACE,
            "logs": LOGS_NAMESPACE,
        }
        return {"own": self.home, "foreign": foreign, **programs, "outside": OUTSIDE, "": ""}[place]


def account(namespace: str, name: str, home: str = TEAM) -> Person:
    """A ServiceAccount."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return Person(f"system:serviceaccount:{namespace}:{name}", groups, home)


PEOPLE = {
    "Cluster admin": Person("root", ("platform",)),
    "Ray cluster admin": Person("ada", ("leads",)),
    "Ray user": Person("bob", ("users",)),
    "Ray user of training": Person("alice"),
    "Only looks": account("monitoring", "dashboards"),
    "Operator": account(OPERATOR_NAMESPACE, "kuberay-operator"),
    "Head": account(TEAM, "training"),
    "Head and workers with Kubernetes' tokens": account(TEAM, "tokens"),
    "ray-deployer": account(OTHER_TEAM, "ray-deployer", OTHER_TEAM),
    "Workers": account(TEAM, "default"),
    "Schedule": account(TEAM, "finetune.schedule"),
    "Run history": account(TEAM, RUN_HISTORY),
    "Prometheus": account(MONITORING_NAMESPACE, PROMETHEUS),
    **{role: Person(f"of-{role}") for role in KUBERNETES_OWN},
}
"""The person or account of each column of the page."""

WRITERS = {"Head": PEOPLE["Head"], "Idle termination": account(TEAM, IDLE_TERMINATION)}
"""Accounts of the tenant's namespace that may patch RayClusters."""


def people_of_two_tenants(settings: dict[str, Any]) -> None:
    """The dev stack's tenant with people and RayClusters of each kind, and a second one with the same names."""
    tokens = {"name": "tokens", "autoscaling": False, "authOptions": {"mode": "token", "enableK8sTokenAuth": True}}
    same = {key: training(settings)[key] for key in ("rayVersion", "image")}
    never = {"schedule": "@yearly", "suspend": True}
    tenant = settings["tenants"][0]
    tenant["clusters"].append({**same, **tokens})
    training(settings)["idleTerminationOptions"] = {"timeoutSeconds": 600}
    tenant |= {
        "name": TEAM,
        "scheduler": "kubernetes",
        "admins": ["group:leads"],
        "users": [
            "group:users",
            {"subject": "user:alice", "clusters": ["training"], "submitJobs": True},
            {"subject": "serviceAccount:monitoring/dashboards", "clusters": []},
        ],
        "clusterNames": ["adhoc"],
        "storage": [{"name": "runs", "storageClass": "standard", "size": "1Gi", "retain": False}],
        "runHistory": {"storage": "runs", "readHeads": True},
        "jobTemplates": [
            {
                "name": "finetune",
                "entrypoint": "python train.py",
                "cluster": {**same, "autoscaling": False, "workerGroups": [{**WORKERS, "replicas": 1}]},
                "sizes": {
                    "large": {"workerGroups": [{"groupName": WORKERS["groupName"], "replicas": 4}]},
                    "wide": {"workerGroups": [{"groupName": WORKERS["groupName"], "cpu": 2}]},
                },
                "cron": {**never, "size": "wide"},
            },
            {"name": "sandbox", "entrypoint": "python train.py", "cluster": same, "localCode": True},
        ],
    }
    settings["tenants"].append({"name": OTHER_TEAM, "clusterNames": ["training", "adhoc"], "rayDeployer": {}})
    settings["access"] = {"clusterAdmins": ["group:platform"]}
    settings["redis"] = {"mode": "single"}
    sender = {"receivers": [{"name": "oncall", "type": "pagerduty"}], "egress": [{"internet": True}]}
    settings["monitoring"] = {"mode": "install", "alertmanager": sender}


def with_log_store(settings: dict[str, Any]) -> None:
    """Adds a log store of these two tenants."""
    settings["logs"] = {"mode": "install", "tenants": [TEAM, OTHER_TEAM]}


def settings_with_people() -> StackSettings:
    """The settings of that stack, with the log store."""
    config = yaml.safe_load(DEV.read_text())["config"]
    values = {key.removeprefix(f"{PROJECT}:"): value for key, value in config.items()}
    people_of_two_tenants(values)
    with_log_store(values)
    return parse(values)


@dataclass(frozen=True)
class Judge:
    """The API server's decisions on who may do what."""

    api: client.ApiClient

    def allows(self, person: Person, action: Action) -> bool:
        """The answer of a SubjectAccessReview."""
        groups = [*person.groups, "system:authenticated"]
        review = action.review(person.user, groups, person.namespace(action.place))
        return bool(self._answer("subjectaccessreviews", review)["allowed"])

    def answers(self, person: Person, actions: Iterable[Action]) -> dict[Action, bool]:
        """The answers for several actions."""
        asked = list(actions)
        with ThreadPoolExecutor(8) as pool:
            return dict(zip(asked, pool.map(lambda action: self.allows(person, action), asked), strict=True))

    def rules(self, person: Person, namespace: str) -> set[tuple[str, str, str, str]]:
        """All that a person may do in a namespace: verb, group, resource with subresource, name."""
        status = self._answer("selfsubjectrulesreviews", {"spec": {"namespace": namespace}}, headers(person))
        return {
            (verb, group, resource, name)
            for rule in status["resourceRules"]
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for name in rule.get("resourceNames", [""])
        }

    def _answer(self, plural: str, review: dict[str, Any], more: dict[str, str] | None = None) -> dict[str, Any]:
        # There are thousands of reviews, and the client's own method takes several times as long for each.
        url = f"{self.api.configuration.host}/{_AUTHORIZATION}/{plural}"
        answer = self.api.rest_client.pool_manager.request("POST", url, json=review, headers=more)
        return dict(answer.json()["status"])


def headers(person: Person) -> dict[str, str]:
    """The headers with which a cluster admin impersonates a person. One group is enough: no person here needs two."""
    group = person.groups[0] if person.groups else "system:authenticated"
    return {"Impersonate-User": person.user, "Impersonate-Group": group}


BOB, ALICE = Person("bob"), Person("alice")
"""Bob may run a job template. Alice may only submit jobs to RayClusters."""


def acting_as(person: Person, api: client.ApiClient) -> client.ApiClient:
    """A client with only the rights of a person."""
    acting = client.ApiClient(api.configuration)
    for header, value in headers(person).items():
        acting.set_default_header(header, value)
    return acting


def jobs_of(cluster: Rehearsal, person: Person) -> Rays:
    """The RayJobs, with only the rights of a person."""
    return Rays(cluster, "rayjobs", acting_as(person, cluster.client()))


def refusal(request: Callable[[], Any]) -> str:
    """The API server's error for a request that it refuses; empty if it accepts it."""
    try:
        request()
    except client.ApiException as error:
        return str(error.body)
    return ""
