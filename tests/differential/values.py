"""Values for the fields that rules read: valid ones, invalid ones, and ones at the limit."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.unit.kuberay.manifests import GONE, pod

Values = Mapping[str, st.SearchStrategy[Any]]

BOOLEANS = st.booleans()
COUNTS = st.sampled_from([-1, 0, 1, 2, 5, 2**31 - 1, 2**31])
SMALL_COUNTS = st.sampled_from([-1, 0, 1, 2, 5, 2**31])
"""For Volcano's pod groups the operator adds up resources pod by pod; 2^31-1 would take all memory."""
TEXTS = st.sampled_from(["", "a", "a-b", "A.b_c", "-a", "a b", "é", "a" * 63, "a" * 64, "x/y", "1"])
RESTARTS = st.sampled_from(["", "Never", "Always", "OnFailure"])
VERSIONS = st.sampled_from(
    ["", "2.51.0", "2.52.0", "v2.55", "2.55.0", "2.60.0rc1", "2.6.0-rc.1", "2", "02.60.0", "nightly", "2.60.00",
     " 2.60.0 ",
     "2.5.9", "2.6.0+x", "2.600", "2..6", "2.60.0\n", "2.52.0-", "999.0", "2.99999999999999999999"]
)  # fmt: skip
LABELS = st.dictionaries(
    st.sampled_from(["a", "a.b/c", "A/b", "a/b/c", "", "-a", "a" * 64, "é", "a b", "ray.io/x", "/a", "a/"]),
    TEXTS,
    max_size=2,
)

VARIABLES = st.lists(
    st.builds(
        lambda name, value: {"name": name, "value": value},
        st.sampled_from(["RAY_enable_autoscaler_v2", "RAY_REDIS_ADDRESS", "REDIS_PASSWORD", "REDIS_USERNAME", "OTHER"]),
        st.sampled_from(["", "0", "1", "true", "True"]),
    ),
    max_size=2,
)

PARAMS = st.dictionaries(
    st.sampled_from(
        ["num-cpus", "num-gpus", "memory", "resources", "labels", "redis-password", "redis-username", "block"]
    ),
    st.sampled_from(["", "1"]),
    max_size=2,
)

PORTS = st.lists(
    st.sampled_from(
        [{"containerPort": 8000}, {"name": "serve", "containerPort": 8000}, {"name": "serve-x", "containerPort": 1},
         {"name": "server", "containerPort": 8}, {"name": "client", "containerPort": 10001, "protocol": "UDP"}]
    ),
    max_size=2,
)  # fmt: skip

QUANTITIES = st.sampled_from(
    ["1", 1, "500m", "1.5", 1.5, "", "two", "1Gi", "1gi", "-1", "1e3", "1E", ".5", "1.", "+1", "1 ", "1Ki ", True,
     "1e1.5", "1E.5", "1e-3", "1e+3", "1e99999999999999999999", 1e30, 2**63, 1e15]
)  # fmt: skip

PROBES = st.builds(
    lambda port: {"httpGet": {"port": port}}, st.sampled_from([8000, "serve", -1, 2**31 - 1, 2**31, -(2**31) - 1, 1.5])
)

SERVICES = st.builds(
    lambda time: {"status": {"conditions": [
        {"type": "a", "status": "True", "reason": "r", "message": "", "lastTransitionTime": time}
    ]}},
    st.sampled_from(
        ["2026-11-29T00:00:00Z", "2026-11-29T00:00:00.5+01:00", "2026-11-29t00:00:00z", "2026-11-29T00:00:00+99:00",
         "2026-11-29T00:00:00", "2026-13-29T00:00:00Z", "2026-11-29T24:00:00Z", "2026-11-29T00:00:00-23:59", "1", ""]
    ),
)  # fmt: skip

WORKER: Values = {
    "groupName": st.sampled_from(["workers", "others", "", "a_b", "A.b", "a" * 64, "-a"]),
    "replicas": SMALL_COUNTS,
    "minReplicas": SMALL_COUNTS,
    "maxReplicas": COUNTS,
    "numOfHosts": COUNTS,
    "idleTimeoutSeconds": COUNTS,
    "suspend": BOOLEANS,
    "resources": st.sampled_from([{}, {"CPU": "1"}]),
    "labels": LABELS,
    "rayStartParams": PARAMS,
    "scaleStrategy workersToDelete": st.lists(TEXTS, max_size=2),
    "template spec restartPolicy": RESTARTS,
    "template spec containers": st.sampled_from([[], [{"name": "w"}], [{"name": "w"}, {"name": "w"}], [{}]]),
    "template spec containers 0 resources limits cpu": QUANTITIES,
}

