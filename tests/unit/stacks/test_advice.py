"""What `check` advises for valid stack files, which it does not refuse."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from benchmarks.growth.stack_files import stack_file as many_tenants
from core.stack_file import stack_file
from stacks.checks.advice import LONGEST_VARIABLE, advice, too_long
from stacks.load import settings_of
from stacks.settings import StackSettings
from testbed.commands import stacks

pytestmark = pytest.mark.thorough

TODAY = date(2026, 11, 24)
GROUP: dict[str, Any] = {"groupName": "g", "cpu": 4, "memory": "16Gi", "maxReplicas": 2}
CLUSTERS: list[dict[str, Any]] = [
    {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "workerGroups": [GROUP]}
]
SLICE = {"spec": {"nodeSelector": {"cloud.google.com/gke-tpu-topology": "2x4"}}}
NEURON = "aws.amazon.com/neuron"

CLAIM_AT_TMP = {
    "spec": {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "containers": [{"name": "ray-worker", "volumeMounts": [{"name": "v", "mountPath": "/tmp/ray"}]}],  # noqa: S108
    }
}


HOOK = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}
STOPS = {"spec": {"containers": [{"name": "ray-worker", "lifecycle": HOOK}]}}


def lines_of(name: str = "prod", **values: Any) -> list[str]:
    """The advice for a stack with these settings."""
    return [str(each) for each in advice(StackSettings.model_validate(values), name, TODAY)]


def advised(rule: str, owner: str, expires: str = "2027-03-31") -> list[str]:
    exception = {"rule": rule, "object": owner, "reason": "it is old", "owner": "team-a", "expires": expires}
    tenant = {"name": "team-a", "clusters": CLUSTERS, "clusterNames": ["own"]}
    return lines_of(tenants=[tenant], policies={"exceptions": [exception]})


OWN_STACK = {"platform": {"stack": "acme/ray-platform/prod"}}
"""Of a stack of a tenant's own."""

RAY_DEPLOYER = [{"name": "team-a", "rayDeployer": {}, "clusters": CLUSTERS}]


def training(**keys: Any) -> dict[str, Any]:
    return {"tenants": [{"name": "team-a", "clusters": [{**CLUSTERS[0], **keys}]}]}


def tenant(**keys: Any) -> dict[str, Any]:
    return {"name": "team-a", "clusters": CLUSTERS, **keys}


OPEN = {"serveFrom": ["portal"], "egress": [{"internet": True}]}
"""Networks of tenants whose services are asked, and download models."""


def served(source: str | None = None, **keys: Any) -> dict[str, Any]:
    """A tenant with a language model."""
    llm = {"model": "org/tiny", "pool": "a", **({"source": source} if source else {})}
    pool = {"pool": "a", "count": 1, "cpu": 8, "memory": "64Gi", "gpus": 1}
    cluster = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    return {"nodes": [pool], "tenants": [tenant(services=[{"name": "chat", "llm": llm, "cluster": cluster}], **keys)]}


