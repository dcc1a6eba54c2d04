"""Cases of the rules about RayClusters, their Redis and their queues."""

from core.body import Body
from testbed.policies.bodies import (
    budget,
    deployment,
    head_that_works,
    queue,
    ray_cluster,
    ray_cluster_without,
    ray_job,
    ray_service,
    ray_spec,
    redis,
    redis_conf,
    volcano_job,
)
from testbed.policies.case import MISSING, case
from testbed.policies.wrappers import ray_cluster_fleet

HEAD = "spec headGroupSpec"
HEAD_RAY = f"{HEAD} template spec containers 0"
GROUP = "spec workerGroupSpecs 0"
WORKER = f"{GROUP} template spec"
RECONNECT = "RAY_gcs_rpc_server_reconnect_timeout_s"
QUEUE = "metadata labels volcano.sh/queue-name"
KUEUE = "metadata labels kueue.x-k8s.io/queue-name"
KEPT = ray_job(shutdownAfterJobFinishes=False, ttlSecondsAfterFinished=0)
KEPT["spec"]["deletionStrategy"] = {"onFailure": {"policy": "DeleteNone"}, "onSuccess": {}}
BY_A_RULE = ray_job(shutdownAfterJobFinishes=False, ttlSecondsAfterFinished=0)
BY_A_RULE["spec"]["deletionStrategy"] = {
    "deletionRules": [{"condition": {"jobStatus": "FAILED", "ttlSeconds": 60}, "policy": "DeleteCluster"}]
}
OF_ONE_SIZE = ray_cluster_without("enableInTreeAutoscaling")
OF_ONE_SIZE["spec"]["workerGroupSpecs"][0]["maxReplicas"] = 2**31 - 1
SLEEP = {"sleep": {"seconds": 5}}
SHORT = {"sleep": {"seconds": 1}}
PKILL = {"exec": {"command": ["/bin/sh", "-c", "pkill raylet"]}}
RAY_STOP = {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}
RAY_STOP_IN_WORDS = {"exec": {"command": ["ray", "stop"]}}
CONF = "data redis.conf"
EXPRESSION = "spec selector matchExpressions 0"
BUDGET = budget()
BUDGET["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["redis"]}]}
ON_A_CLUSTER = ray_job(clusterSelector={"ray.io/cluster": "it"})
del ON_A_CLUSTER["spec"]["rayClusterSpec"]


def ray_cluster_that_drains() -> Body:
    """A RayCluster whose workers drain for 40 of 51 seconds."""
    made = ray_cluster()
    variable = {"name": "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "value": "40"}
    worker = made["spec"]["workerGroupSpecs"][0]["template"]["spec"]
    worker["containers"][0]["env"], worker["terminationGracePeriodSeconds"] = [variable], 51
    return made


def of_the_older_form() -> Body:
    """A RayCluster with variables of its head instead of gcsFaultToleranceOptions."""
    made = ray_cluster_without("gcsFaultToleranceOptions")
    made["metadata"]["annotations"] = {"ray.io/ft-enabled": "true"}
    reference = {"secretKeyRef": {"name": "redis", "key": "password"}}
    made["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "RAY_REDIS_ADDRESS", "value": "redis:6379"},
        {"name": "REDIS_PASSWORD", "valueFrom": reference},
    ]
    return made


def with_password() -> Body:
    """Redis with a password as an argument."""
    made = redis()
    made["spec"]["template"]["spec"]["containers"][0]["args"][4:] = ["--requirepass", "$(P)"]
    return made


def in_queue_it(**group: int) -> Body:
    """A RayCluster in Queue `it`: a head and workers of 4 CPUs and 8Gi each."""
    made = ray_cluster(**{"volcano.sh/queue-name": "it"})
    made["spec"]["workerGroupSpecs"][0] |= group
    return made


RAY = [
    case("ray-auth-token", "spec authOptions mode", "token", MISSING, ray_cluster()),
    case("ray-auth-token", "spec rayClusterSpec authOptions mode", "token", "Token", ray_job()),
    case("ray-min-version", "spec rayVersion", "2.54.0", "2.9.0", ray_cluster()),
    case("ray-min-version", "spec rayVersion", "2.60.0", "2.54.0", ray_cluster(), options={"version": "2.60.0"}),
    case("ray-min-version", f"{HEAD_RAY} image", "ray:2.60.0-gpu", "ray:2.46.0-gpu", ray_cluster_without("rayVersion")),
    case("ray-image-version", f"{HEAD_RAY} image", "ray:2.60.0-py311", "ray:2.59.0", ray_cluster()),
    case("ray-image-version", f"{HEAD_RAY} image", "acme/trainer:1.4.2", "acme/our-ray:1.4.2", ray_cluster()),
    case("ray-tls", f"{HEAD_RAY} env 0 value", "1", "0", ray_cluster()),
    case("ray-no-public-dashboard", f"{HEAD} serviceType", "ClusterIP", "LoadBalancer", ray_cluster()),
    case("ray-no-public-dashboard", f"{HEAD} enableIngress", False, True, ray_cluster()),
    case("ray-head-zero-cpu", f"{HEAD} rayStartParams num-cpus", "0", "4", ray_cluster()),
    case("ray-head-zero-cpu", f"{HEAD} resources CPU", "0", "4", ray_cluster()),
    case("ray-head-zero-cpu", "spec workerGroupSpecs", [], [{}], head_that_works()),
    case("ray-head-zero-gpu", "spec workerGroupSpecs", MISSING, [{}], head_that_works()),
    case("ray-head-priority", "spec workerGroupSpecs", MISSING, [{}], head_that_works()),
    case("ray-head-zero-gpu", f"{HEAD_RAY} resources limits nvidia.com/gpu", "0", "1", ray_cluster()),
    case("ray-head-zero-gpu", f"{HEAD_RAY} resources limits google.com/tpu", "0", "4", ray_cluster()),
    case("ray-head-zero-gpu", f"{HEAD_RAY} resources limits aws.amazon.com/neuroncore", "0", "1", ray_cluster()),
    case("ray-worker-no-sa-token", f"{WORKER} automountServiceAccountToken", False, MISSING, ray_cluster()),
    case("ray-head-priority", f"{HEAD} template spec priorityClassName", "high", "ray-worker", ray_cluster()),
    case("ray-gpu-node-affinity", f"{WORKER} nodeSelector", {"gpu": "h100"}, MISSING, ray_cluster()),
    case("ray-gpu-node-affinity", f"{WORKER} nodeSelector", {"gpu": "h100"}, {}, ray_cluster()),
    case(
        "ray-background-delete",
        "metadata annotations pulumi.com/deletionPropagationPolicy",
        "background",
        MISSING,
        ray_cluster(),
        protected=False,
    ),
    case(
        "ray-operator-minver",
        "spec template spec containers 0 image",
        "quay.io/kuberay/operator:v1.6.2",
        "quay.io/kuberay/operator:v1.5.1",
        deployment(),
    ),
    case("ray-head-memory", f"{HEAD_RAY} resources limits memory", "8Gi", "1Gi", ray_cluster()),
    case("ray-worker-stops", f"{WORKER} terminationGracePeriodSeconds", 30, 0, ray_cluster()),
    case("ray-worker-stops", f"{WORKER} terminationGracePeriodSeconds", 50, 45, ray_cluster_that_drains()),
    case("ray-worker-stops", f"{WORKER} containers 0 lifecycle preStop", SLEEP, RAY_STOP, ray_cluster()),
    case("ray-worker-stops", f"{WORKER} containers 0 lifecycle preStop", SLEEP, RAY_STOP_IN_WORDS, ray_cluster()),
    case("ray-worker-stops", f"{WORKER} containers 0 lifecycle preStop", SLEEP, PKILL, ray_cluster()),
    case("ray-worker-stops", f"{WORKER} containers 0 lifecycle preStop", SHORT, SLEEP, ray_cluster_that_drains()),
    case("ray-worker-stops", f"{WORKER} containers 0 lifecycle stopSignal", "SIGTERM", "SIGINT", ray_cluster()),
    case(
        "ray-head-priority",
        f"spec template {HEAD} template spec priorityClassName",
        "heads",
        MISSING,
        ray_cluster_fleet(),
    ),
]

SPEC = [
    case("ray-restart-never", f"{WORKER} restartPolicy", MISSING, "Always", ray_cluster()),
    case("ray-start-params", f"{GROUP} rayStartParams labels", MISSING, "a=b", ray_cluster()),
    case("ray-name-length", "metadata name", "a" * 53, "a" * 54, ray_cluster()),
    case("ray-name-length", "metadata name", "train", "1-train", ray_job()),
    case("ray-job-ttl", "spec deletionStrategy onSuccess policy", "DeleteWorkers", "DeleteNone", KEPT),
    case("ray-job-ttl", "spec shutdownAfterJobFinishes", True, False, ray_job(clusterSelector={})),
    case("ray-job-ttl", "spec deletionStrategy deletionRules 0 condition ttlSeconds", 60, 100_000, BY_A_RULE),
    case("ray-job-has-cluster", "spec rayClusterSpec", ray_spec(), MISSING, ray_job(clusterSelector={})),
    case("ray-name-length", "metadata name", "a" * 47, "a" * 48, ON_A_CLUSTER),
    case("ray-group-names", f"{GROUP} groupName", "one", MISSING, ray_cluster()),
    case("ray-replica-bounds", f"{GROUP} minReplicas", 0, 9, ray_cluster()),
    case("ray-replica-bounds", f"{GROUP} maxReplicas", 1, MISSING, ray_cluster()),
    case("ray-replica-bounds", f"{GROUP} replicas", 8, 9, ray_cluster()),
    case(
        "ray-containers",
        f"{WORKER} containers",
        ray_cluster()["spec"]["headGroupSpec"]["template"]["spec"]["containers"],
        [],
        ray_cluster(),
    ),
    case("ray-no-env-conflict", f"{HEAD_RAY} env 0 name", "RAY_USE_TLS", "REDIS_PASSWORD", ray_cluster()),
    case("ray-no-env-conflict", f"{HEAD} rayStartParams redis-password", MISSING, "$P", ray_cluster()),
    case("ray-k8s-token-auth", "spec rayClusterSpec authOptions enableK8sTokenAuth", False, True, ray_job()),
]

ONE_ROUTE_EACH = """
applications:
- {name: a, import_path: "m:a", route_prefix: /a}
- {name: b, import_path: "m:b", route_prefix: /b}
"""
WITH_A_SIDECAR = ray_cluster()
CONTAINERS = WITH_A_SIDECAR["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"]
CONTAINERS.append({**CONTAINERS[0], "name": "side"})
SERVE = [{"name": "serve", "containerPort": 8000}]
SERVE_PORTS = "spec rayClusterConfig headGroupSpec template spec containers 0 ports"


def served(deployment: str, more: str = "") -> str:
    """A Serve config with a deployment that has these options."""
    return f"{{applications: [{{import_path: 'm:a', deployments: [{{name: D, {deployment}}}]}}]{more}}}"


ONE_GPU, ON_A100 = (served(f"ray_actor_options: {{{each}}}") for each in ("num_gpus: 1", "label_selector: {gpu: a100}"))
SIXTY_FOUR_GPUS = served("ray_actor_options: {num_gpus: 64}")
NO_PROXY = served("num_replicas: 1", ", proxy_location: HeadOnly")
LIMITS = f"{WORKER} containers 0 resources limits"
CPUS = {"cpu": "4", "memory": "8Gi"}
OF_RAY_2_55 = ray_job()
OF_RAY_2_55["spec"]["rayClusterSpec"]["rayVersion"] = "2.55.0"
WITHOUT_REQUESTS = ray_cluster()
del WITHOUT_REQUESTS["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]

ACCEPTED = [
    case("ray-spec-valid", SERVE_PORTS, SERVE, [{"name": "dashboard", "containerPort": 8265}], ray_service()),
    case("ray-spec-valid", "spec template spec rayVersions", MISSING, "2.60.0", ray_cluster_fleet()),
    case("ray-spec-valid", "spec rayVersions", MISSING, "2.60.0", ray_cluster()),
    case("ray-spec-valid", f"{GROUP} idleTimeoutSeconds", 60, -1, ray_cluster()),
    case("ray-spec-valid", f"{GROUP} rayStartParams", {}, {"num-cpu": "4"}, ray_cluster()),
    case("ray-spec-valid", f"{GROUP} rayStartParams", {}, {"resources": "'{\"disk\": 0.5}'"}, ray_cluster()),
    case("ray-spec-valid", f"{WORKER} containers 1 name", "side", "ray-worker", WITH_A_SIDECAR),
    case("ray-spec-valid", "spec serveConfigV2", ONE_ROUTE_EACH, ONE_ROUTE_EACH.replace("/b", "/a"), ray_service()),
    case("ray-spec-valid", "spec entrypoint", "python a.py", "python a.py && python b.py", ray_job()),
    case("ray-spec-valid", "spec entrypointNumGpus", MISSING, 64, ray_job()),
    case("ray-spec-valid", "spec entrypointResources", MISSING, '{"ssd": 1}', ray_job()),
    case("ray-spec-valid", "spec runtimeEnvYAML", "pip: [numpy]", "pip: [numpy]\nuv: [torch]", ray_job()),
    *(
        case("ray-spec-valid", "spec serveConfigV2", ONE_GPU, bad, ray_service())
        for bad in (
            "",
            SIXTY_FOUR_GPUS,
            ON_A100,
            served('ray_actor_options: {label_selector: {"ray.io/node-group": other}}'),
            served("num_replica: 2"),
            served("num_replicas: many"),
            served("placement_group_bundles: [{GPU: 16}]"),
            served("num_replicas: 30, max_replicas_per_node: 1"),
            served("num_replicas: 1", ", http_options: {port: 9000}"),
            served("num_replicas: 1", ", proxy_location: Disabled"),
        )
    ),
    case("ray-spec-valid", f"{HEAD} rayStartParams dashboard-port", "8265", "8266", ray_cluster()),
    case("ray-spec-valid", f"{GROUP} rayStartParams metrics-export-port", "8080", "9090", ray_cluster()),
    case("ray-spec-valid", f"{WORKER} containers 0 image", "a/ray:${TAG}", "A/ray:1", ray_cluster()),
    case("ray-spec-valid", f"{GROUP} rayStartParams", {}, {"resources": "'{\"CPU\": 4}'"}, ray_cluster()),
    case("ray-spec-valid", f"{WORKER} priority", MISSING, 1000, ray_cluster()),
    case("ray-spec-valid", "metadata annotations", MISSING, {"ray.io/overwrite-container-cmd": "true"}, ray_cluster()),
]

WORKS = [
    case("ray-works-as-written", "spec serveConfigV2", ONE_GPU, NO_PROXY, ray_service()),
    case("ray-works-as-written", "spec suspend", MISSING, True, ray_cluster()),
    case("ray-works-as-written", "spec managedBy", MISSING, "kueue.x-k8s.io/multikueue", ray_cluster()),
    case("ray-works-as-written", "spec entrypoint", "python a.py", "python -c '`x`'", OF_RAY_2_55),
    case("ray-works-as-written", f"{GROUP} rayStartParams num-cpus", "4", "64", ray_cluster()),
    case("ray-works-as-written", f"{GROUP} rayStartParams num-cpus", "4", "0", ray_cluster()),
    *(
        case("ray-works-as-written", LIMITS, {**CPUS, "nvidia.com/gpu": "1"}, {**CPUS, name: "1"}, WITHOUT_REQUESTS)
        for name in ("aws.amazon.com/neuron", "habana.ai/gaudi", "aliyun.com/gpu-mem", "google.com/tpu")
    ),
]

SCALING = [
    case("ray-autoscaler-v2", "spec autoscalerOptions version", "v2", MISSING, ray_cluster()),
    case("ray-idle-timeout-bounded", "spec autoscalerOptions idleTimeoutSeconds", 60, 86_400, ray_cluster()),
    case("ray-idle-timeout-bounded", f"{GROUP} idleTimeoutSeconds", 60, 3601, ray_cluster()),
    case("ray-most-workers", f"{GROUP} replicas", 8, 1001, OF_ONE_SIZE),
    case("ray-most-workers", f"{GROUP} maxReplicas", 8, 2147483647, ray_cluster()),
    case("ray-gpu-idle-groups", f"{GROUP} minReplicas", 0, 2, ray_cluster()),
]

TOLERANCE = [
    case("ray-gcsft-on", "spec gcsFaultToleranceOptions", {"redisAddress": "redis:6379"}, MISSING, ray_cluster()),
    case(
        "ray-redis-address", "spec gcsFaultToleranceOptions redisAddress", "redis:6379", "redis://redis", ray_cluster()
    ),
    case(
        "ray-redis-address", "spec gcsFaultToleranceOptions redisAddress", "redis:6379", "redis://[::1", ray_cluster()
    ),
    case("ray-redis-tls", "spec gcsFaultToleranceOptions redisAddress", "127.0.0.1:6379", "redis:6379", ray_cluster()),
    case(
        "redis-auth-secretref",
        "spec gcsFaultToleranceOptions redisPassword",
        {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
        {"value": "hunter2"},
        ray_cluster(),
    ),
    case(
        "redis-auth-secretref",
        f"{HEAD_RAY} env 1",
        {"name": "REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
        {"name": "OTHER", "value": "x"},
        of_the_older_form(),
    ),
    case(
        "redis-auth-secretref",
        f"{HEAD} rayStartParams redis-password",
        "$REDIS_PASSWORD",
        "5241590000000000",
        of_the_older_form(),
    ),
    case(
        "ray-reconnect-order",
        f"{HEAD_RAY} env 0",
        {"name": RECONNECT, "value": "60"},
        {"name": RECONNECT, "value": "600"},
        ray_cluster(),
    ),
    case(
        "ray-storage-namespace-unique",
        "spec gcsFaultToleranceOptions externalStorageNamespace",
        "team-a.other",
        "team-a.it",
        ray_cluster("other"),
        ray_cluster(),
    ),
]

REDIS_POD = "spec template spec"

REDIS = [
    case("redis-persistent", "spec volumeClaimTemplates", [{"metadata": {"name": "data"}}], MISSING, redis(), budget()),
    case("redis-topology", "spec replicas", 5, 1, redis(), budget()),
    case("redis-spread", f"{REDIS_POD} topologySpreadConstraints", [{"maxSkew": 1}], MISSING, redis(), budget()),
    case("redis-noeviction", CONF, "", 'MaxMemory-Policy "allkeys-lru"', redis_conf("")),
    case("redis-aof", CONF, "", "appendonly 'no'", redis_conf("")),
    case("redis-password", CONF, "requirepass\t$PASSWORD", "requirepass\thunter2", redis_conf("")),
    case("redis-pdb", "spec selector", {}, MISSING, redis(), budget(), of=1),
    case("redis-pdb", f"{EXPRESSION} operator", "In", "NotIn", redis(), BUDGET, of=1),
    case("redis-pdb", f"{EXPRESSION} operator", "Exists", "DoesNotExist", redis(), BUDGET, of=1),
    case("redis-pdb", "spec selector matchLabels", {"app": "redis"}, {"app": "valkey"}, redis(), budget(), of=1),
    case("redis-noeviction", f"{REDIS_POD} containers 0 args 1", "noeviction", "allkeys-lru", redis(), budget()),
    case(
        "redis-noeviction",
        "data redis.conf",
        "maxmemory-policy noeviction",
        "maxmemory 1gb\nmaxmemory-policy volatile-ttl",
        redis_conf(""),
    ),
    case("redis-aof", f"{REDIS_POD} containers 0 args 3", "yes", "no", redis(), budget()),
    case("redis-password", "data redis.conf", "port 6379", "requirepass hunter2", redis_conf("")),
    case("redis-password", "data redis.conf", "aclfile /a", "protected-mode no", redis_conf("")),
    case("redis-password", "data redis.conf", "user a on >$P", "user default on nopass ~* +@all", redis_conf("")),
    case("redis-password", f"{REDIS_POD} containers 0 args", ["redis-cli", "ping"], MISSING, redis(), budget()),
    case("redis-password", f"{REDIS_POD} containers 0 args 5", "$(P)", "", with_password(), budget()),
    case(
        "redis-password",
        f"{REDIS_POD} containers 0 args",
        ["sh", "-c", 'redis-server --requirepass "$P"'],
        ["sh", "-c", "redis-server --requirepass hunter2"],
        redis(),
        budget(),
    ),
    case(
        "redis-password",
        f"{REDIS_POD} containers 0 env 0",
        {"name": "REDIS_PASSWORD_FILE", "value": "/secrets/password"},
        {"name": "ALLOW_EMPTY_PASSWORD", "value": "yes"},
        redis(),
        budget(),
    ),
]

QUEUES = [
    case("queue-guarantee-fits", "spec guarantee resource nvidia.com/gpu", "8", "9", queue("research")),
    case("queue-parent-exists", "spec parent", "root", "research", queue("it")),
    case(
        "queue-children-fit",
        "spec guarantee resource cpu",
        "4",
        "5",
        queue("child", parent="research"),
        queue("research", guarantee={"resource": {"cpu": "4"}}),
    ),
    case("queue-has-limit", "spec capability", {"cpu": "1"}, MISSING, queue("it")),
    case("ray-queue-exists", QUEUE, "research", "typo", ray_cluster(), queue("research")),
    case(
        "ray-gang-fits-queue", f"{GROUP} minReplicas", 8, 9, ray_cluster(**{"volcano.sh/queue-name": "it"}), queue("it")
    ),
    case("ray-gang-fits-queue", "spec capability cpu", "36", "35", queue("it"), in_queue_it(minReplicas=8)),
    case("ray-gang-fits-queue", "spec capability memory", "16Gi", "15Gi", queue("it"), in_queue_it(minReplicas=1)),
    case("volcano-job-gang", "spec minAvailable", 2, 3, volcano_job()),
    case("volcano-job-scheduler", "spec schedulerName", MISSING, "default-scheduler", volcano_job()),
    case("ray-one-scheduler", QUEUE, MISSING, "research", ray_cluster(**{"kueue.x-k8s.io/queue-name": "gpus"})),
    case("ray-kueue-job-ends", KUEUE, MISSING, "gpus", ray_job(shutdownAfterJobFinishes=False)),
]

CASES = [*RAY, *SPEC, *ACCEPTED, *WORKS, *SCALING, *TOLERANCE, *REDIS, *QUEUES]
