"""Simulates Ray's autoscalers. Ray's own code scales; when it does, and which workers are busy, is random.

In reality only Ray knows which workers are busy, and here only this module. Autoscalers only ever end idle workers.
"""

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes import client
from ray.autoscaler._private.kuberay.node_provider import IKubernetesHttpApiClient
from ray.autoscaler.v2.instance_manager.cloud_providers.kuberay.cloud_provider import KubeRayProvider
from ray.autoscaler.v2.instance_manager.node_provider import CloudInstance
from ray.core.generated.instance_manager_pb2 import NodeKind  # type: ignore[attr-defined]  # made when it is imported

# It logs each request, and each that the API server refuses.
logging.getLogger("ray.autoscaler").setLevel(logging.CRITICAL)

TURN_SECONDS = 0.2

SCALES = 0.1
"""Probability that a cluster scales in its turn, unless another is set."""

GROWS, GROWING_SECONDS = 4, 2.0
"""The number of times that each cluster scales at first, and the pause between them until its new pods run."""

BEGINS, ENDS = 0.4, 0.1
"""Probabilities, in its cluster's turn, that an idle worker becomes busy, and that a busy one becomes idle."""

RAY = ("ray.io", "v1")
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Worker:
    """A worker's pod."""

    cluster: str
    """`<namespace>/<name>`."""
    group: str
    pod: str


class ApiServer(IKubernetesHttpApiClient):
    """The API server as seen by the autoscaler of one RayCluster. It replaces Ray's HTTP client, which uses the address
    and the account of its own pod."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._namespace = namespace
        self._core, self._objects = client.CoreV1Api(api), client.CustomObjectsApi(api)
        self.set_replicas: dict[str, int] = {}
        """The replicas that were set last, by worker group."""
        self.ended: set[str] = set()
        """Pods that the autoscaler deleted."""
        self.patches = 0

    def get(self, path: str) -> dict[str, Any]:
        """`rayclusters/NAME`, or `pods?labelSelector=...`."""
        asked = urlsplit(path)
        kind, _, name = asked.path.partition("/")
        if kind == "rayclusters":
            found: Any = self._objects.get_namespaced_custom_object(*RAY, self._namespace, kind, name)
        else:
            [selector] = parse_qs(asked.query)["labelSelector"]
            answer: Any = self._core.list_namespaced_pod(
                self._namespace, label_selector=selector, _preload_content=False
            )
            found = json.loads(answer.data)
        return dict(found)

    def patch(self, path: str, payload: Any, content_type: str = JSON_PATCH) -> dict[str, Any]:
        """With the field manager of Ray's HTTP client, python-requests."""
        kind, _, name = path.partition("/")
        patched: Any = self._objects.patch_namespaced_custom_object(
            *(*RAY, self._namespace, kind, name, payload), field_manager="python-requests", _content_type=content_type
        )
        for step in payload:
            *_, place, field = step["path"].split("/")
            if field == "replicas":
                self.set_replicas[patched["spec"]["workerGroupSpecs"][int(place)]["groupName"]] = step["value"]
            else:
                self.ended.update(step["value"]["workersToDelete"])
        self.patches += 1
        return dict(patched)

    def delete(self, path: str) -> dict[str, Any]:
        """It would delete idle RayClusters; none of these is configured for that."""
        raise NotImplementedError(path)