CLUSTER: Values = {
    "rayVersion": VERSIONS,
    "enableInTreeAutoscaling": BOOLEANS,
    "suspend": BOOLEANS,
    "managedBy": st.sampled_from(["ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue", "me", ""]),
    "upgradeStrategy": st.sampled_from([{}, {"type": "Recreate"}, {"type": "None"}, {"type": "none"}]),
    "autoscalerOptions version": st.sampled_from(["v1", "v2", "v3", ""]),
    "autoscalerOptions idleTimeoutSeconds": COUNTS,
    "autoscalerOptions upscalingMode": st.sampled_from(["Default", "Aggressive", "Conservative", "default"]),
    "autoscalerOptions resources limits": st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITIES, max_size=1),
    "authOptions": st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(["token", "token", "disabled", "none"]),
            "enableK8sTokenAuth": BOOLEANS,
            "secretName": st.sampled_from(["", "tokens"]),
        },
    ),
    "gcsFaultToleranceOptions": st.sampled_from([{}, {"redisAddress": ""}, {"redisAddress": "redis:6379"}]),
    "headGroupSpec headService": st.sampled_from([{}, {"metadata": {}}, {"metadata": {"name": "mine"}}]) | SERVICES,
    "headGroupSpec resources": st.sampled_from([{}, {"CPU": "1"}]),
    "headGroupSpec labels": LABELS,
    "headGroupSpec rayStartParams": PARAMS,
    "headGroupSpec template spec restartPolicy": RESTARTS,
    "headGroupSpec template spec containers 0 env": VARIABLES,
    "headGroupSpec template spec containers 0 ports": PORTS,
    "headGroupSpec template spec containers 0 livenessProbe": PROBES,
    "headGroupSpec template spec containers": st.sampled_from([[], [{"name": "h"}]]),
    **{f"workerGroupSpecs 0 {place}": values for place, values in WORKER.items()},
    "workerGroupSpecs 1": st.builds(
        lambda name, least, most: {
            "groupName": name, "minReplicas": least, "maxReplicas": most, "template": pod("ray-worker")
        },
        WORKER["groupName"], SMALL_COUNTS, COUNTS,
    ),
}  # fmt: skip

POLICIES = st.sampled_from(["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"] * 4 + ["Delete"])

SECONDS = st.sampled_from([0, 5, 60, -1])

CONDITIONS = st.one_of(
    st.fixed_dictionaries({"jobStatus": st.just("FAILED"), "ttlSeconds": SECONDS}),
    st.fixed_dictionaries({"jobDeploymentStatus": st.just("Failed"), "ttlSeconds": SECONDS}),
    st.fixed_dictionaries(
        {},
        optional={
            "jobStatus": st.sampled_from(["FAILED", "SUCCEEDED", "STOPPED"]),
            "jobDeploymentStatus": st.sampled_from(["Failed", "Running"]),
            "ttlSeconds": SECONDS,
        },
    ),
)

DELETION_RULES = st.lists(st.fixed_dictionaries({"policy": POLICIES, "condition": CONDITIONS}), max_size=3)

DOCUMENTS = st.sampled_from(
    ["", "a: 1", "- a", "text", "{", "a: [", "~", "1: 2", "a: 1\n---\nb", "\t", "a: 1\na: 2", "a: &x 1\nb: *x", "*x",
     "# a",
     "a: 2024-01-01", "? [a]\n: b", "<<: {a: 1}", "!x {a: 1}", "a: !!int x", "a\0b", "a: .inf", "---", "a: 'b",
     "{a: b}"]
)  # fmt: skip