JOB = {"name": "count", "entrypoint": "python count.py", "clusterSelector": {"ray.io/cluster": "training"}}
ON_CML = {
    "name": "training",
    "project": "abcd-efgh-1234",
    "rayVersion": "2.60.0",
    "resources": {"cpu": 1, "memory": 4},
    "suspend": True,
}
EXPORT: dict[str, Any] = {"name": "models", "size": "1Gi", "nfs": {"server": "nfs.example.com", "path": "/models"}}
INSIDE = {**EXPORT, "nfs": {**EXPORT["nfs"], "path": "/models/tiny"}}
SHARED = {"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "nfs.example.com", "share": "/models"}}
SHARE, ANOTHER = (
    {"name": "models", "size": "1Gi", "csi": {**SHARED, "volumeHandle": "a"}},
    {**SHARED, "volumeHandle": "b"},
)
MOUNTING = {**CLUSTERS[0], "storage": [{"name": "models", "mountPath": "/mnt/models"}]}
LOGS: dict[str, Any] = {"endpoint": "https://logs.example.com:8443"}


@pytest.mark.parametrize(
    ("values", "rule", "place"),
    [
        (training(authOptions={"mode": "disabled"}), "no-token", "clusters[0].authOptions.mode"),
        (training(labels={"kai.scheduler/queue": "a"}), "scheduler-label", "clusters[0].labels.kai.scheduler/queue"),
        (training(labels={"kueue.x-k8s.io/queue-name": "a"}), "scheduler-label", "kueue.x-k8s.io/queue-name"),
        (
            training(head={"podTemplate": {"spec": {"schedulerName": "volcano"}}}),
            "scheduler-label",
            "clusters[0].head.podTemplate.spec.schedulerName",
        ),
        (
            training(workerGroups=[{**GROUP, "podTemplate": {"metadata": {"labels": {"kai.scheduler/queue": "a"}}}}]),
            "scheduler-label",
            "workerGroups[0].podTemplate.metadata.labels.kai.scheduler/queue",
        ),
        (
            training(workerGroups=[{**GROUP, "gpus": 4, "gpuResource": "google.com/tpu"}]),
            "tpu-hosts",
            "workerGroups[0]",
        ),
        (
            training(workerGroups=[{**GROUP, "gpus": 4, "gpuResource": "google.com/tpu", "podTemplate": SLICE}]),
            "tpu-hosts",
            "has 2 hosts, and numOfHosts is 1",
        ),
        (
            training(workerGroups=[{**GROUP, "gpus": 1, "gpuResource": NEURON}]),
            "uncounted-gpus",
            "[0]",
        ),
        (
            {"nodes": [{"pool": "inf2", "count": 2, "cpu": 16, "memory": "64Gi", "gpus": 2, "gpuResource": NEURON}]}
            | training(workers={"pool": "inf2", "variants": [{"gpus": 2}]}),
            "uncounted-gpus",
            "set resources with neuron_cores",
        ),
        (training(workerGroups=[{**GROUP, "memory": "256Mi"}]), "no-room-for-tasks", "workerGroups[0].memory"),
        (
            training(workerGroups=[{**GROUP, "podTemplate": CLAIM_AT_TMP}]),
            "shared-session",
            "volumeMounts[0].mountPath",
        ),
        (training(workerGroups=[{**GROUP, "podTemplate": STOPS}]), "undone-drain", "containers[0].lifecycle.preStop"),
        (training(overrides={"suspend": True}), "stays-suspended", "overrides.suspend"),
        (training(overrides={"managedBy": "kueue.x-k8s.io/multikueue"}), "managed-elsewhere", "overrides.managedBy"),
        (
            {
                "tenants": [
                    tenant(
                        podSecurity="privileged",
                        clusters=[
                            {**CLUSTERS[0], "workerGroups": [{**GROUP, "podTemplate": {"spec": {"hostNetwork": True}}}]}
                        ],
                    )
                ]
            },
            "host-network",
            "podTemplate.spec.hostNetwork",
        ),
        (
            {
                "nodes": [{"pool": "a", "count": 4, "cpu": 8, "memory": "64Gi", "gpus": 8}],
                "tenants": [tenant(quota={"gpus": 64})],
            },
            "quota-beyond-nodes",
            "tenants[0].quota.gpus",
        ),
        (
            {
                "tenants": [
                    tenant(
                        clusters=[{**CLUSTERS[0], "rayVersion": "2.53.0", "image": "rayproject/ray:2.53.0"}],
                        jobs=[{**JOB, "entrypoint": "bash -c 'echo $HOME'"}],
                    )
                ]
            },
            "fault-of-ray",
            "tenants[0].jobs[0].entrypoint",
        ),
        (training(readyTimeout="48h"), "long-wait", "clusters[0].readyTimeout"),
        (
            {**OWN_STACK, **training(head={"podTemplate": {"spec": {"nodeName": "a100-0"}}})},
            "refused-by-platform",
            "clusters[0].head",
        ),
        (
            {**OWN_STACK, **training(head={"podTemplate": {"metadata": {"annotations": {"example.com/a": "1"}}}})},
            "refused-by-platform",
            "clusters[0].head",
        ),
        ({**OWN_STACK, **training(head={"serviceType": "NodePort"})}, "refused-by-platform", "head.serviceType"),
        (
            {"tenants": [tenant(jobTemplates=[{**JOB, "cron": {"schedule": "@daily", "concurrencyPolicy": "Allow"}}])]},
            "endless-run",
            "[0].cron",
        ),
        (
            {"tenants": [tenant(jobTemplates=[{**JOB, "localCode": True, "options": ["--epochs"]}])]},
            "local-code",
            "[0].options",
        ),
        ({"tenants": [tenant(jobs=[{**JOB, "waitFor": "succeeded", "waitTimeout": "8760h"}])]}, "long-wait", "jobs[0]"),
        ({"tenants": [tenant(jobTemplates=[{**JOB, "cron": {"schedule": "0 3 * * *"}}])]}, "endless-run", "[0].cron"),
        (
            {
                "cml": {"host": "https://ml.example.com", "clusters": [ON_CML]},
                "jobs": [{"name": "count", "cmlCluster": "training", "entrypoint": "python count.py"}],
            },
            "long-wait",
            "jobs[0].cmlCluster",
        ),
        ({**training(), "images": {"mirrors": {"dokcer.io": "registry.example.com"}}}, "unused-mirror", "dokcer.io"),
        (
            {**training(), "images": {"mirrors": dict.fromkeys(("docker.io", "qauy.io"), "registry.example.com")}},
            "unused-mirror",
            "qauy.io",
        ),
        (
            {"tenants": [tenant(storage=[EXPORT]), {"name": "team-b", "storage": [EXPORT]}]},
            "shared-export",
            "tenants[1].storage[0].nfs.path",
        ),
        (
            {"tenants": [tenant(storage=[EXPORT]), {"name": "team-b", "storage": [INSIDE]}]},
            "shared-export",
            "tenants[1].storage[0].nfs.path",
        ),
        (
            {"tenants": [tenant(storage=[INSIDE]), {"name": "team-b", "storage": [EXPORT]}]},
            "shared-export",
            "tenants[1].storage[0].nfs.path",
        ),
        (
            {"tenants": [tenant(storage=[SHARE]), {"name": "team-b", "storage": [{**SHARE, "csi": ANOTHER}]}]},
            "shared-export",
            "tenants[1].storage[0].csi.volumeAttributes",
        ),
        (
            {"tenants": [tenant(storage=[EXPORT], runHistory={"storage": "models"}, clusters=[MOUNTING])]},
            "shared-records",
            "tenants[0].runHistory.storage",
        ),
        (training(readyTimeout="5s"), "short-wait", "clusters[0].readyTimeout"),
        (training(idleTerminationOptions={"timeoutSeconds": 5}), "short-idle", "idleTerminationOptions.timeoutSeconds"),
        ({**training(), "logs": {**LOGS, "egress": [{"internet": True}]}}, "closed-receiver", "logs.endpoint"),
        (
            {"tenants": [tenant(network={"egress": [{"cidr": "fd00:ec2::/64"}]})]},
            "metadata-service",
            "network.egress[0].cidr",
        ),
        ({}, "empty-stack", "so that `up` installs KubeRay"),
        (
            {"monitoring": {"mode": "install", "prometheus": {"storage": "400Mi"}}},
            "small-volume",
            "monitoring.prometheus.storage",
        ),
        (
            {"monitoring": {"mode": "install", "alerts": {"RayHeadUnreachable": {"after": "20s"}}}},
            "short-alert",
            "monitoring.alerts.RayHeadUnreachable.after",
        ),
        (
            {
                "tenants": [tenant()],
                "monitoring": {
                    "mode": "install",
                    "alertmanager": {
                        "receivers": [
                            {"name": "mail", "type": "webhook", "severities": ["warning"]},
                            {"name": "team", "type": "slack", "tenants": ["team-a"]},
                        ]
                    },
                },
            },
            "unsent-alerts",
            "monitoring.alertmanager.receivers",
        ),
        (served(network={"egress": [{"internet": True}]}), "closed-service", "services[0].name"),
        (served(network={"serveFrom": ["portal"]}), "closed-hub", "services[0].llm.model"),
    ],
)
def test_what_may_be_wrong_is_mentioned(values: dict[str, Any], rule: str, place: str) -> None:
    [found] = advice(StackSettings.model_validate(values), "prod", TODAY)
    assert (found.rule, place in str(found)) == (rule, True), str(found)


@pytest.mark.parametrize(
    "values",
    [
        {**training(), "images": {"mirrors": {"docker.io": "registry.example.com/hub"}}},
        {**training(labels={"volcano.sh/queue-name": "a"}), "scheduler": {"volcano": {}}},
        training(rayVersion="2.56.0", image="r:2.56.0", workerGroups=[{**GROUP, "podTemplate": STOPS}]),
        training(drainTimeout="0s", workerGroups=[{**GROUP, "podTemplate": STOPS}]),
        {"tenants": [tenant(jobTemplates=[{**JOB, "activeDeadlineSeconds": 60, "cron": {"schedule": "0 3 * * *"}}])]},
        {"tenants": [tenant(storage=[EXPORT, {**EXPORT, "name": "again"}, {**INSIDE, "name": "inside"}])]},
        {**training(), "logs": {**LOGS, "egress": [{"internet": True, "ports": [8443]}]}},
        {"monitoring": {"mode": "install", "alerts": {"RayHeadUnreachable": {"after": "0s"}}}},
        {"monitoring": {"mode": "install", "prometheus": {"storage": "1Gi"}}},
        {"monitoring": {"mode": "install", "alertmanager": {"receivers": [{"name": "oncall", "type": "pagerduty"}]}}},
        served(network=OPEN),
        served(source="/models/tiny", network={"serveFrom": ["portal"]}),
    ],
)
def test_what_is_as_it_should_be_is_not_mentioned(values: dict[str, Any]) -> None:
    assert list(advice(StackSettings.model_validate(values), "prod", TODAY)) == []


def test_an_exception_applies_up_to_its_last_day() -> None:
    assert advised("img-digest", "RayCluster/team-a/training", "2026-11-24") == []
    [line] = advised("img-digest", "RayCluster/team-a/training", "2026-11-23")
    assert line.startswith("ray-platform:policies.exceptions[0].expires: the exception expired on 2026-11-23")


@pytest.mark.parametrize(
    "owner", ["RayCluster/team-a/training", "RayCluster/team-a/own", "RayCluster/*", "*/team-a/*", "Deployment/a/b"]
)
def test_an_exception_that_may_match_something_is_not_mentioned(owner: str) -> None:
    assert advised("img-digest", owner) == []


def test_an_exception_that_matches_nothing_has_no_effect() -> None:
    assert "is not in the stack" in advised("img-digest", "RayCluster/team-a/trainig")[0]
    assert "never applies to this kind" in advised("ns-psa-labels", "RayCluster/team-a/training")[0]


def test_the_account_of_a_ray_deployer_needs_an_exception_from_a_policy() -> None:
    def found(name: str = "prod", **policies: Any) -> list[str]:
        return lines_of(name, tenants=RAY_DEPLOYER, policies=policies)

    rule = "ray-worker-no-sa-token"
    excepted = {"rule": rule, "object": "RayCluster/team-a/*", "reason": "ado", "owner": "a", "expires": "2027-03-31"}
    [line] = found()
    assert line.startswith("ray-platform:tenants[0].rayDeployer: workers get its token, which the policy " + rule)
    assert found(exceptions=[excepted]) == found(rules={rule: "advisory"}) == []
    assert found("dev") == []
    assert found("dev", level="mandatory") == [line]


@pytest.mark.parametrize(
    ("configuration", "lines"),
    [
        ("environments: {prod: {level: advisory}}", 0),
        ("environments: {prod: {level: advisory, rules: {ray-worker-no-sa-token: mandatory}}}", 1),
        ("environments: {other: {level: advisory}}", 1),
        ("environments: {prod: {level: unknown}}", 0),
    ],
)
def test_what_policies_refuse_depends_on_the_configuration_of_the_pack(
    configuration: str, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All stacks of a split environment have its levels. The pack itself refuses an invalid configuration."""
    (tmp_path / "levels.yaml").write_text(configuration)
    monkeypatch.setenv("RAY_PLATFORM_POLICIES", str(tmp_path / "levels.yaml"))
    for name in ("prod", "prod.tenants-01"):
        assert len(lines_of(name, tenants=RAY_DEPLOYER)) == lines


def test_users_whose_rayjobs_volcano_never_starts_are_mentioned() -> None:
    def found(**scheduler: Any) -> list[str]:
        users = [{"subject": "group:a", "clusters": ["training"], "submitJobs": True}]
        quota = {"hard": {"count/rayjobs.ray.io": 9}}
        return lines_of(tenants=[{"name": "team-a", "users": users, "clusters": CLUSTERS, "quota": quota}], **scheduler)

    [line] = found(scheduler={"volcano": {}})
    assert found(operator={"batchScheduler": "volcano"}) == [line]
    assert line.startswith("ray-platform:tenants[0].users[0].submitJobs: with Volcano, KubeRay starts no RayJob")
    assert found() == found(scheduler={"kueue": {}}) == []


def test_a_credential_that_is_sent_in_plain_text_is_mentioned() -> None:
    def found(scheme: str) -> list[str]:
        headers = {"X-Scope-OrgID": "ray", "Authorization": {"secret": "logs", "key": "token"}}
        return lines_of(logs={"endpoint": f"{scheme}://loki.example.com", "headers": headers})

    [line] = found("http")
    assert line.startswith("ray-platform:logs.headers.Authorization: is a credential, and the endpoint is not https")
    assert found("https") == []


def test_metadata_that_kuberay_does_not_pass_to_a_selected_cluster_is_mentioned() -> None:
    def found(key: str = "jobs", **settings: Any) -> list[str]:
        job = {"name": "count", "entrypoint": "python count.py", "metadata": {"team": "a"}, **settings}
        return lines_of(tenants=[{"name": "team-a", "clusters": CLUSTERS, key: [job]}])

    selected: dict[str, Any] = {"clusterSelector": {"ray.io/cluster": "training"}}
    [line] = found(**selected)
    assert line.startswith("ray-platform:tenants[0].jobs[0].metadata: KubeRay's pod that submits passes no metadata")
    assert found("jobTemplates", **selected) == [line.replace("jobs", "jobTemplates")]
    own: dict[str, Any] = {"cluster": {key: value for key, value in CLUSTERS[0].items() if key != "name"}}
    assert found(**selected, submissionMode="HTTPMode") == found(**selected, metadata={}) == found(**own) == []


def test_a_model_that_does_not_scale_beyond_its_replicas_is_mentioned() -> None:
    def found(llm: dict[str, Any], **cluster: Any) -> list[str]:
        settings = {"rayVersion": "2.60.0", "image": "rayproject/ray-llm:2.60.0", **cluster}
        service = {"name": "chat", "llm": {"model": "llama", "pool": "a100", **llm}, "cluster": settings}
        nodes = [{"pool": "a100", "count": 2, "cpu": 64, "memory": "512Gi", "gpus": 8}]
        return lines_of(nodes=nodes, tenants=[{"name": "team-a", "network": OPEN, "services": [service]}])

    [line] = found({"maxReplicas": 2}, autoscaling=False)
    assert line.startswith("ray-platform:tenants[0].services[0].llm.maxReplicas: each replica needs a worker")
    assert found({"maxReplicas": 2}, autoScalingMode="disabled") == [line]
    assert found({"maxReplicas": 2}) == found({"maxReplicas": 1}, autoscaling=False) == found({}, autoscaling=False)
    assert found({}) == []


def test_an_expired_exception_of_admission_policies_is_mentioned() -> None:
    exception = {"rule": "pod-no-host-path", "namespace": "team-a", "reason": "old", "owner": "a"}
    exceptions = [{**exception, "expires": "2026-01-31"}]
    [found] = lines_of(tenants=[{"name": "team-a"}], admissionPolicies={"exceptions": exceptions})
    assert found.startswith("ray-platform:admissionPolicies.exceptions[0].expires: the exception expired")


@pytest.mark.parametrize(("tenants", "split", "long"), [(100, "", False), (400, "", True), (400, "{stacks: 8}", False)])
def test_a_configuration_that_pulumi_cannot_pass_is_mentioned_unless_it_is_split(
    tenants: int, split: str, long: bool
) -> None:
    text = many_tenants(tenants) + (f"  ray-platform:split: {split}\n" if split else "")
    file = stack_file("Pulumi.many.yaml", text)
    found = [each.message for each in too_long(file, settings_of(file))]
    # What the language host does: JSON in JSON.
    texts = {key: json.dumps(value, separators=(",", ":")) for key, value in file.config.items()}
    size = len(f"PULUMI_CONFIG={json.dumps(texts, separators=(',', ':'))}\0")
    assert [f"has {size} bytes, and Linux passes {LONGEST_VARIABLE}" in each for each in found] == [True] * long


def test_check_prints_advice_and_succeeds(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.many.yaml"
    file.write_text(many_tenants(400))
    texts = {form: stacks("check", str(file), "--format", form) for form in ("text", "json", "github")}
    assert {each.exit_code for each in texts.values()} == {0}
    assert "advice: the configuration has" in texts["text"].output
    assert json.loads(texts["json"].output) == []
    assert texts["github"].output.startswith("::warning ")


@pytest.mark.parametrize(
    ("storage_class", "hf_home", "lines"), [("csi-s3", True, 1), ("csi-s3", False, 0), ("cephfs", True, 0)]
)
def test_a_class_whose_name_suggests_object_storage_is_mentioned_if_it_is_hf_home(
    storage_class: str, hf_home: bool, lines: int
) -> None:
    storage = [{"name": "models", "storageClass": storage_class, "size": "1Ti"}]
    mounts = [{"name": "models", "mountPath": "/mnt/models", "hfHome": hf_home}]
    tenant = {"name": "team-a", "storage": storage, "clusters": [{**CLUSTERS[0], "storage": mounts}]}
    found = lines_of(tenants=[tenant])
    start = "ray-platform:tenants[0].storage[0].storageClass: 'csi-s3' may be object storage by its name"
    assert [each.startswith(start) for each in found] == [True] * lines


@pytest.mark.parametrize(
    ("redis", "clusters", "found"),
    [
        ({}, 4, []),
        ({}, 5, [("storage", "1Gi is less than three times the data that fit into 768Mi of memory, 461Mi")]),
        ({"storage": {"size": "2Gi"}}, 5, []),
        ({"resources": {"cpu": "1", "memory": "1Gi"}}, 1, [("storage", "Set at least 1844Mi")]),
        ({"backup": {"storage": {"size": "512Mi"}}}, 2, []),
        ({"backup": {"storage": {"size": "512Mi"}}}, 3, [("backup.storage", "Set at least 615Mi")]),
        ({"scope": "perTenant"}, 5, [("storage", "three times the data that fit into 768Mi")]),
        ({"mode": "external", "external": {"address": "redis.example.com:6379", "secretName": "r"}}, 9, []),
    ],
)
def test_volumes_that_a_full_redis_or_its_backups_fill_are_mentioned(
    redis: dict[str, Any], clusters: int, found: list[tuple[str, str]]
) -> None:
    """The memory of a Redis grows with the number of RayClusters, and its volume does not."""
    kept = [{**CLUSTERS[0], "name": f"c{number}", "faultTolerance": True} for number in range(clusters)]
    lines = lines_of(redis=redis, tenants=[{"name": "team-a", "clusters": kept}])
    assert len(lines) == len(found)
    for line, (key, text) in zip(lines, found, strict=True):
        assert line.startswith(f"ray-platform:redis.{key}.size: ")
        assert text in line


@pytest.mark.parametrize(("drain", "shortest"), [("59s", 60), ("60s", None), ("0s", 60)])
def test_a_service_whose_workers_end_before_its_requests_have_moved(drain: str, shortest: int | None) -> None:
    config = {"applications": [{"name": "chat", "route_prefix": "/", "import_path": "chat:app"}]}
    cluster = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "drainTimeout": drain, "workerGroups": [GROUP]}
    service = {"name": "chat", "serveConfigV2": config, "cluster": cluster}
    lines = lines_of(tenants=[{"name": "team-a", "network": OPEN, "services": [service]}])
    assert [f"Serve needs {shortest} s to move them" in line for line in lines] == ([True] if shortest else [])


@pytest.mark.parametrize(("drain", "advised"), [("25s", None), ("24s", "to 4 or less"), ("20s", "")])
@pytest.mark.parametrize("of", ["cluster", "group"])
def test_a_service_on_spot_nodes_may_drain_for_less(drain: str, advised: str | None, of: str) -> None:
    deployments = [{"name": "Model", "graceful_shutdown_timeout_s": 5}]
    application = {"name": "chat", "route_prefix": "/", "import_path": "chat:app", "deployments": deployments}
    group = {**GROUP, **({"drainTimeout": drain} if of == "group" else {})}
    cluster = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "workerGroups": [group]}
    cluster |= {"drainTimeout": drain} if of == "cluster" else {}
    service = {"name": "chat", "serveConfigV2": {"applications": [application]}, "cluster": cluster}
    lines = lines_of(tenants=[{"name": "team-a", "network": OPEN, "services": [service]}])
    assert len(lines) == (advised is not None)
    assert all((advised or "remove it") in line for line in lines)
    assert all(("less time" in line) == bool(advised) for line in lines)


@pytest.mark.parametrize(("cidr", "found"), [("169.254.169.254/32", 1), ("169.254.0.0/16", 1), ("10.0.0.0/8", 0)])
def test_egress_to_the_clouds_metadata_service(cidr: str, found: int) -> None:
    tenant = {"name": "team-a", "network": {"egress": [{"cidr": cidr}]}}
    lines = lines_of(tenants=[tenant])
    assert [("credentials of the node" in line) for line in lines] == [True] * found
