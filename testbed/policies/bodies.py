"""Objects that meet every rule. A case changes one place in them."""

import copy
from typing import Any

from core.body import Body

CONTAINER: Body = {
    "name": "main",
    "image": "registry.example.com/main:1.2.3@sha256:" + "a" * 64,
    "env": [{"name": "MODE", "value": "fast"}],
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    "readinessProbe": {"exec": {"command": ["true"]}},
    "livenessProbe": {"exec": {"command": ["true"]}},
    "ports": [{"containerPort": 80}],
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    },
}

POD_SPEC: Body = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "automountServiceAccountToken": False,
    "containers": [CONTAINER],
    "volumes": [{"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
}


def body(api_version: str, kind: str, namespace: str | None = "team-a", **fields: Any) -> Body:
    """An object called `it`."""
    named = {"name": "it", **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": named, **copy.deepcopy(fields)}


def pod() -> Body:
    """A single pod."""
    return body("v1", "Pod", spec=POD_SPEC)


def template(**labels: str) -> Body:
    """A pod template."""
    return {"metadata": {"labels": labels or {"app": "it"}}, "spec": copy.deepcopy(POD_SPEC)}


def deployment() -> Body:
    """A Deployment of one pod."""
    return body("apps/v1", "Deployment", spec={"template": template()})


def ray_pod(name: str, **resources: str) -> Body:
    """The pod template of head or worker."""
    made = template()
    ray = made["spec"]["containers"][0]
    amounts = {"cpu": "4", "memory": "8Gi", **resources}
    ray.update(name=name, image="rayproject/ray:2.60.0@sha256:" + "b" * 64)
    ray["env"] = [{"name": "RAY_USE_TLS", "value": "1"}]
    ray["resources"] = {"requests": dict(amounts), "limits": dict(amounts)}
    made["spec"] |= {"priorityClassName": name, "restartPolicy": "Never", "terminationGracePeriodSeconds": 30}
    return made


def ray_spec() -> Body:
    """The spec of a RayCluster that scales, and whose GCS is fault tolerant."""
    worker = ray_pod("ray-worker", **{"nvidia.com/gpu": "1"})
    worker["spec"]["nodeSelector"] = {"gpu": "a100"}
    return {
        "rayVersion": "2.60.0",
        "authOptions": {"mode": "token"},
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            "version": "v2",
            "idleTimeoutSeconds": 300,
            "securityContext": copy.deepcopy(CONTAINER["securityContext"]),
        },
        "gcsFaultToleranceOptions": {
            "redisAddress": "rediss://redis:6379",
            "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}},
            "externalStorageNamespace": "team-a.it",
        },
        "headGroupSpec": {
            "serviceType": "ClusterIP",
            "rayStartParams": {"num-cpus": "0"},
            "template": ray_pod("ray-head"),
        },
        "workerGroupSpecs": [
            {
                "groupName": "gpus",
                "replicas": 0,
                "minReplicas": 0,
                "maxReplicas": 8,
                "rayStartParams": {},
                "template": worker,
            }
        ],
    }


def ray_cluster(name: str = "it", **labels: str) -> Body:
    """A RayCluster."""
    return body("ray.io/v1", "RayCluster", spec=ray_spec(), metadata={"name": name, "labels": labels})


def ray_cluster_without(key: str) -> Body:
    """A RayCluster without this field of the spec."""
    made = ray_cluster()
    del made["spec"][key]
    return made


def head_that_works() -> Body:
    """A RayCluster whose head runs tasks on CPUs and GPUs, and has no priority."""
    made = ray_cluster()
    head = made["spec"]["headGroupSpec"]
    head |= {"rayStartParams": {}, "template": ray_pod("ray-head", **{"nvidia.com/gpu": "4"})}
    del head["template"]["spec"]["priorityClassName"]
    return made


def ray_job(**fields: Any) -> Body:
    """A RayJob that deletes its cluster at its end."""
    spec = {
        "entrypoint": "python train.py",
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": 600,
        "activeDeadlineSeconds": 3600,
        "rayClusterSpec": ray_spec(),
        "submitterPodTemplate": template(),
        **fields,
    }
    spec["submitterPodTemplate"]["spec"]["restartPolicy"] = "Never"
    return body("ray.io/v1", "RayJob", spec=spec)


def ray_service() -> Body:
    """A RayService."""
    made = body(
        "ray.io/v1",
        "RayService",
        spec={"serveConfigV2": "applications: [{import_path: 'chat:app'}]", "rayClusterConfig": ray_spec()},
    )
    [ray] = made["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"]
    ray["ports"] = [{"name": "serve", "containerPort": 8000}]
    return made


def redis() -> Body:
    """A StatefulSet of three nodes of Redis."""
    pods = template(app="redis")
    pods["spec"]["containers"][0] |= {
        "image": "redis:8.2.1",
        "args": ["--maxmemory-policy", "noeviction", "--appendonly", "yes", "--aclfile", "/acl/users.acl"],
    }
    pods["spec"]["topologySpreadConstraints"] = [{"topologyKey": "kubernetes.io/hostname"}]
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    return body("apps/v1", "StatefulSet", spec={"replicas": 3, "template": pods, "volumeClaimTemplates": claims})


def budget() -> Body:
    """The PodDisruptionBudget of that Redis."""
    return body(
        "policy/v1",
        "PodDisruptionBudget",
        spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": "redis"}}},
    )


def redis_conf(text: str) -> Body:
    """A ConfigMap with a file of Redis'."""
    return body("v1", "ConfigMap", data={"redis.conf": text})


def queue(name: str, **spec: Any) -> Body:
    """A Queue of Volcano's."""
    fields = {"capability": {"nvidia.com/gpu": "8"}, **spec}
    return body("scheduling.volcano.sh/v1beta1", "Queue", None, metadata={"name": name}, spec=fields)


def network_policy(name: str, selector: Body, **spec: Any) -> Body:
    """A NetworkPolicy."""
    fields = {"podSelector": selector, **spec}
    return body("networking.k8s.io/v1", "NetworkPolicy", metadata={"name": name}, spec=fields)


def default_deny() -> Body:
    """Denies all traffic in both directions."""
    return network_policy("default-deny", {}, policyTypes=["Ingress", "Egress"])


def opened(*ports: int) -> Body:
    """All pods may reach these ports."""
    allowed = [{"port": port, "protocol": "UDP" if port == 53 else "TCP"} for port in ports]
    return network_policy("out", {}, policyTypes=["Egress"], egress=[{"ports": allowed}])


def for_ray(**spec: Any) -> Body:
    """A NetworkPolicy of pods of Ray."""
    fields = {"policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "ui"}}}]}]}
    return network_policy("ray", {"matchLabels": {"ray.io/cluster": "it"}}, **{**fields, **spec})


def role(kind: str = "Role", **fields: Any) -> Body:
    """A Role of one rule."""
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], **fields}
    namespace = "team-a" if kind == "Role" else None
    return body("rbac.authorization.k8s.io/v1", kind, namespace, rules=[rule])


