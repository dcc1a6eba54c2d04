"""The status of a whole stack, for people and for programs."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from components.cluster import ForbiddenError
from core.body import Body
from core.nodes import GPU_RESOURCE
from local.paths import ROOT
from stacks.commands.status import report, text
from stacks.commands.status.clusters import Gpus
from stacks.commands.status.live import refusals, usages
from stacks.commands.status.live import workloads as live_workloads
from stacks.commands.status.platform import problems, workloads
from stacks.commands.status.report import as_object, duration, sections, summary
from stacks.commands.status.snapshot import Found, Live, Usage, Workload
from stacks.commands.status.tenants import StackStatus, queue_names, stack_status
from testbed.fake_cluster import FakeCluster
from tests.unit.planning.stacks import always, stack, tenant
from tests.unit.planning.stacks import cluster as settings_of_cluster
from tests.unit.status.live import (
    MADE,
    NO_ROOM,
    NOW,
    OPERATOR,
    READY,
    STARTING,
    condition,
    found,
    metadata,
    owned,
    pod,
    ray_cluster,
    status,
)

QUOTA = {
    "metadata": metadata("ray-platform"),
    "spec": {},
    "status": {
        "hard": {"requests.nvidia.com/gpu": "16", "pods": "9"},
        "used": {"requests.nvidia.com/gpu": "8", "pods": "2"},
    },
}

WORKS = found(rayclusters=[ray_cluster("training", *READY)], pods=[pod("head"), pod("worker", gpus=8)])


def starting(**objects: Any) -> Found:
    """The stack's RayCluster starts, beside a RayJob whose RayCluster has no room."""
    of_job = ray_cluster("nightly-x", *STARTING, metadata={"ownerReferences": owned("RayJob", "nightly")})
    job = {
        "metadata": metadata("nightly"),
        "spec": {},
        "status": {"jobDeploymentStatus": "Initializing", "rayClusterName": "nightly-x", "startTime": MADE},
    }
    return found(
        rayclusters=[ray_cluster("training", *READY), of_job],
        rayjobs=[job],
        resourcequotas=[QUOTA],
        pods=[pod("head"), pod("worker", gpus=8), pod("job-worker", "nightly-x", gpus=8, node=None)],
        **objects,
    )


def written(shown: StackStatus, monkeypatch: pytest.MonkeyPatch, width: int | None = None) -> str:
    """The report in a pipe, or on a terminal of that width."""
    output = io.StringIO()
    console = Console(file=output, width=width or 10_000, force_terminal=width is not None, color_system=None)
    monkeypatch.setattr(text, "open_console", lambda: console)
    text.show("prod", shown)
    return output.getvalue()


def test_a_stack_that_is_as_desired() -> None:
    shown = status(WORKS)
    assert (shown.ok, shown.gpus) == (True, Gpus(held=8, waiting=0, most=24))
    assert summary("prod", shown) == "prod: 1 of 1 RayClusters ready; GPUs: 8 of 24 held"


def test_kuberays_last_report_counts_only_while_the_operator_and_the_head_exist() -> None:
    known = stack(tenant("team-a"))
    namespaces = {"team-a": found(rayclusters=[ray_cluster("training", *READY)])}
    shown = stack_status(known, known.tenants, Live(NOW, namespaces, found(), ()))
    assert not shown.ok
    assert summary("prod", shown).startswith(
        "prod: the KubeRay operator does not run; 0 of 1 RayClusters ready (1 not ready)"
    )
    operator, team = sections(shown)
    assert "has no pod in namespace ray-system: nothing below is kept current" in operator.reasons[0]
    assert "it has no pod of a head" in team.reasons[0]
    hidden = Live(NOW, {"team-a": found({"pods": "no"}, rayclusters=[ray_cluster("training", *READY)])}, found(), None)
    assert stack_status(known, known.tenants, hidden).platform == ()
    assert stack_status(known, known.tenants, hidden).clusters[0].state == "ready"


def recorded(name: str, value: str) -> Body:
    return {"metric": {"__name__": f"ray_platform:{name}"}, "value": [1, value]}


