"""What people and code may try so that it reaches other tenants, and why the API server refuses it."""

from copy import deepcopy
from typing import Any

from tests.engine.attacks import CRITICAL, EXTERNAL, SUBMITTER, Attack

OF_OTHERS = {"topologyKey": "kubernetes.io/os", "labelSelector": {"matchLabels": {"ray.io/node-type": "worker"}}}
"""Against all pods of one system with this label, in the namespaces that are added."""


def _head(cluster: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    return pod


def _workers(cluster: dict[str, Any]) -> dict[str, Any]:
    group: dict[str, Any] = cluster["spec"]["workerGroupSpecs"][0]
    return group


def _with_head(**pod: Any) -> Attack:
    return lambda cluster: _head(cluster).update(pod)


def _with_workers(**group: Any) -> Attack:
    return lambda cluster: _workers(cluster).update(group)


def _with_service(metadata: dict[str, Any], **spec: Any) -> Attack:
    made = {"metadata": metadata, "spec": {"ports": [{"name": "dashboard", "port": 8265}], **spec}}
    return lambda cluster: cluster["spec"]["headGroupSpec"].update(headService=made)


def _with_volume(**volume: Any) -> Attack:
    return lambda cluster: _head(cluster).setdefault("volumes", []).append({"name": "more", **volume})


def ephemeral(metadata: dict[str, Any] | None = None, **claim: Any) -> dict[str, Any]:
    """A volume with a claim that the pod brings along."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **claim}
    return {"ephemeral": {"volumeClaimTemplate": {"metadata": metadata or {}, "spec": spec}}}


def _noted(key: str) -> Attack:
    def attack(cluster: dict[str, Any]) -> None:
        _workers(cluster)["template"].setdefault("metadata", {}).update(annotations={key: "10.0.0.1"})

    return attack


NEIGHBOURS = " would decide on which nodes pods of other tenants run"
LEAVES = " leaves the nodes or the queue of tenants"
OUTSIDE = " leads to the outside, or to Services of others"
FILES = " may have files of others"
ANOTHERS = " is not for this namespace"
FOR_EVER = "finalizer example.com/never keeps the object"
CONTROLLERS = " of a pod may give it addresses"


def _forty_groups(cluster: dict[str, Any]) -> None:
    """A large RayCluster, with much of all that is judged. The API server limits what a rule may cost
    (celconfig.PerCallLimit)."""
    group = _workers(cluster)
    pod = group["template"]["spec"]
    pod["volumes"] = [{"name": f"volume-{number}", **ephemeral()} for number in range(20)]
    pod["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}] * 20
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [OF_OTHERS] * 10}
    pod["affinity"] = {"podAffinity": terms, "podAntiAffinity": terms}
    cluster["spec"]["workerGroupSpecs"] = [{**group, "groupName": f"group-{number}"} for number in range(40)]


REACHING: dict[str, tuple[Attack, str]] = {
    "nothing, in forty groups": (_forty_groups, ""),
    "a head that keeps workers of a tenant away": (
        _with_head(
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{**OF_OTHERS, "namespaces": ["team-foreign"]}]
                }
            }
        ),
        f"affinity to pods of team-foreign{NEIGHBOURS}",
    ),
    "a head that keeps all workers away": (
        _with_head(
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{**OF_OTHERS, "namespaceSelector": {}}]
                }
            }
        ),
        f"affinity to pods of namespaces by their labels{NEIGHBOURS}",
    ),
    "workers beside those of a tenant": (
        lambda cluster: _workers(cluster)["template"]["spec"].update(
            affinity={
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {**OF_OTHERS, "namespaces": ["team-foreign"]}}
                    ]
                }
            }
        ),
        f"affinity to pods of team-foreign{NEIGHBOURS}",
    ),
    "workers apart from each other": (
        _with_head(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [OF_OTHERS]}}),
        "",
    ),
    "an amount that hides all RayClusters from the operator": (_with_head(overhead={"cpu": "1e1.5"}), "should match"),
    "an amount that takes seconds to read": (
        _with_head(overhead={"cpu": "1" * 10**5}),
        "Too long: may not be more than 64",
    ),
    "a port that does": (
        lambda cluster: _head(cluster)["containers"][0].update(livenessProbe={"httpGet": {"port": 2**31}}),
        "should be less than or equal to",
    ),
    "a node by its name": (_with_head(nodeName="a100-0"), f"nodeName a100-0{LEAVES}"),
    "another scheduler": (_with_head(schedulerName="mine"), f"schedulerName mine{LEAVES}"),
    "all taints": (_with_head(tolerations=[{"operator": "Exists"}]), f"a toleration of all taints{LEAVES}"),
    "a taint of others": (
        _with_head(tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]),
        f"a toleration of node-role.kubernetes.io/control-plane{LEAVES}",
    ),
    "a taint of GPUs": (_with_head(tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]), ""),
    "an export of others": (
        _with_volume(nfs={"server": "nfs.example.com", "path": "/team-foreign"}),
        f"volume more (nfs){FILES}",
    ),
    "a driver's volume": (
        _with_volume(csi={"driver": "nfs.csi.k8s.io", "volumeAttributes": {"share": "/team-foreign"}}),
        f"volume more (csi){FILES}",
    ),
    "an existing volume": (
        _with_volume(**ephemeral(volumeName="of-team-foreign")),
        f"volume more (ephemeral){FILES}",
    ),
    "a volume of another class": (
        _with_volume(**ephemeral(storageClassName="gold")),
        f"volume more (ephemeral){FILES}",
    ),
    "a volume of another class, as before": (
        _with_volume(**ephemeral(metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}})),
        f"volume more (ephemeral){FILES}",
    ),
    "a volume without a class": (_with_volume(**ephemeral(storageClassName="")), f"volume more (ephemeral){FILES}"),
    "a new volume of the default class": (_with_volume(**ephemeral()), ""),
    "a port to the outside": (
        lambda cluster: cluster["spec"]["headGroupSpec"].update(serviceType="LoadBalancer"),
        f"Service of type LoadBalancer{OUTSIDE}",
    ),
    "a port of the nodes": (_with_service({}, type="NodePort"), f"Service of type NodePort{OUTSIDE}"),
    "another tenant's head": (
        _with_service({}, type="ExternalName", externalName="training-head-svc.team-foreign.svc"),
        f"Service of type ExternalName{OUTSIDE}",
    ),
    "a name in DNS": (
        _with_service({"annotations": {"external-dns.alpha.kubernetes.io/hostname": "training.example.com"}}),
        "annotation external-dns.alpha.kubernetes.io/hostname of a Service may be a controller's",
    ),
    "a name in DNS, in short": (
        lambda cluster: cluster["spec"].update(
            headServiceAnnotations={"external-dns.alpha.kubernetes.io/hostname": "training.example.com"}
        ),
        "annotation external-dns.alpha.kubernetes.io/hostname of a Service may be a controller's",
    ),
    "the Service of another RayCluster": (
        _with_service({"name": "training-head-svc"}),
        "Service training-head-svc may be that of another RayCluster",
    ),
    "a Service of its own": (_with_service({"name": "adhoc-head", "annotations": {"note": "mine"}}), ""),
    "a Service that stays": (_with_service({"finalizers": ["example.com/never"]}), FOR_EVER),
    "a head that stays": (
        lambda cluster: (
            cluster["spec"]["headGroupSpec"]["template"]
            .setdefault("metadata", {})
            .update(finalizers=["example.com/never"])
        ),
        FOR_EVER,
    ),
    "an address of another pod": (
        _noted("cni.projectcalico.org/ipAddrs"),
        f"annotation cni.projectcalico.org/ipAddrs{CONTROLLERS}",
    ),
    "a note on a pod": (_noted("note"), ""),
    "a pod that stops in a year": (
        _with_head(terminationGracePeriodSeconds=31536000),
        "terminationGracePeriodSeconds 31536000 keeps nodes from being drained",
    ),
    "a probe of another tenant's head": (
        lambda cluster: _head(cluster)["containers"][0].update(
            startupProbe={"httpGet": {"host": "training-head-svc.team-foreign", "port": 8265}}
        ),
        "a probe or lifecycle hook of training-head-svc.team-foreign lets the kubelet connect there",
    ),
    "workers that stay": (
        lambda cluster: (
            _workers(cluster)["template"].setdefault("metadata", {}).update(finalizers=["example.com/never"])
        ),
        FOR_EVER,
    ),
    "a pod of others to delete": (
        _with_workers(scaleStrategy={"workersToDelete": ["ray-run-history-0"]}),
        "pod ray-run-history-0 among workersToDelete is no worker of this group",
    ),
    "two billion workers": (_with_workers(replicas=2**31 - 1, maxReplicas=2**31 - 1), "2147483647 pods are too many"),
    "workers of too many hosts": (
        _with_workers(replicas=2**16, maxReplicas=2**16, numOfHosts=2**16),
        "4294967296 pods are too many",
    ),
    "many groups of many workers": (
        lambda cluster: cluster["spec"].update(
            workerGroupSpecs=[
                {**_workers(cluster), "groupName": f"group-{number}", "replicas": 6000, "maxReplicas": 6000}
                for number in range(2)
            ]
        ),
        "12000 pods are too many",
    ),
    "a queue of Kueue": (
        lambda cluster: cluster["metadata"].update(labels={"kueue.x-k8s.io/queue-name": "research"}),
        f"scheduler kueue{ANOTHERS}",
    ),
    "a queue of Volcano": (
        lambda cluster: cluster["metadata"].update(labels={"volcano.sh/queue-name": "research"}),
        f"scheduler volcano{ANOTHERS}",
    ),
    "workers in a queue of Kueue": (
        lambda cluster: (
            _workers(cluster)["template"]
            .setdefault("metadata", {})
            .update(labels={"kueue.x-k8s.io/queue-name": "research"})
        ),
        f"scheduler kueue{ANOTHERS}",
    ),
    "labels without end": (
        lambda cluster: cluster["metadata"].update(labels={f"{number}": "a" * 60 for number in range(300)}),
        "characters are too long",
    ),
}
"""What reaches beyond the namespace, or is too much for what all tenants share."""


def with_spec(**spec: Any) -> Attack:
    """Sets fields of an object's spec."""
    return lambda body: body["spec"].update(spec)


LONG = "a" * 2**15 + "a"

OF_KINDS: dict[str, tuple[str, Attack, str]] = {
    "a Service to another tenant's": (
        "RayService",
        with_spec(serveService={"spec": {"type": "ExternalName", "externalName": "serve.team-foreign.svc"}}),
        f"Service of type ExternalName{OUTSIDE}",
    ),
    "the Service of a head": (
        "RayService",
        with_spec(serveService={"metadata": {"name": "training-head-svc"}}),
        "Service training-head-svc may be that of another RayCluster",
    ),
    "a Service that stays": (
        "RayService",
        with_spec(serveService={"metadata": {"finalizers": ["example.com/never"]}}),
        FOR_EVER,
    ),
    "a Gateway": (
        "RayService",
        with_spec(
            upgradeStrategy={
                "type": "NewClusterWithIncrementalUpgrade",
                "clusterUpgradeOptions": {"gatewayClassName": "istio", "stepSizePercent": 10, "intervalSeconds": 30},
            }
        ),
        "gatewayClassName istio may be a Gateway for all hosts",
    ),
    "a configuration without end": ("RayService", with_spec(serveConfigV2=LONG * 9), "is too long: use at most"),
    "an entrypoint without end": ("RayJob", with_spec(entrypoint=LONG), "entrypoint of 32769 is too long"),
    "an environment without end": ("RayJob", with_spec(runtimeEnvYAML=LONG), "runtimeEnvYAML of 32769 is too long"),
    "an id without end": ("RayJob", with_spec(jobId=LONG), "jobId of 32769 is too long"),
    "metadata without end": (
        "RayJob",
        with_spec(metadata={"a": LONG[:20000], "b": LONG[:20000]}),
        "metadata is too long",
    ),
    "a job in a schedule": (
        "RayCronJob",
        lambda body: body["spec"]["jobTemplate"].update(entrypoint=LONG),
        "entrypoint of 32769 is too long",
    ),
    "the name of somebody else": (
        "RayJob",
        lambda body: body["metadata"].update(annotations={"ray-platform/created-by": "alice"}),
        "annotation ray-platform/created-by alice: it is the name of the user who creates it",
    ),
    "a submitter that stays": (
        "RayJob",
        with_spec(submitterPodTemplate={"metadata": {"finalizers": ["example.com/never"]}, **SUBMITTER}),
        FOR_EVER,
    ),
    "a submitter on a node": (
        "RayJob",
        with_spec(submitterPodTemplate={"spec": {**SUBMITTER["spec"], "nodeName": "a100-0"}}),
        f"nodeName a100-0{LEAVES}",
    ),
    "a pod to delete": (
        "RayJob",
        lambda body: body["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].update(
            scaleStrategy={"workersToDelete": ["ray-run-history-0"]}
        ),
        "pod ray-run-history-0 among workersToDelete is no worker of this group",
    ),
}
"""What a Ray cluster admin may try with other kinds, and why it is refused."""


def _service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "own"}, "spec": spec}