JOB: Values = {
    "suspend": BOOLEANS,
    "shutdownAfterJobFinishes": BOOLEANS,
    "ttlSecondsAfterFinished": COUNTS,
    "activeDeadlineSeconds": COUNTS,
    "preRunningDeadlineSeconds": COUNTS,
    "backoffLimit": COUNTS,
    "submissionMode": st.sampled_from(["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode", "sidecar", ""]),
    "clusterSelector": st.sampled_from([{}, {"ray.io/cluster": ""}, {"ray.io/cluster": "a"}, {"team": "a"}]),
    "rayClusterSpec": st.just(GONE),
    "runtimeEnvYAML": DOCUMENTS,
    "metadata": st.sampled_from([{}, {"a": "b"}]),
    "entrypointResources": st.sampled_from(
        ["", "{}", '{"a": 1}', '{"a": "1"}', '{"a": null}', "null", "[]", "1", "{", "{'a': 1}", '{"a": true}',
         '{"a": 1e50}', '{"a": 3.4028235e38}', '{"a": NaN}', ' {"a": -1} ', "{}{}"]
    ),
    "entrypointNumCpus": st.sampled_from([0, 1, 0.5, -1, "1", 1e50]),
    "submitterConfig": st.sampled_from([{}, {"backoffLimit": 1}, {"backoffLimit": "1"}]),
    "submitterPodTemplate": st.sampled_from([{}, {"spec": {"containers": []}}, pod("submitter")]),
    "deletionStrategy": st.fixed_dictionaries(
        {},
        optional={
            "onSuccess": st.fixed_dictionaries({}, optional={"policy": POLICIES}),
            "onFailure": st.fixed_dictionaries({}, optional={"policy": POLICIES}),
        },
    ),
    "deletionStrategy deletionRules": DELETION_RULES,
}  # fmt: skip

SERVICE: Values = {
    "serveConfigV2": DOCUMENTS,
    "serveService": st.sampled_from([{}, {"spec": {"ports": [{"name": "serve", "port": 8000}]}}]),
    "excludeHeadPodFromServeSvc": BOOLEANS,
    "rayClusterDeletionDelaySeconds": COUNTS,
    "upgradeStrategy": st.sampled_from([{}, {"type": "NewCluster"}, {"type": "None"}, {"type": "Rolling"}]),
    "upgradeStrategy type": st.just("NewClusterWithIncrementalUpgrade"),
    "upgradeStrategy clusterUpgradeOptions": st.fixed_dictionaries(
        {},
        optional={
            "maxSurgePercent": st.sampled_from([None, -1, 0, 100, 101]),
            "stepSizePercent": st.sampled_from([-1, 0, 100, 101]),
            "intervalSeconds": COUNTS,
            "gatewayClassName": st.sampled_from(["", "istio"]),
        },
    ),
}

SCHEDULES = st.one_of(
    st.sampled_from(
        ["@daily", "@Daily", "@every 1h", "@every", "@every 1", "@every -1m", "@every 1.5h", "", "* * * * *", "* * * *",
         "TZ=UTC * * * * *", "CRON_TZ=Europe/Berlin @daily", "TZ=UTC", "TZ= * * * * *", "TZ=X/Y 0 0 * * *", ", * * * *"]
    ),
    st.lists(
        st.sampled_from(
            ["*", "?", "0", "5", "1-5", "5-1", "*/2", "1/2", "1-5/2", "*/0", "60", "-1", "jan", "MON", "mon-FRI", "1,2",
             "a",
             "1-2-3", "1/2/3", "7", "12", "31", "+1", "1,", "*-5", "??", "0x1", "٣"]
        ),
        min_size=4, max_size=6,
    ).map(" ".join),
)  # fmt: skip

METADATA: Values = {
    "name": st.sampled_from(
        ["a", "a-b", "A", "1a", "a.b", "a-", "", "é"] + ["a" * n for n in (41, 42, 47, 48, 53, 54, 63, 64, 254)]
    ),
    "generateName": st.sampled_from(["ray-", "Ray-", "a" * 60, ""]),
    "namespace": st.sampled_from(["default", "Team", "a.b", "a" * 64, "1"]),
    "labels": LABELS,
    "annotations": LABELS,
    "labels ray.io/originated-from-crd": st.sampled_from(["RayCluster", "RayJob", "RayService", "RayCronJob"]),
    "labels volcano.sh/network-topology-mode": st.just("hard"),
    "labels volcano.sh/network-topology-highest-tier-allowed": st.sampled_from(["1", "a", "", "1.5"]),
    "annotations ray.io/ft-enabled": st.sampled_from(["true", "TRUE", "false", ""]),
    "annotations ray.io/external-storage-namespace": st.sampled_from(["", "team"]),
    "annotations ray.io/enable-serve-service": st.sampled_from(["true", "True", ""]),
    "annotations ray.io/initializing-timeout": st.sampled_from(
        ["", "5m", "1h30m", "0", "-5m", "10", "-10", "0s", "+5m", ".5h", "5", "5 m",
         "1d", "1.5", "m", "5µs", "1h-5m", "٣",
         "1_0",
         "9223372036854775807", "9223372036854775808", "99999999h", "0.0000000001ns", "."]
    ),
}  # fmt: skip