def test_what_prometheus_records_of_a_tenant_is_shown_to_those_who_may_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "/api/v1/namespaces/ray-monitoring/services/prometheus-{}/proxy/api/v1/query"
    series = [recorded("gpus_held", "8"), recorded("gpu_hours_held:1d", "100"), recorded("cost:1d", "250.04")]
    cluster = FakeCluster()
    cluster.fail(ForbiddenError("the API server refuses"), proxy.format("team-b"))
    cluster.objects[proxy.format("team-a")] = {"data": {"result": series}}
    cluster.objects[proxy.format("team-c")] = {"data": {"result": []}}
    found_here = usages(cluster, "ray-monitoring", ["team-a", "team-b", "team-c"])
    assert found_here == {"team-a": Usage(gpus_held=8, hours_held=100, cost=250.04)}
    known = stack(tenant("team-a"), monitoring={"mode": "install"})
    shown = stack_status(known, known.tenants, Live(NOW, {"team-a": WORKS}, found(), OPERATOR, usages=found_here))
    assert shown.ok
    [line] = [each for each in written(shown, monkeypatch).splitlines() if "by Prometheus" in each]
    assert line.split() == ["by", "Prometheus", "8", "-", "100", "-", "-", "250"]
    usage = as_object("prod", shown)["tenants"][0]["usage"]
    assert (usage["gpusHeld"], usage["gpusUsed"], usage["hoursHeld"], usage["cost"]) == (8, None, 100, 250.04)
    assert as_object("prod", status(WORKS))["tenants"][0]["usage"] is None


WHOLE = {"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 3}}
LACKING = {"spec": {}, "status": {"replicas": 1}}

ALERTING = {
    "mode": "install",
    "alertmanager": {"receivers": [{"name": "oncall", "type": "pagerduty"}], "egress": [{"internet": True}]},
}


@pytest.mark.parametrize(
    ("name", "body", "short", "shown"),
    [
        (
            "volcano-scheduler",
            None,
            "Volcano's scheduler does not run",
            "stay Pending. `pulumi up -s STACK` creates it",
        ),
        ("volcano-admission", LACKING, "Volcano's webhook does not run", "`kubectl get pods -n volcano-system`"),
        (
            "volcano-admission",
            {"spec": {"replicas": 0}},
            "Volcano's webhook does not run",
            "is scaled to 0 replicas (Deployment volcano-system/volcano-admission): the API server may refuse",
        ),
        ("ray-redis", None, "Redis does not run", "`ray-platform refresh STACK` and then `pulumi up -s STACK`"),
        (
            "ray-redis",
            {**WHOLE, "status": {"replicas": 3, "readyReplicas": 2}},
            "Redis has 2 of 3 nodes",
            "the loss of one more may stop it. `kubectl get pods -n ray-system` shows its pods",
        ),
        ("ray-redis", WHOLE, None, None),
        (
            "prometheus",
            None,
            "Prometheus does not run",
            "metrics and alerts are missing. `ray-platform refresh STACK` and then",
        ),
        (
            "alertmanager",
            LACKING,
            "Alertmanager does not run",
            "its pod waits until the Secret of the receivers exists. `kubectl get pods -n ray-monitoring`",
        ),
    ],
)
def test_what_does_not_run_of_the_platform_comes_first(
    name: str, body: Body | None, short: str | None, shown: str | None
) -> None:
    known = stack(tenant("team-a"), redis={"gateway": None}, monitoring=ALERTING, **VOLCANO)
    expected = dict.fromkeys(workloads(known, Live(NOW, {}, operator_pods=OPERATOR)), WHOLE)
    assert [each.name for each in expected] == [
        "volcano-scheduler", "volcano-controllers", "volcano-admission", "prometheus", "alertmanager",
        "ray-redis",
    ]  # fmt: skip
    live = {each: body if each.name == name else whole for each, whole in expected.items()}
    found_here = {"team-a": found(rayclusters=[ray_cluster("training", *READY)], pods=[pod("head")])}
    status = stack_status(known, known.tenants, Live(NOW, found_here, found(), OPERATOR, live))
    if short is None or shown is None:
        assert status.platform == ()
        return
    assert not status.ok
    assert summary("prod", status).startswith(f"prod: {short}; ")
    [first, *_] = sections(status)
    assert first.title == "Platform"
    assert shown in first.reasons[0]


NO_POD = "nothing below is kept current. "


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            None,
            "the KubeRay operator is gone (Deployment ray-system/kuberay-operator): "
            f"{NO_POD}`pulumi up -s STACK` creates it again",
        ),
        (
            {"spec": {"replicas": 0}},
            "the KubeRay operator is scaled to 0 replicas (Deployment ray-system/kuberay-operator): "
            f"{NO_POD}`ray-platform refresh STACK` and then `pulumi up -s STACK` scale it back",
        ),
        (
            ForbiddenError("no"),
            "the KubeRay operator has no pod in namespace ray-system: "
            f"{NO_POD}If its Deployment is gone, `pulumi up -s STACK` creates it again; if it is scaled to 0, scale it "
            "back",
        ),
    ],
)
def test_of_an_operator_without_a_pod_its_deployment_has_the_reason(body: Any, shown: str) -> None:
    known, cluster = stack(tenant("team-a")), FakeCluster()
    if isinstance(body, ForbiddenError):
        cluster.fail(body)
    elif body:
        about = {"name": "kuberay-operator", "namespace": "ray-system"}
        cluster.add({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, **body})
    live = Live(NOW, {"team-a": found(rayclusters=[ray_cluster("training")])}, found(), ())
    live = replace(live, workloads=live_workloads(cluster, workloads(known, live)))
    platform, team = sections(stack_status(known, known.tenants, live))
    assert platform.reasons == (shown,)
    assert ("under Platform" in team.reasons[0]) is not isinstance(body, ForbiddenError)