def _pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own"}, "spec": {**SUBMITTER["spec"], **spec}}


def _deployment(**spec: Any) -> dict[str, Any]:
    labels = {"app": "own"}
    pod = {"metadata": {"labels": labels}, "spec": {**SUBMITTER["spec"], "restartPolicy": "Always", **spec}}
    made = {"selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "own"}, "spec": made}


PORTS = [{"port": 8265}]

FOREIGN = {"volumes": [{"name": "more", "csi": {"driver": "nfs.csi.k8s.io"}}]}

OF_CODE: dict[str, tuple[dict[str, Any], str]] = {
    "a Service": (_service(ports=PORTS), ""),
    "an address of others": (_service(ports=PORTS, externalIPs=["192.0.2.1"]), "externalIPs take the traffic"),
    "a port to the outside": (_service(ports=PORTS, type="LoadBalancer"), f"Service of type LoadBalancer{OUTSIDE}"),
    "another tenant's head": (
        _service(type="ExternalName", externalName="training-head-svc.team-access.svc"),
        f"Service of type ExternalName{OUTSIDE}",
    ),
    "a pod": (_pod(), ""),
    "a pod above all others": (_pod(**CRITICAL), "may evict pods of other tenants"),
    "a pod on a node": (_pod(nodeName="a100-0"), f"nodeName a100-0{LEAVES}"),
    "a pod with files of others": (_pod(**FOREIGN), f"volume more (csi){FILES}"),
    "a pod that stays": (
        {**_pod(), "metadata": {"name": "own", "finalizers": ["example.com/never"]}},
        FOR_EVER,
    ),
    "a Deployment": (_deployment(), ""),
    "a Deployment on a node": (_deployment(nodeName="a100-0"), f"nodeName a100-0{LEAVES}"),
    "a Deployment with files of others": (_deployment(**FOREIGN), f"volume more (csi){FILES}"),
    "a Deployment that stays": (
        {**_deployment(), "metadata": {"name": "own", "finalizers": ["example.com/never"]}},
        FOR_EVER,
    ),
    "a Deployment of too many pods": (
        {**_deployment(), "spec": {**_deployment()["spec"], "replicas": 10001}},
        "10001 pods are too many",
    ),
}
"""What code on Ray may try with the account of `rayDeployer`, and why it is refused."""


LABEL = {"ray-platform/created-by": "ray-deployer"}


def _labelled(body: dict[str, Any], **labels: str) -> dict[str, Any]:
    """The same with the label of what `rayDeployer` creates, and others, in its pods."""
    whole = deepcopy(body)
    pod = whole if whole["kind"] == "Pod" else whole["spec"]["template"]
    metadata = pod.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), **LABEL, **labels}
    return whole


