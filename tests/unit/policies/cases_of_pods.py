"""Cases of the rules about pods, their containers and images, and jobs."""

from core.body import Body
from testbed.policies.bodies import body, cron_job, deployment, job, namespace, pod, ray_cluster, ray_job, template
from testbed.policies.case import MISSING, case

C = "spec containers 0"
SAFE = "net.ipv4.tcp_syncookies"
DIGEST = "@sha256:" + "c" * 64


def sysctls() -> Body:
    """A pod with a list of sysctls."""
    made = pod()
    made["spec"]["securityContext"]["sysctls"] = [{}]
    return made


PODS = [
    case("pod-nonroot", "spec securityContext runAsNonRoot", True, MISSING, pod()),
    case("pod-nonroot", f"{C} securityContext runAsUser", 1000, 0, pod()),
    case("pod-no-privesc", f"{C} securityContext allowPrivilegeEscalation", False, MISSING, pod()),
    case(
        "pod-no-privesc",
        "spec autoscalerOptions securityContext allowPrivilegeEscalation",
        False,
        True,
        ray_cluster(),
    ),
    case("pod-drop-all", f"{C} securityContext capabilities drop", ["ALL"], ["NET_RAW"], pod()),
    case(
        "pod-no-added-capabilities",
        f"{C} securityContext capabilities add",
        ["NET_BIND_SERVICE"],
        ["SYS_PTRACE"],
        pod(),
    ),
    case(
        "pod-no-added-capabilities",
        f"{C} securityContext capabilities add",
        ["SYS_PTRACE"],
        ["SYS_ADMIN"],
        pod(),
        options={"allowed": ["SYS_PTRACE"]},
    ),
    case("pod-seccomp", "spec securityContext seccompProfile type", "Localhost", "Unconfined", pod()),
    case("pod-no-privileged", f"{C} securityContext privileged", False, True, pod()),
    case("pod-no-host", "spec hostNetwork", False, True, pod()),
    case("pod-no-host", "spec hostPID", MISSING, True, pod()),
    case("pod-no-host-ports", f"{C} ports 0 hostPort", MISSING, 8265, pod()),
    case("pod-no-host-path", "spec volumes 0 hostPath path", MISSING, "/etc", pod()),
    case("volume-no-host-path", "spec hostPath path", MISSING, "/etc", body("v1", "PersistentVolume", spec={})),
    case(
        "pod-no-host-path",
        "spec volumes 0 hostPath path",
        "/mnt/scratch/a",
        "/mnt/scratches",
        pod(),
        options={"allowed": ["/mnt/scratch/"]},
    ),
    case("pod-readonly-root", f"{C} securityContext readOnlyRootFilesystem", True, False, pod()),
    case("pod-proc-mount", f"{C} securityContext procMount", "Default", "Unmasked", pod()),
    case("pod-requests", f"{C} resources requests cpu", "500m", MISSING, pod()),
    case(
        "pod-requests",
        "spec template spec containers 0 resources",
        {"limits": {"cpu": "1", "memory": "1Gi"}},
        {},
        job(),
    ),
    case(
        "pod-memory-limit",
        "spec workerGroupSpecs 0 template spec containers 0 resources requests memory",
        "8192Mi",
        "4Gi",
        ray_cluster(),
    ),
    case("pod-probes", "spec template spec containers 0 readinessProbe", {"exec": {}}, MISSING, deployment()),
    case(
        "pod-no-plain-secret",
        f"{C} env 0",
        {"name": "HF_TOKEN_PATH", "value": "/t"},
        {"name": "HF_TOKEN", "value": "x"},
        pod(),
    ),
    case(
        "pod-no-plain-secret",
        f"{C} env 0",
        {"name": "HF_TOKEN", "value": "<your-token>"},
        {"name": "HF_TOKEN", "value": "$your-token"},
        pod(),
    ),
    case("pod-no-plain-secret", f"{C} args", ["--token=$(TOKEN)"], [f"--token=hf_{'aB' * 17}"], pod()),
    case("pod-baseline", "spec securityContext sysctls 0", {"name": SAFE}, {"name": "kernel.msgmax"}, sysctls()),
    case("pod-baseline", f"{C} securityContext appArmorProfile type", "RuntimeDefault", "Unconfined", pod()),
    case("pod-baseline", f"{C} securityContext seLinuxOptions type", "container_t", "spc_t", pod()),
    case("pod-baseline", f"{C} livenessProbe httpGet host", MISSING, "10.0.0.1", pod()),
    case(
        "pod-baseline",
        "spec template metadata annotations container.apparmor.security.beta.kubernetes.io/main",
        "runtime/default",
        "unconfined",
        deployment(),
    ),
    case("pod-memory-volume-limit", "spec volumes 0 emptyDir sizeLimit", "1Gi", MISSING, pod()),
    case("pod-binary-quantities", f"{C} resources limits memory", "64Gi", "64", pod()),
]