LACKS_ONE = {"spec": {"replicas": 3}, "status": {"replicas": 2, "readyReplicas": 2}}
ONE_LESS = "the loss of one more may stop it. It does not heal by itself while a pod is refused"
DESCRIBE = "`kubectl describe statefulset -n ray-system ray-redis`"


def test_why_a_pod_of_redis_is_refused_is_shown_to_those_who_may_read_its_events() -> None:
    known = stack(tenant("team-a"), redis={"gateway": None})
    about = {"kind": "StatefulSet", "name": "ray-redis"}
    events = [
        {
            **{"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedCreate"},
            **{"metadata": {"namespace": "ray-system", "name": name}, "lastTimestamp": f"2026-01-01T10:00:0{at}Z"},
            **{"involvedObject": {**about, **other}, "message": message},
        }
        for at, (name, message, other) in enumerate(
            [
                ("older", "another reason", {}),
                ("newer", "exceeded quota: limits", {}),
                ("other", "of another", {"name": "ray-redis-b"}),
            ]
        )
    ]
    cluster = FakeCluster(*events)
    live = Live(NOW, {"team-a": WORKS}, found(), OPERATOR)
    parts = dict.fromkeys(workloads(known, live), LACKS_ONE)

    def line() -> str:
        shown = stack_status(known, known.tenants, replace(live, workloads=parts, refusals=refusals(cluster, parts)))
        return shown.platform[0].line

    assert line().endswith(f"{ONE_LESS}: FailedCreate: exceeded quota: limits. {DESCRIBE} shows more")
    cluster.fail(ForbiddenError("no"))
    assert line().endswith(f"{ONE_LESS}. {DESCRIBE} shows why one is missing")


def test_a_deployments_refused_pods_are_those_of_its_replica_set() -> None:
    scheduler = Workload("deployments", "volcano-system", "volcano-scheduler")
    refused = {
        **{"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedCreate", "message": "exceeded"},
        "metadata": {"namespace": "volcano-system", "name": "refused"},
        "involvedObject": {"kind": "ReplicaSet", "name": "volcano-scheduler-5fff575474"},
    }
    none: Body = {"spec": {"replicas": 1}}
    assert refusals(FakeCluster(refused), {scheduler: none}) == {scheduler: "FailedCreate: exceeded"}
    shown = problems(stack(tenant("team-a")), Live(NOW, {}, workloads={scheduler: none}, refusals={}))
    assert "`kubectl describe replicasets -n volcano-system`" in next(shown).line


def test_a_long_reason_keeps_its_end_where_the_innermost_error_is() -> None:
    chain = "failed to resolve reference: " * 20
    [line] = report._lines("RayCluster", "batch", [f"pod head: {chain}connect: network is unreachable"])
    assert line.startswith("RayCluster batch: pod head: failed")
    assert line.endswith(": connect: network is unreachable")
    assert len(line) == 403


def test_reasons_that_differ_only_in_the_name_of_a_pod_are_one_line() -> None:
    refused = 'FailedToCreateHeadPod: pods "lab-head-{}" is forbidden: exceeded quota: block'
    reasons = (f"RayCluster lab: {refused.format('5c5bp')}", refused.format("x7k2p"), "its Workload waits")
    assert [*report._lines("RayCluster", "lab", reasons)] == [
        f"RayCluster lab: {refused.format('5c5bp')} (2 times)",
        "RayCluster lab: its Workload waits",
    ]


