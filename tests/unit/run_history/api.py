"""An API server and a dashboard for the program, in memory: paths and their answers."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from components.payloads.run_history.api import ApiServer
from components.payloads.run_history.collector import Collector
from components.payloads.run_history.configured import Configured
from components.payloads.run_history.record import seconds
from components.payloads.run_history.store import Store
from components.run_history.manifests import redaction

NAMESPACE = "team-a"

BEGIN, HOUR = seconds("2026-05-28T20:00:10Z"), 3600.0
"""When the job `train` begins, and seconds."""

ID = "train.uid-of-train"
"""The name of its record."""

REDACTION = redaction()


class Cluster(ApiServer):
    """Objects of a namespace. What does not exist raises OSError, as 404 does."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {"rayjobs": [], "rayclusters": [], "pods": [], "events": []}
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []

    def read(self, path: str) -> Any:
        """A list, in pages of one object, or a single object."""
        self.asked.append(path)
        plain, _, query = path.partition("?")
        listed = self.objects.get(plain.rpartition("/")[2])
        if listed is None:
            return self._answer(path)
        if "job-name" in query:
            name = query.rpartition("%3D")[2]
            listed = [each for each in listed if each["metadata"]["labels"].get("batch.kubernetes.io/job-name") == name]
        at = int(query.partition("continue=")[2] or 0)
        more = {"continue": str(at + 1)} if at + 1 < len(listed) else {}
        return {"metadata": more, "items": listed[at : at + 1]}

    def read_end(self, path: str, size: int) -> bytes:
        """The end of a log."""
        self.asked.append(path)
        answer: bytes = self._answer(path.partition("?")[0])
        return answer[-size:]

    def _answer(self, path: str) -> Any:
        if path not in self.answers:
            raise OSError(f"HTTP Error 404: {path}")
        return self.answers[path]


def collector(cluster: ApiServer, folder: Path, **configured: Any) -> Collector:
    """The program, with the records of the folder."""
    plain = {"retention_days": 30, "log_bytes": 1024, "read_heads": False, "redaction": REDACTION}
    settings = Configured(NAMESPACE, str(folder), **{**plain, **configured})
    return Collector(cluster, Store(folder / NAMESPACE), settings)


CODE = "gcs://_ray_pkg_f0cdcce0d917935bff95f33613e9f533c9e8fd39.zip"
"""The code that a run has brought."""


def rayjob(name: str = "train", **status: Any) -> dict[str, Any]:
    """A RayJob with a cluster of its own."""
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-of-{name}",
            "creationTimestamp": "2026-05-28T20:00:00Z",
            "labels": {"ray-platform/job-template": "finetune", "ray-platform/job-size": "large"},
            "annotations": {"ray-platform/created-by": "bob", "ray-platform/code": CODE},
        },
        "spec": {
            "entrypoint": "python train.py --hf-token hunter2 --epochs=3",
            "runtimeEnvYAML": "env_vars: {HF_TOKEN: hunter2, EPOCHS: '3'}",
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {
                "authOptions": {"mode": "token"},
                "headGroupSpec": {"template": {"spec": {"containers": [{"image": "rayproject/ray:2.60.0"}]}}},
            },
        },
        "status": {
            "jobId": f"{name}-1",
            "rayClusterName": f"{name}-abcde",
            "jobStatus": "RUNNING",
            "jobDeploymentStatus": "Running",
            "startTime": "2026-05-28T20:00:10Z",
            **status,
        },
    }


def standing(name: str = "training", **spec: Any) -> dict[str, Any]:
    """A RayCluster of nobody's job, with a token."""
    head = {"template": {"spec": {"containers": [{"image": "rayproject/ray:2.60.0"}]}}}
    spec = {"authOptions": {"mode": "token"}, "headGroupSpec": head, **spec}
    return {"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": spec}


def head_of(name: str, address: str) -> dict[str, Any]:
    """Its head, whose dashboard is at `host:port`."""
    host, _, port = address.rpartition(":")
    labels = {"ray.io/cluster": name, "ray.io/node-type": "head"}
    container = {"name": "ray-head", "ports": [{"name": "dashboard", "containerPort": int(port)}]}
    return {
        "metadata": {"name": f"{name}-head", "uid": f"uid-of-{name}-head", "labels": labels},
        "spec": {"containers": [container]},
        "status": {"podIP": host, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def give_token(cluster: Cluster, secret: str, token: str) -> None:
    """Creates the Secret with the token of a RayCluster."""
    data = {"auth_token": base64.b64encode(token.encode()).decode()}
    cluster.answers[f"/api/v1/namespaces/{NAMESPACE}/secrets/{secret}"] = {"data": data}


ENDED = {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete", "endTime": "2026-05-28T21:00:10Z"}


def worker(uid: str, gpus: int, bound: str = "2026-05-28T20:00:10Z", **status: Any) -> dict[str, Any]:
    """A pod of the RayCluster of the job `train`."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}
    amounts = {"limits": {"cpu": "1", "nvidia.com/gpu": str(gpus)}}
    return {
        "metadata": {
            "name": f"train-abcde-{uid}",
            "uid": uid,
            "labels": {"ray.io/cluster": "train-abcde", "ray.io/group": "gpu", "ray.io/node-type": "worker"},
        },
        "spec": {"containers": [{"name": "ray-worker", "resources": amounts}]},
        "status": {"phase": "Running", "conditions": [scheduled], **status},
    }


def submitter(cluster: Cluster, log: bytes, job: str = "train", ended: bool = True) -> None:
    """The pod that submits the job, with its log."""
    state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
    name = f"{job}-x7k2p"
    labels = {"batch.kubernetes.io/job-name": job}
    cluster.objects["pods"].append(
        {
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-05-28T20:00:30Z", "labels": labels},
            "spec": {"containers": [{"name": "ray-job-submitter"}]},
            "status": {"containerStatuses": [{"name": "ray-job-submitter", "state": state}]},
        }
    )
    cluster.answers[f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/log"] = log


def only(records: Iterable[Any]) -> Any:
    """The only record, as JSON keeps it."""
    (found,) = records
    return json.loads(json.dumps(found))


def record(folder: Path) -> Any:
    """The only record in the folder, as a new program reads it."""
    store = collector(Cluster(), folder).store
    return only(map(store.whole, store.records))