def binding(kind: str = "RoleBinding") -> Body:
    """Binds the Role to the account `ray`."""
    return body(
        "rbac.authorization.k8s.io/v1",
        kind,
        roleRef={"kind": kind.removesuffix("Binding"), "name": "it"},
        subjects=[{"kind": "ServiceAccount", "name": "ray", "namespace": "team-a"}],
    )


def namespace() -> Body:
    """A Namespace that enforces the strictest level."""
    level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    return body("v1", "Namespace", None, metadata={"name": "team-a", "labels": {"owner": "research", **level}})


def job(api_version: str = "batch/v1", **spec: Any) -> Body:
    """A Job of Kubernetes'."""
    pods = template()
    pods["spec"]["restartPolicy"] = "Never"
    return body(api_version, "Job", spec={"ttlSecondsAfterFinished": 60, "template": pods, **spec})


def cron_job() -> Body:
    """A CronJob."""
    inner = {"spec": job()["spec"]}
    return body("batch/v1", "CronJob", spec={"concurrencyPolicy": "Forbid", "jobTemplate": inner})


def volcano_job() -> Body:
    """A Job of Volcano's with two pods."""
    tasks = [{"replicas": 2, "template": template()}]
    return body(
        "batch.volcano.sh/v1alpha1", "Job", spec={"schedulerName": "volcano", "minAvailable": 2, "tasks": tasks}
    )


def service(**spec: Any) -> Body:
    """A Service inside the cluster."""
    return body("v1", "Service", spec={"type": "ClusterIP", "selector": {"app": "it"}, **spec})


def ingress_without_tls() -> Body:
    """An Ingress without TLS."""
    return body("networking.k8s.io/v1", "Ingress", spec={"rules": [{"host": "ray.example.com"}]})


def ingress() -> Body:
    """An Ingress with TLS."""
    return body(
        "networking.k8s.io/v1",
        "Ingress",
        spec={"rules": [{"host": "ray.example.com"}], "tls": [{"hosts": ["ray.example.com"], "secretName": "ray"}]},
    )


def cml_cluster() -> Body:
    """A cluster on Cloudera ML."""
    group = {"runtime": "docker.example.com/ray:2.60.0", "env": {"HF_HOME": "/home/cdsw/models"}, "replicas": 1}
    spec = {"rayVersion": "2.60.0", "head": group, "groups": {"workers": group}, "serve": ""}
    return body("cml/v2", "CmlRayCluster", None, spec=spec)