def test_what_is_outside_the_stack_file_is_marked_with_its_owner() -> None:
    by_hand = ray_cluster("by-hand", *READY)
    of_service = ray_cluster("chat-1", *READY, metadata={"ownerReferences": owned("RayService", "chat")})
    shown = status(found(rayclusters=[by_hand, ray_cluster("training", *READY), of_service]))
    [clusters] = sections(shown)[0].tables
    assert [(row[0], row[-1]) for row in clusters.rows] == [
        ("training", "stack file"),
        ("by-hand", "outside"),
        ("chat-1", "RayService chat"),
    ]
    of_its_own_stack = status(found(rayclusters=[by_hand]), tenants=[{"name": "team-a", "clusterNames": ["by-hand"]}])
    assert of_its_own_stack.clusters[0].in_stack_file


def test_a_cluster_of_the_stack_file_that_does_not_exist_is_missing() -> None:
    shown = status(found())
    assert not shown.ok
    assert summary("prod", shown) == "prod: 0 of 1 RayClusters ready (1 missing); GPUs: 0 of 32 held"
    [section] = sections(shown)
    assert section.reasons == ("RayCluster training: it is in the stack file and not in the cluster: `up` creates it",)


def test_the_smallest_of_clusters_quota_and_nodes_is_the_limit() -> None:
    large = ray_cluster("training", *READY, most=100)
    assert status(found(rayclusters=[large])).gpus.most == 32
    assert status(found(rayclusters=[large], resourcequotas=[QUOTA])).gpus.most == 16
    without_limit = found(rayclusters=[ray_cluster("training", *READY, most=2**31 - 1)])
    assert status(without_limit).tenants[0].clusters[0].gpus.most == 32