def _claim(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "own", **(metadata or {})},
        "spec": {**asked, "storageClassName": "standard", **spec},
    }


def _of_apps(kind: str) -> dict[str, Any]:
    return {**_deployment(), "kind": kind}


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "own"},
    "spec": {"template": {"metadata": {}, **SUBMITTER}},
}

MISSING = "label ray-platform/created-by: ray-deployer is missing"
CONNECTIONS = " would give the pod the connections of others"
NEW_VOLUMES = " is not for claims of this account"
ONLY_OF_CODE = "label ray-platform/created-by=ray-deployer is only for pods and Deployments"

OF_DEPLOYERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a pod with the label": ("account", _labelled(_pod()), ""),
    "a Deployment with the label": ("account", _labelled(_deployment()), ""),
    "a pod without it": ("account", _pod(), MISSING),
    "a Deployment without it": ("account", _deployment(), MISSING),
    "a pod of a RayCluster": (
        "account",
        _labelled(_pod(), **{"ray.io/cluster": "training"}),
        f"label ray.io/cluster=training{CONNECTIONS}",
    ),
    "a Deployment of submitters": (
        "account",
        _labelled(_deployment(), **{"batch.kubernetes.io/job-name": "job"}),
        f"label batch.kubernetes.io/job-name=job{CONNECTIONS}",
    ),
    "a program of the platform": (
        "account",
        _labelled(_pod(), **{"app.kubernetes.io/name": "ray-run-history"}),
        f"labels app.kubernetes.io/name=ray-run-history{CONNECTIONS}",
    ),
    "a peer of the stack file": ("account", _labelled(_pod(), app="portal"), f"labels app=portal{CONNECTIONS}"),
    "a claim": ("account", _claim(), ""),
    "a claim with the label": ("account", _claim({"labels": LABEL}), ""),
    "a claim with the API server's finalizer": (
        "account",
        _claim({"finalizers": ["kubernetes.io/pvc-protection"]}),
        "",
    ),
    "a claim of another class": ("account", _claim(storageClassName="gold"), f"StorageClass gold{NEW_VOLUMES}"),
    "a claim of a volume": ("account", _claim(volumeName="of-others"), f"volumeName{NEW_VOLUMES}"),
    "a claim of a class in an annotation": (
        "account",
        _claim({"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}}),
        f"annotation volume.beta.kubernetes.io/storage-class{NEW_VOLUMES}",
    ),
    "a claim that stays": (
        "account",
        _claim({"finalizers": ["example.com/never"]}),
        f"finalizer example.com/never{NEW_VOLUMES}",
    ),
    "a person's pod": ("editor", _pod(), ""),
    "a person's pod with the label": ("editor", _labelled(_pod()), ONLY_OF_CODE),
    "a person's Deployment with the label": ("editor", _labelled(_deployment()), ONLY_OF_CODE),
    "a person's StatefulSet with the label": ("editor", _labelled(_of_apps("StatefulSet")), ONLY_OF_CODE),
    "a person's ReplicaSet with the label": ("editor", _labelled(_of_apps("ReplicaSet")), ONLY_OF_CODE),
    "a person's Job with the label": ("editor", _labelled(JOB), ONLY_OF_CODE),
    "a person's claim": ("editor", _claim(storageClassName="gold"), ""),
}
"""What is created where `rayDeployer` has `network` and `persistentVolumeClaims`, by its account or by a person with
Kubernetes' role `edit`, and why it is refused."""


def _with_label_of_group(cluster: dict[str, Any]) -> None:
    cluster["spec"]["workerGroupSpecs"][0]["labels"] = LABEL


def _with_label_of_head(cluster: dict[str, Any]) -> None:
    cluster["spec"]["headGroupSpec"]["template"].setdefault("metadata", {})["labels"] = LABEL


OF_LABELLED_RAY: dict[str, tuple[Attack, str]] = {
    "no label": (lambda cluster: None, ""),
    "a head with the label": (_with_label_of_head, ONLY_OF_CODE),
    "a group with the label": (_with_label_of_group, ONLY_OF_CODE),
}
"""RayClusters there, and why they are refused."""


OWN_WORKERS = "this account may only resize workers of its own RayCluster"

PODS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a worker's note": ("own", {"metadata": {"annotations": {"ray.io/ippr-status": "{}"}}}, ""),
    "another note": ("own", {"metadata": {"annotations": {"note": "mine"}}}, OWN_WORKERS),
    "another image": (
        "own",
        {"spec": {"containers": [{"name": "submitter", "image": "example.com/mine:1"}]}},
        OWN_WORKERS,
    ),
    "another RayCluster": ("own", {"metadata": {"labels": {"ray.io/cluster": "tokens"}}}, OWN_WORKERS),
    "another program": ("own", {"metadata": {"labels": {"app.kubernetes.io/name": "ray-run-history"}}}, OWN_WORKERS),
    "a worker of another RayCluster": ("foreign", {"metadata": {"annotations": {"ray.io/note": "1"}}}, OWN_WORKERS),
    "the run history": (
        "ray-run-history-0",
        {"spec": {"containers": [{"name": "ray-run-history", "image": "example.com/mine:1"}]}},
        OWN_WORKERS,
    ),
}
"""Patches of pods with the head's account of RayCluster `training`: pod, patch, and why it is refused."""


