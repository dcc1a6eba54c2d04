"""The session with a cluster by the Kubernetes client.

Only this file imports the client, and only once it connects: the import takes a second (kubernetes 37).
"""

import functools
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import yaml

from components.cluster import (
    AMBIENT,
    NO_PAIRS,
    Cluster,
    ClusterUnreachableError,
    ConflictError,
    Connection,
    ForbiddenError,
    NoAnswerError,
    NoKubeconfigError,
    Sent,
    UnauthorizedError,
)
from core.body import Body

Answer = TypeVar("Answer")

_SECONDS = 20
"""Timeout of a read. An API server that takes longer counts as unreachable."""

_BETWEEN_PARTS = 7 * 24 * 3600
"""Seconds between two parts of an answer that is followed: any time may pass, and the client (kubernetes 37) accepts no
timeout without end."""


def cluster_of(props: Mapping[str, Any]) -> "KubernetesCluster":
    """The session of a dynamic resource. `props`: its inputs, with those of `Connection.inputs`."""
    # Pulumi does not send inputs that are None to the provider.
    given = props.get("connection") or {}
    return _session(Connection(given.get("context"), given.get("kubeconfig")))


class KubernetesCluster(Cluster):
    """A session by the Kubernetes client. It connects once, at the first request."""

    def __init__(self, connection: Connection = AMBIENT, content: str | None = None) -> None:
        """`content`: of the connection's kubeconfig, if that is an output."""
        self.connection = connection
        self._content = connection.kubeconfig if content is None else content

    @functools.cached_property
    def _client(self) -> Any:
        import kubernetes

        configuration = kubernetes.client.Configuration()
        where = "its content"
        try:
            context, content = self.connection.context, self._content
            # As the Kubernetes provider: an empty KUBECONFIG counts as none.
            files = os.environ.get("KUBECONFIG") or "~/.kube/config"
            options = {"context": context, "client_configuration": configuration}
            if isinstance(content, str):
                kubernetes.config.load_kube_config_from_dict(yaml.safe_load(content), persist_config=False, **options)
            elif content is not None:
                raise NoKubeconfigError("no usable kubeconfig: its content is not known yet")
            elif context is None and not _any_exists(files) and "KUBERNETES_SERVICE_HOST" in os.environ:
                kubernetes.config.load_incluster_config(client_configuration=configuration)
            elif not _any_exists(files):
                message = f"no kubeconfig: {files} does not exist. Set KUBECONFIG; for a rehearsal, run"
                raise NoKubeconfigError(f'{message} eval "$(make -s env)"')
            else:
                where = files
                kubernetes.config.load_kube_config(files, **options)
        except (kubernetes.config.ConfigException, yaml.YAMLError, OSError, ValueError) as error:
            raise NoKubeconfigError(f"no usable kubeconfig: {error}") from error
        except TypeError as error:
            message = f"no usable kubeconfig: {where} is not a mapping of clusters and users"
            raise NoKubeconfigError(message) from error
        configuration.retries = False
        return kubernetes.client.ApiClient(configuration)

    def renew(self) -> None:
        self.__dict__.pop("_client", None)

    def _renew(self) -> None:
        self.renew()
        try:
            _ = self._client
        except NoKubeconfigError as error:
            raise UnauthorizedError(str(error)) from error

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NO_PAIRS,
        headers: Mapping[str, str] = NO_PAIRS,
        body: Sent = None,
    ) -> Body | None:
        response = self._call(method, path, query, headers, body, _SECONDS)
        return None if response is None else _object(_read(response.read))

    def stream(self, path: str, *, query: Mapping[str, str] = NO_PAIRS, follow: bool = False) -> Iterator[bytes]:
        import urllib3

        limit = (_SECONDS, _BETWEEN_PARTS if follow else _SECONDS)
        response = self._call("GET", path, query, NO_PAIRS, None, limit)
        try:
            yield from response.response.stream() if response is not None else ()
        except urllib3.exceptions.HTTPError as error:
            raise ClusterUnreachableError(f"the API server has ended the answer: {error}") from error

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: Sent,
        limit: float | tuple[float, float],
    ) -> Any:
        """The client's response; None for 404. It is asked again while the API server answers 429, as it does for a
        moment after a CRD has changed, and once with renewed credentials if it does not accept them any more."""
        deadline, renewed = time.monotonic() + _SECONDS, False
        while True:
            _, url, sent, *_ = self._client.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params=dict(headers),
                auth_settings=["BearerToken"],
            )
            call = functools.partial(self._client.call_api, method, url, sent, body, _request_timeout=limit)
            response = _read(call)
            if response.status < HTTPStatus.MULTIPLE_CHOICES:
                return response
            data = _read(response.read)
            if response.status == HTTPStatus.NOT_FOUND:
                return None
            if response.status == HTTPStatus.UNAUTHORIZED and not renewed:
                # Tokens end while a command watches, or while `up` waits.
                renewed = True
                self._renew()
                continue
            if response.status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > deadline:
                # With an exec plugin that fails the client connects without credentials, as system:anonymous.
                kind = UnauthorizedError if renewed else _KINDS.get(response.status, ClusterUnreachableError)
                refusal = _refusal(data) or f"{response.status} {response.reason}"
                if _NO_ADDRESS in refusal:
                    raise kind("the pod's node has no address. Pods on simulated nodes have no logs and no ports")
                raise kind(f"the API server refuses: {refusal}")
            time.sleep(1.0)

    def ask_pod(self, namespace: str, pod: str, port: int, path: str) -> bytes | None:
        from http.client import HTTPConnection, HTTPException, responses

        import kubernetes
        from kubernetes.stream import portforward

        asked = kubernetes.client.CoreV1Api(self._client).connect_get_namespaced_pod_portforward
        title = f"pod {namespace}/{pod}"
        try:
            forward = portforward(asked, pod, namespace, ports=str(port))
        except kubernetes.client.ApiException as error:
            # The client has the status of the handshake in its text alone (kubernetes 37, ws_client.py:
            # portforward_call).
            status = re.search(r"Handshake status (\d+)", str(error.reason))
            kind = ForbiddenError if status and int(status[1]) == HTTPStatus.FORBIDDEN else ClusterUnreachableError
            why = f"{status[1]} {responses.get(int(status[1]), '')}".rstrip() if status else error.reason
            raise kind(f"{title} cannot be asked: {why}") from error
        connection = HTTPConnection("127.0.0.1", port)
        connection.sock = forward.socket(port)
        connection.sock.settimeout(_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException) as error:
            raise ClusterUnreachableError(f"{title} does not answer: {forward.error(port) or repr(error)}") from error
        finally:
            connection.close()
        if answer.status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
            raise ClusterUnreachableError(f"{title} answers {answer.status}: {body.decode(errors='replace')}")
        return body if answer.status == HTTPStatus.OK else None

    def exec(
        self, namespace: str, pod: str, container: str, command: Sequence[str], *, seconds: int
    ) -> tuple[str, str]:
        import kubernetes
        import urllib3
        import websocket
        from kubernetes.stream import stream

        try:
            # `stream` changes the client that is passed to it, so it gets its own.
            core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(self._client.configuration))
            running = stream(
                core.connect_get_namespaced_pod_exec,
                pod,
                namespace,
                container=container,
                command=[*command],
                stdout=True,
                stderr=True,
                _preload_content=False,
                _request_timeout=seconds,
            )
            running.run_forever(timeout=seconds)
            output = running.read_stdout(timeout=1), running.read_stderr(timeout=1)
            running.close()
        except kubernetes.client.ApiException as error:
            why = str(error.reason).splitlines()[0] if error.reason else _refusal(error.body) or error.status
        except (OSError, urllib3.exceptions.HTTPError, websocket.WebSocketException) as error:
            why = error
        else:
            return output
        raise ClusterUnreachableError(f"a command cannot be run in its pod {pod}: {why}")