def test_the_reasons_of_a_jobs_cluster_are_shown_with_the_job_until_it_has_ended() -> None:
    [section] = sections(status(starting()))
    assert {line.partition(":")[0] for line in section.reasons} == {"RayJob nightly"}
    assert (
        f"RayJob nightly: its RayCluster nightly-x is not ready: pod job-worker is not scheduled: {NO_ROOM}"
        in section.reasons
    )
    within = starting()
    [job] = within.all("rayjobs")
    ended = {**job, "status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}}
    [section] = sections(status(Found({**within.objects, "rayjobs": [ended]})))
    assert section.reasons[0] == "RayCluster nightly-x: HeadPodReady is False: containers not ready"


def test_in_a_pipe_each_row_and_each_reason_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    output = written(status(starting()), monkeypatch)
    lines = [line.rstrip() for line in output.splitlines()]
    assert (
        lines[0] == "prod: 1 of 2 RayClusters ready (1 not ready); GPUs: 8 of 16 held, 8 wait; RayJobs: 1 Initializing"
    )
    [training] = [line for line in lines if line.startswith("training")]
    assert training.split() == [
        "training", "ready", "Running", "a100-8gpu", "1/1", "8", "0", "16", "2h", "stack", "file",
    ]  # fmt: skip
    [quota] = [line for line in lines if line.startswith("ray-platform")]
    assert quota.split() == ["ray-platform", "8", "of", "16", "-", "-", "2", "of", "9"]
    assert "\x1b" not in output


def test_on_a_narrow_terminal_each_cell_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    output = written(status(starting()), monkeypatch, width=40)
    assert max(len(line.rstrip()) for line in output.splitlines()) <= 40
    lines = [line.rstrip() for line in output.splitlines()]
    at = lines.index("RayCluster training")
    assert lines[at + 1 : at + 4] == ["  State: ready", "  Head: Running", "  Workers ready: a100-8gpu 1/1"]


def test_control_characters_of_a_message_do_not_reach_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    attack = ray_cluster("training", condition("HeadPodReady", "False", "\x1b[2J\x07erased\nline"))
    output = written(status(found(rayclusters=[attack])), monkeypatch)
    assert "\x1b" not in output
    assert "[2J�erased line" in output


def test_what_cannot_be_read_is_named_and_only_quotas_are_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden = {kind: f"{kind} is forbidden: User alice" for kind in ("rayclusters", "resourcequotas")}
    shown = status(found(hidden))
    assert not shown.ok
    output = written(shown, monkeypatch)
    assert "- namespace team-a: rayclusters, resourcequotas: rayclusters is forbidden: User alice" in output
    assert "- RayCluster training: it cannot be read: rayclusters is forbidden: User alice" in output
    without_quotas = Found(WORKS.objects, {"resourcequotas": "forbidden"})
    assert status(without_quotas).ok


VOLCANO = {"scheduler": {"volcano": {}}, "queues": [{"name": "research"}]}


def test_queues_of_the_stack_are_shown_with_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = {
        "metadata": metadata("research"),
        "spec": {"deserved": {GPU_RESOURCE: "16"}},
        "status": {"state": "Open", "allocated": {GPU_RESOURCE: "8"}},
    }
    gang = {"metadata": metadata("ray-x-pg"), "spec": {"queue": "research"}, "status": {"phase": "Pending"}}
    within = Found({**WORKS.objects, "podgroups": [gang]})
    shown = status(within, found(queues=[queue]), tenants=[tenant("team-a", queue="research")], **VOLCANO)
    assert summary("prod", shown).endswith("; 1 in queues")
    [row] = [line for line in written(shown, monkeypatch).splitlines() if line.startswith("research")]
    assert row.split() == ["research", "8", "16", "/", "-", "/", "-", "-", "/", "-", "/", "-", "0", "1"]


def test_of_one_tenant_only_its_own_queues_are_shown() -> None:
    both = stack(
        tenant("a", queue="research"),
        tenant("b", settings_of_cluster("training", workers=always(1, 1))),
        **VOLCANO,
    )
    assert queue_names(both, both.tenants, "volcano") == ["research", "default"]
    assert queue_names(both, both.tenants[:1], "volcano") == ["research"]
    assert queue_names(both, both.tenants[1:], "volcano") == ["default"]


def test_the_object_for_programs_has_everything_and_is_json() -> None:
    made = json.loads(json.dumps(as_object("prod", status(starting()))))
    assert " ".join(made) == "stack at ok ready clusters platform gpus tenants queues cml remoteJobs unreadable"
    assert (made["ok"], made["ready"], made["clusters"], made["at"]) == (False, 1, 2, "2026-01-01T12:00:00+00:00")
    [team] = made["tenants"]
    assert team["gpus"] == {"held": 8, "waiting": 8, "most": 16}
    training, of_job = team["clusters"]
    assert (training["state"], training["inStackFile"], training["gpus"]["held"]) == ("ready", True, 8)
    assert (of_job["state"], of_job["owner"], of_job["groups"]) == (
        "not ready",
        "RayJob nightly",
        [{"group": "a100-8gpu", "ready": 0, "desired": 1}],
    )
    [job] = team["jobs"]
    assert (job["jobDeploymentStatus"], job["since"], job["duration"], job["ok"]) == ("Initializing", MADE, 7200, False)
    assert team["quotas"][0]["hard"] == {"gpus": 16, "cpu": None, "memory": None, "pods": 9}


def keys(value: Any) -> Iterator[str]:
    """All keys in an object."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys(each)


def test_every_key_for_programs_is_documented() -> None:
    queue = {"metadata": metadata("research"), "spec": {}, "status": {"state": "Open"}}
    application = {"status": "RUNNING", "serveDeploymentStatuses": {"model": {"status": "HEALTHY"}}}
    service = {
        "metadata": metadata("chat"),
        "spec": {},
        "status": {"activeServiceStatus": {"applicationStatuses": {"chat": application}}, "conditions": [*READY]},
    }
    everything = Found({**starting(rayservices=[service]).objects}, {"workloads": "forbidden"})
    shown = status(everything, found(queues=[queue]), tenants=[tenant("team-a", queue="research")], **VOLCANO)
    pages = [(ROOT / "docs" / name).read_text() for name in ("status.md", "stack-file.md")]
    documented = set(re.findall(r"[`\"](\w+)", "".join(pages)))
    assert {*keys(as_object("prod", shown))} - documented == set()


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "-"), (45, "45s"), (119, "119s"), (120, "2m"), (3600, "1h"), (11_000, "3h3m"), (370_000, "4d6h")],
)
def test_times_for_people(seconds: int | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_jobs_and_services_of_the_stack_file_come_first_and_missing_ones_are_reported() -> None:
    image = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    jobs = [{"name": name, "entrypoint": "python train.py", "cluster": image} for name in ("weekly", "nightly")]
    config = {"applications": [{"import_path": "chat:app"}]}
    services = [{"name": name, "serveConfigV2": config, "cluster": image} for name in ("search", "chat")]
    chat = {"metadata": metadata("chat"), "spec": {}, "status": {"conditions": [*READY]}}
    shown = status(starting(rayservices=[chat]), tenants=[tenant("team-a", jobs=jobs, services=services)])
    weekly, nightly = shown.tenants[0].jobs
    assert (weekly.deployment, weekly.ok, weekly.in_stack_file) == ("Missing", False, True)
    assert (nightly.deployment, nightly.in_stack_file) == ("Initializing", True)
    search, found = shown.tenants[0].services
    assert (search.status, search.ok, search.in_stack_file) == ("Missing", False, True)
    assert (found.name, found.in_stack_file) == ("chat", True)