def worker_of(cluster: str, name: str) -> dict[str, Any]:
    """A worker of a RayCluster, on no node."""
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": "worker"}
    pod = _pod(nodeSelector={"example.com/none": "true"})
    return {**pod, "metadata": {"name": name, "labels": labels}}


def _of_redis(**spec: Any) -> dict[str, Any]:
    """A patch of the pods of Redis."""
    return {"spec": {"template": {"spec": spec}}}


OF_REDIS: dict[str, tuple[dict[str, Any], bool]] = {
    "more memory": (_of_redis(containers=[{"name": "redis", "resources": {"limits": {"memory": "4Gi"}}}]), True),
    "a restart": (
        {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-11-29"}}}}},
        True,
    ),
    "none at all": ({"spec": {"replicas": 0}}, True),
    "the operator's account": (_of_redis(serviceAccountName="kuberay-operator"), False),
    "another image": (_of_redis(containers=[{"name": "redis", "image": "example.com/mine:1"}]), False),
    "a command": (_of_redis(containers=[{"name": "redis", "command": ["sleep", "1d"]}]), False),
    "another container": (_of_redis(containers=[{"name": "mine", "image": "example.com/mine:1"}]), False),
    "an init container": (_of_redis(initContainers=[{"name": "mine", "image": "example.com/mine:1"}]), False),
    "another volume": (_of_redis(volumes=[{"name": "more", "secret": {"secretName": "other"}}]), False),
    "a note for controllers": (
        {"spec": {"template": {"metadata": {"annotations": {"cni.projectcalico.org/ipAddrs": "10.0.0.1"}}}}},
        False,
    ),
    "claims that go with it": ({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}}, False),
    "another label": ({"metadata": {"labels": {"app.kubernetes.io/part-of": "mine"}}}, False),
    "an object that stays": ({"metadata": {"finalizers": ["example.com/never"]}}, False),
}
"""Patches of Redis' StatefulSet, and whether a cluster admin may make them."""


