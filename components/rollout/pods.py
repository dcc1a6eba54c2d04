"""The pods of a RayCluster, and their state as Ray in its head reports it."""

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from components.client import ClusterUnreachableError, connect, refusal, request
from components.ray_cluster.pods import CLUSTER_LABEL, GROUP_LABEL, NODE_TYPE_LABEL

_SCRIPT = Path(__file__).with_name("in_head.py")

_SECONDS = 60
"""The import of Ray takes seconds on a busy head."""

_CHANGED_MEANWHILE = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)

Pod = Mapping[str, Any]
"""As the API server returns it."""


class UnknownRayError(Exception):
    """Ray in the head does not answer; the message has the reason."""


class Pods:
    """The pods of one RayCluster. All methods raise ClusterUnreachableError if the API server does not answer."""

    def __init__(self, context: str | None, namespace: str, cluster: str) -> None:
        self._context = context
        self.namespace, self.cluster = namespace, cluster

    @functools.cached_property
    def _core(self) -> Any:
        """Loaded on first use: it takes a second (kubernetes 37), and a preview does not need it."""
        import kubernetes

        return kubernetes.client.CoreV1Api(connect(self._context))

    def all(self) -> list[Pod]:
        """Head and workers, including those that are being deleted."""
        selected = {"labelSelector": f"{CLUSTER_LABEL}={self.cluster}"}
        listed = request(self._context, "GET", f"/api/v1/namespaces/{self.namespace}/pods", query=selected)
        return [pod for pod in (listed or {}).get("items", ()) if kind(pod) in ("head", "worker")]

    def delete(self, pod: Pod, *, unchanged: bool = False) -> None:
        """Deletes this pod, but not another pod of the same name. `unchanged`: only if it has not changed since."""
        import kubernetes

        metadata = pod["metadata"]
        as_it_is = {"resource_version": metadata["resourceVersion"]} if unchanged else {}
        only = kubernetes.client.V1Preconditions(uid=metadata["uid"], **as_it_is)
        options = kubernetes.client.V1DeleteOptions(preconditions=only)
        with changing():
            self._core.delete_namespaced_pod(metadata["name"], self.namespace, body=options)

    def ask(self, pods: Iterable[Pod], drain: Mapping[str, int | None]) -> dict[str, Any]:
        """The output of in_head.py with `drain` as its argument. `pods` contains the head.

        Raises UnknownRayError.
        """
        return self.run_in_head(pods, _SCRIPT.read_text(), json.dumps({"drain": drain}))

    def run_in_head(self, pods: Iterable[Pod], script: str, *arguments: str) -> dict[str, Any]:
        """Runs a script with the Python of the head; returns the JSON in its last line. `pods` contains the head.

        Raises UnknownRayError.
        """
        import kubernetes
        import urllib3
        import websocket
        from kubernetes.stream import stream

        heads = [pod for pod in pods if kind(pod) == "head" and not leaves(pod)]
        if not heads:
            raise UnknownRayError("its head does not exist")
        name = heads[0]["metadata"]["name"]
        container = heads[0]["spec"]["containers"][0]["name"]
        command = ["python", "-c", script, *arguments]
        try:
            # `stream` changes the client that is passed to it, so it gets its own.
            core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(connect(self._context).configuration))
            running = stream(
                core.connect_get_namespaced_pod_exec,
                name,
                self.namespace,
                container=container,
                command=command,
                stdout=True,
                stderr=True,
                _preload_content=False,
                _request_timeout=_SECONDS,
            )
            running.run_forever(timeout=_SECONDS)
            output, wrong = running.read_stdout(timeout=1), running.read_stderr(timeout=1)
            running.close()
            reported: dict[str, Any] = json.loads(output.splitlines()[-1])
        except kubernetes.client.ApiException as error:
            reason = str(error.reason).splitlines()[0] if error.reason else refusal(error)
            raise UnknownRayError(f"a command cannot be run in its pod {name}: {reason}") from None
        except (OSError, urllib3.exceptions.HTTPError, websocket.WebSocketException) as error:
            raise UnknownRayError(f"a command cannot be run in its pod {name}: {error}") from None
        except (IndexError, ValueError):
            last = next((line for line in reversed(wrong.splitlines()) if line.strip()), "it printed nothing")
            raise UnknownRayError(f"Ray in its pod {name} does not answer: {last}") from None
        return reported


@contextmanager
def changing() -> Iterator[None]:
    """Ignores the refusal of a change because the object is gone or has changed: the next round reads it again.

    Raises ClusterUnreachableError if the API server does not answer or refuses.
    """
    import kubernetes
    import urllib3

    try:
        yield
    except kubernetes.client.ApiException as error:
        if error.status not in _CHANGED_MEANWHILE:
            raise ClusterUnreachableError(f"the API server refuses: {refusal(error)}") from None
    except urllib3.exceptions.HTTPError as error:
        raise ClusterUnreachableError(f"the API server does not answer: {error}") from None


def kind(pod: Pod) -> str | None:
    """`head` or `worker`; other values are those of clean-up pods."""
    return (pod["metadata"].get("labels") or {}).get(NODE_TYPE_LABEL)


def group(pod: Pod) -> str | None:
    """Name of a worker's group."""
    return (pod["metadata"].get("labels") or {}).get(GROUP_LABEL)


def leaves(pod: Pod) -> bool:
    """Whether it is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def started(pod: Pod) -> bool:
    """Whether Ray may run in it. A pod is Pending as long as one of its containers waits, whatever the others do."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    return status.get("phase") == "Running" or any("running" in (each.get("state") or {}) for each in containers)


def named(pods: Iterable[Pod]) -> str:
    """The names of pods for a message."""
    return ", ".join(sorted(pod["metadata"]["name"] for pod in pods))