IMAGES = [
    case("img-no-latest", f"{C} image", "ray:2.60.0", "ray", pod()),
    case("img-no-latest", f"{C} image", f"ray{DIGEST}", "rayproject/ray:latest-gpu", pod()),
    case("img-said", f"{C} image", "ray:2.60.0", MISSING, pod()),
    case("img-digest", f"{C} image", f"ray:2.60.0{DIGEST}", "ray:2.60.0", pod()),
    case("img-digest", f"{C} image", f"ray@sha512:{'c' * 128}", "ray:2.60.0", pod()),
    case(
        "img-registry",
        f"{C} image",
        "rayproject/ray:2.60.0",
        "quay.io/someone/ray:2.60.0",
        pod(),
        options={"allowed": ["docker.io/rayproject"]},
    ),
    case("img-no-bitnami", f"{C} image", "valkey/valkey:9.0.0", "docker.io/bitnamilegacy/redis:7.4", pod()),
]

JOBS = [
    case("ray-job-ttl", "spec shutdownAfterJobFinishes", True, False, ray_job()),
    case("ray-job-ttl", "spec ttlSecondsAfterFinished", 60, 100_000, ray_job()),
    case("ray-job-deletion", "spec deletionStrategy deletionRules", MISSING, [{"policy": "DeleteCluster"}], ray_job()),
    case("ray-job-deadline", "spec activeDeadlineSeconds", 60, MISSING, ray_job()),
    case("ray-job-has-cluster", "spec clusterSelector", {"ray.io/cluster": "it"}, {"name": "it"}, ray_job()),
    case("ray-job-entrypoint", "spec entrypoint", "python a.py", MISSING, ray_job()),
    case(
        "ray-job-entrypoint",
        "spec submitterPodTemplate spec containers 0 command",
        ["submit"],
        MISSING,
        ray_job(entrypoint=""),
    ),
    case("ray-job-suspend", "spec shutdownAfterJobFinishes", True, False, ray_job(suspend=True)),
    case("ray-job-submitter", "spec submitterPodTemplate", template(), MISSING, ray_job(), namespace()),
    case("ray-job-submitter", "spec submissionMode", "HTTPMode", "SidecarMode", ray_job(), namespace()),
    case(
        "ray-job-submitter",
        "spec submitterPodTemplate spec securityContext runAsNonRoot",
        True,
        MISSING,
        ray_job(),
        namespace(),
    ),
    case("ray-job-backoff", "spec submissionMode", "K8sJobMode", "InteractiveMode", ray_job(backoffLimit=2)),
    case("job-ttl", "spec ttlSecondsAfterFinished", 60, MISSING, job()),
    case("job-cron-concurrency", "spec concurrencyPolicy", "Replace", "Allow", cron_job()),
    case("job-restart", "spec jobTemplate spec template spec restartPolicy", "OnFailure", "Always", cron_job()),
    case("job-restart", "spec submitterPodTemplate spec restartPolicy", MISSING, "Always", ray_job()),
]

CASES = [*PODS, *IMAGES, *JOBS]