EARLIER: dict[str, tuple[Attack, dict[str, Any], str]] = {
    "the same type of Service": (
        _with_service({}, type="ExternalName", externalName="a.example.com"),
        {"spec": {"suspend": True}},
        "",
    ),
    "another target": (
        _with_service({}, type="ExternalName", externalName="a.example.com"),
        {"spec": {"headGroupSpec": {"headService": {"spec": {"externalName": "training-head-svc.team-foreign.svc"}}}}},
        f"Service of type ExternalName{OUTSIDE}",
    ),
    "another address": (
        lambda cluster: cluster["spec"]["headGroupSpec"].update(headService=EXTERNAL),
        {"spec": {"headGroupSpec": {"headService": {"spec": {"externalIPs": ["192.0.2.1", "192.0.2.2"]}}}}},
        "192.0.2.2 among externalIPs take the traffic",
    ),
    "fewer addresses": (
        lambda cluster: cluster["spec"]["headGroupSpec"].update(
            headService={"spec": {**EXTERNAL["spec"], "externalIPs": ["192.0.2.1", "192.0.2.2"]}}
        ),
        {"spec": {"headGroupSpec": {"headService": {"spec": {"externalIPs": ["192.0.2.1"]}}}}},
        "",
    ),
    "another volume": (
        _with_volume(nfs={"server": "nfs.example.com", "path": "/team-access"}),
        {
            "spec": {
                "headGroupSpec": {
                    "template": {
                        "spec": {
                            "volumes": [{"name": "more", "nfs": {"server": "nfs.example.com", "path": "/team-foreign"}}]
                        }
                    }
                }
            }
        },
        f"volume more (nfs){FILES}",
    ),
}
"""What a RayCluster has from before, how a Ray cluster admin changes it, and why that is refused."""
