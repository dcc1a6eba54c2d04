"""The rehearsal cluster's API server: the reads and requests of a rehearsal."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, cast

from kubernetes import client

from core.body import ReadOnlyBody
from local.nodes import POOL_LABEL
from local.rehearse.observed import OWNER_LABELS, Observed, Pod, observed, pod_of
from local.rehearse.observed import Cluster as RayState

RAY = ("ray.io", "v1", "rayclusters")
VOLCANO = ("scheduling.volcano.sh", "v1beta1", "podgroups")


class Cluster:
    """The Kubernetes operations that a rehearsal needs."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core, self._objects = client.CoreV1Api(api), client.CustomObjectsApi(api)
        self._names: dict[str, str] = {}

    def observed(self) -> Observed:
        """A snapshot of the cluster."""
        return observed(
            clusters=self._custom(RAY),
            pods=self._items(self._core.list_pod_for_all_namespaces),
            nodes=self._nodes(),
            events=self._items(self._core.list_event_for_all_namespaces, field_selector="type=Warning"),
            groups=self._custom(VOLCANO),
        )

    def states(self) -> tuple[RayState, ...]:
        """The RayClusters; none before the operator is installed."""
        return observed(self._custom(RAY), [], [], [], []).clusters

    def ray(self, name: str) -> ReadOnlyBody:
        """A RayCluster, by `<namespace>/<name>`, or by the name of the RayJob or RayService that has it."""
        namespace, _, _ = name.partition("/")
        group, version, plural = RAY
        found = self._objects.get_namespaced_custom_object(group, version, namespace, plural, self._live(name))
        return cast("ReadOnlyBody", found)

    def _live(self, name: str) -> str:
        """The RayCluster's own name, which KubeRay generates for a RayJob or RayService."""
        if name not in self._names:
            namespace, _, own = name.partition("/")
            owned = (each for each in self._ray_clusters(namespace) if own in map(_labels(each).get, OWNER_LABELS))
            found = [each["metadata"]["name"] for each in owned]
            self._names[name] = found[0] if found else own
        return self._names[name]

    def _ray_clusters(self, namespace: str) -> list[ReadOnlyBody]:
        group, version, plural = RAY
        found: Any = self._objects.list_namespaced_custom_object(group, version, namespace, plural)
        return list(found["items"])

    def workers(self, name: str, group: str) -> list[Pod]:
        """The pods of a worker group that are not being deleted."""
        namespace, _, _ = name.partition("/")
        selector = f"ray.io/cluster={self._live(name)},ray.io/group={group}"
        pods = self._items(self._core.list_namespaced_pod, namespace, label_selector=selector)
        return [pod for body in pods if (pod := pod_of(body, {}, {}))]

    def taken(self) -> Counter[str]:
        """GPUs of pods that are on nodes, by pool."""
        pods = self._items(self._core.list_pod_for_all_namespaces, label_selector="ray.io/node-type=worker")
        return observed([], pods, self._nodes(), [], []).gpus_by_pool()

    def scale(self, name: str, group: str, replicas: int, without: list[str]) -> None:
        """Sets a worker group's replicas, and deletes pods by name, as Ray's autoscaler does.

        (ray, python/ray/autoscaler/_private/kuberay/node_provider.py: _scale_request_to_patch_payload)
        """
        namespace, own = name.partition("/")[0], self._live(name)
        groups = [each["groupName"] for each in self.ray(name)["spec"]["workerGroupSpecs"]]
        path = f"/spec/workerGroupSpecs/{groups.index(group)}"
        patch: list[dict[str, Any]] = [
            {"op": "test", "path": f"{path}/groupName", "value": group},
            {"op": "add", "path": f"{path}/replicas", "value": replicas},
            {"op": "add", "path": f"{path}/scaleStrategy", "value": {"workersToDelete": without}},
        ]
        api_group, version, plural = RAY
        self._objects.patch_namespaced_custom_object(
            api_group, version, namespace, plural, own, patch, _content_type="application/json-patch+json"
        )

    def _nodes(self) -> list[ReadOnlyBody]:
        return self._items(self._core.list_node, label_selector=POOL_LABEL)

    def _items(self, list_all: Callable[..., Any], *arguments: str, **options: Any) -> list[ReadOnlyBody]:
        # Creating typed objects for a thousand pods takes seconds, and they are read several times a second.
        answer = list_all(*arguments, **options, _preload_content=False)
        return list(json.loads(answer.data)["items"])

    def _custom(self, kind: tuple[str, str, str]) -> list[ReadOnlyBody]:
        try:
            found: Any = self._objects.list_cluster_custom_object(*kind)
        except client.ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return []
        return list(found["items"])


def _labels(body: ReadOnlyBody) -> Mapping[str, str]:
    labels: Mapping[str, str] = body["metadata"].get("labels") or {}
    return labels