class Autoscalers:
    """The autoscalers of several RayClusters, one of which has its turn at a time."""

    def __init__(self, api: client.ApiClient, draw: Random) -> None:
        self._api, self._draw = api, draw
        self._lock = threading.RLock()
        self._players: dict[str, tuple[ApiServer, KubeRayProvider]] = {}
        self._requests = 0
        self._failure: Exception | None = None
        self.scales = SCALES
        self.busy: set[Worker] = set()
        self.drained: set[str] = set()
        """Pods that take no new work."""
        self.lost: set[Worker] = set()
        """Workers whose pod was deleted while they were busy."""

    def take_over(self, names: Sequence[str]) -> None:
        """Lets only these RayClusters have turns from now on. Each grows a little."""
        with self._lock:
            self._players = {name: self._player(name) for name in names}
            self.busy = set()
            for _ in range(GROWS):
                for name in names:
                    self._turn(name, scales=1.0)
                time.sleep(GROWING_SECONDS)

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Turns run during the context."""
        ending = threading.Event()

        def play() -> None:
            while not ending.wait(TURN_SECONDS):
                with self._lock:
                    if self._players and self._failure is None:
                        self._play()

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    @contextmanager
    def still(self) -> Iterator[None]:
        """No turn runs during the context."""
        with self._lock:
            if self._failure:
                raise self._failure
            yield

    @property
    def set_replicas(self) -> Mapping[tuple[str, str], int]:
        """The replicas that were set last, by RayCluster and worker group."""
        return {
            (name, group): number
            for name, (api, _) in self._players.items()
            for group, number in api.set_replicas.items()
        }

    @property
    def ended(self) -> set[str]:
        """Pods that they have deleted."""
        return {pod for api, _ in self._players.values() for pod in api.ended}

    @property
    def patches(self) -> int:
        """The number of patches to the current RayClusters."""
        return sum(self.patched.values())

    @property
    def patched(self) -> Mapping[str, int]:
        """The number of patches to each of them."""
        return {name: api.patches for name, (api, _) in self._players.items()}

    def forget(self, cluster: str, group: str) -> None:
        """Forgets the replicas of a group that was removed, or that something else has set."""
        self._players[cluster][0].set_replicas.pop(group, None)

    def _player(self, name: str) -> tuple[ApiServer, KubeRayProvider]:
        namespace, _, own = name.partition("/")
        api = ApiServer(self._api, namespace)
        # The GCS is only asked about clusters that end when they are idle, and about pods that are resized.
        return api, KubeRayProvider(own, {"namespace": namespace}, gcs_client=None, k8s_api_client=api)

    def _play(self) -> None:
        try:
            self._turn(self._draw.choice(list(self._players)), self.scales)
        except Exception as error:
            # Any error must fail the test.
            self._failure = error

    def _turn(self, name: str, scales: float) -> None:
        provider = self._players[name][1]
        try:
            instances = provider.get_non_terminated()
        except client.ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return
        workers = {
            Worker(name, instance.node_type, instance.cloud_instance_id): instance
            for instance in instances.values()
            if instance.node_kind == NodeKind.WORKER
        }
        self._work(name, workers)
        if self._draw.random() < scales:
            self._scale(name, provider, list(workers))

    def _work(self, name: str, workers: Mapping[Worker, CloudInstance]) -> None:
        self.lost |= {worker for worker in self.busy if worker.cluster == name and worker not in workers}
        self.busy -= self.lost
        for worker, instance in workers.items():
            if worker in self.busy:
                if self._draw.random() < ENDS:
                    self.busy.remove(worker)
            elif instance.is_running and worker.pod not in self.drained and self._draw.random() < BEGINS:
                self.busy.add(worker)

    def _scale(self, name: str, provider: KubeRayProvider, workers: Sequence[Worker]) -> None:
        spec = provider.ray_cluster["spec"]
        if not spec.get("enableInTreeAutoscaling"):
            self._players[name][0].set_replicas.clear()
            return
        group = self._draw.choice(spec["workerGroupSpecs"])
        own = [worker for worker in workers if worker.group == group["groupName"]]
        idle = [worker for worker in own if worker not in self.busy]
        self._requests += 1
        request = str(self._requests)
        if idle and len(own) > group.get("minReplicas", 0) and self._draw.random() < 0.4:
            provider.terminate([idle[0].pod], request)
        elif len(own) < group["maxReplicas"]:
            provider.launch({group["groupName"]: 1}, request)
        provider.poll_errors()