_session = functools.cache(KubernetesCluster)
"""One for each connection, because a process of Pulumi's has many dynamic resources."""

_KINDS: Mapping[int, type[ClusterUnreachableError]] = {
    HTTPStatus.UNAUTHORIZED: UnauthorizedError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.UNPROCESSABLE_ENTITY: ConflictError,
}
"""The errors of refusals."""


_NO_ADDRESS = "no preferred addresses found"
"""What the API server says of a node without an address (pkg/util/node/node.go)."""


def _any_exists(files: str) -> bool:
    return any(Path(each).expanduser().exists() for each in files.split(os.pathsep) if each)


def _read(ask: Callable[[], Answer]) -> Answer:
    import kubernetes
    import urllib3

    try:
        return ask()
    except kubernetes.client.ApiException as error:
        # Of TLS, for example.
        raise ClusterUnreachableError(f"the API server does not answer: {error.reason}") from error
    except urllib3.exceptions.HTTPError as error:
        raise NoAnswerError(f"the API server does not answer: {error}") from error


def _object(data: bytes) -> Body:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ClusterUnreachableError(
            "the answer is not an object of Kubernetes: the kubeconfig's address leads to a different server, or to a "
            "proxy that asks for a login"
        )
    return found


def _refusal(data: bytes | str | None) -> str | None:
    """The message in the Status of the API server's response."""
    try:
        return str(json.loads(data or "")["message"])
    except (KeyError, TypeError, ValueError):
        return None
