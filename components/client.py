"""Reads the live cluster, with the kubeconfig and context of the Kubernetes provider."""

import functools
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml

from components.cluster import ClusterUnreachableError as ClusterUnreachableError
from components.cluster import ForbiddenError as ForbiddenError
from components.cluster import NoAnswerError as NoAnswerError
from components.cluster import UnauthorizedError as UnauthorizedError

Answer = TypeVar("Answer")

_SECONDS = 20
"""Timeout of a read. An API server that takes longer counts as unreachable."""

_BETWEEN_PARTS = 7 * 24 * 3600
"""Seconds between two parts of an answer, such as lines of a log: any time may pass, and the client (kubernetes 37)
accepts no timeout without end."""


@functools.cache
def connect(context: str | None = None) -> Any:
    """An API client for the ambient kubeconfig: KUBECONFIG, else ~/.kube/config, else the account of its own pod.

    `context`: name of the kubeconfig's context; None for its current one.
    Raises ClusterUnreachableError without a usable kubeconfig.
    """
    import kubernetes

    configuration = kubernetes.client.Configuration()
    try:
        # As the Kubernetes provider: an empty KUBECONFIG counts as none.
        files = os.environ.get("KUBECONFIG") or "~/.kube/config"
        if context is None and not _any_exists(files) and "KUBERNETES_SERVICE_HOST" in os.environ:
            kubernetes.config.load_incluster_config(client_configuration=configuration)
        else:
            kubernetes.config.load_kube_config(files, context=context, client_configuration=configuration)
    except (kubernetes.config.ConfigException, yaml.YAMLError, OSError, ValueError) as error:
        raise ClusterUnreachableError(f"no usable kubeconfig: {error}") from error
    except TypeError as error:
        raise ClusterUnreachableError(f"no usable kubeconfig: {files} is no mapping of clusters and users") from error
    configuration.retries = False
    return kubernetes.client.ApiClient(configuration)


def with_renewed_credentials(ask: Callable[[], Answer]) -> Answer:
    """What `ask` returns, which reads with `connect`. If the API server refuses, the kubeconfig is read again, and
    `ask` called once more.

    Raises UnauthorizedError if that is refused, too, or there is no usable kubeconfig any more; otherwise as `read`.
    """
    try:
        return ask()
    except (UnauthorizedError, ForbiddenError):
        connect.cache_clear()
    try:
        return ask()
    except NoAnswerError:
        raise
    except ClusterUnreachableError as error:
        # Also 403: with an exec plugin that fails the client connects without credentials, as system:anonymous.
        raise UnauthorizedError(str(error)) from error


def _any_exists(files: str) -> bool:
    return any(Path(each).expanduser().exists() for each in files.split(os.pathsep) if each)


def read(call: Callable[..., Any], *names: str, **options: str) -> dict[str, Any] | None:
    """The JSON from a read method of the Kubernetes client; None if the object or kind does not exist (404).

    Raises ClusterUnreachableError if the API server does not answer or refuses; without the right to read,
    ForbiddenError.
    """
    data = read_bytes(call, *names, **options)
    return None if data is None else _object(data)


def read_bytes(call: Callable[..., Any], *names: str, **options: Any) -> bytes | None:
    """The bytes from a read method of the Kubernetes client, such as the log of a container. As `read`."""
    return _answer(lambda: bytes(call(*names, **options, _preload_content=False, _request_timeout=_SECONDS).data))


def stream(call: Callable[..., Any], *names: str, **options: Any) -> Iterator[bytes]:
    """The bytes from a read method as they arrive, such as the log of a running container: without end, if the method
    follows it. Nothing if the object does not exist. Raises as `read`."""
    import urllib3

    response = _answer(
        lambda: call(*names, **options, _preload_content=False, _request_timeout=(_SECONDS, _BETWEEN_PARTS))
    )
    try:
        yield from response.stream() if response is not None else ()
    except urllib3.exceptions.HTTPError as error:
        raise ClusterUnreachableError(f"the API server has ended the answer: {error}") from error


def request(
    context: str | None,
    method: str,
    path: str,
    *,
    query: Mapping[str, str] = MappingProxyType({}),
    headers: Mapping[str, str] = MappingProxyType({}),
    body: str | Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """The JSON response to a request that the client has no method for: part of an object, or a verbatim body. None if
    the object does not exist (404). Raises as `read`.

    `body`: a mapping, which the client writes as JSON; or a text, verbatim unless its content type is JSON: the client
    would encode it once more.
    """
    import kubernetes

    client = connect(context)
    serialized = client.param_serialize(
        method, path, query_params=list(query.items()), header_params=dict(headers), auth_settings=["BearerToken"]
    )
    _, url, sent, *_ = serialized

    def ask() -> bytes:
        response = client.call_api(method, url, sent, body, _request_timeout=_SECONDS)
        data = bytes(response.read())
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise kubernetes.client.ApiException(http_resp=response, body=data.decode(errors="replace"))
        return data

    data = _answer(ask)
    return None if data is None else _object(data)


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ClusterUnreachableError(
            "the answer is no object of Kubernetes: the kubeconfig's address is that of another server, or of a proxy "
            "that asks for a login"
        )
    return found


def ask_pod(context: str | None, namespace: str, pod: str, port: int, path: str) -> bytes | None:
    """The answer of a program that listens on a pod's loopback address to a GET, by a port-forward; None if the program
    answers 404. Raises as `read`, also if there is no such pod."""
    from http.client import HTTPConnection, HTTPException, responses

    import kubernetes
    from kubernetes.stream import portforward

    asked = kubernetes.client.CoreV1Api(connect(context)).connect_get_namespaced_pod_portforward
    title = f"pod {namespace}/{pod}"
    try:
        forward = portforward(asked, pod, namespace, ports=str(port))
    except kubernetes.client.ApiException as error:
        # The client has the status of the handshake in its text alone (kubernetes 37, ws_client.py: portforward_call).
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


def _answer(ask: Callable[[], Answer]) -> Answer | None:
    """The API server's response; None if the object does not exist. Raises as `read`.

    It is asked again while it answers 429, as it does for a moment after a CRD has changed.
    """
    import kubernetes
    import urllib3

    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            return ask()
        except kubernetes.client.ApiException as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            if error.status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > deadline:
                raise _unreachable(error) from error
        except urllib3.exceptions.HTTPError as error:
            raise NoAnswerError(f"the API server does not answer: {error}") from error
        time.sleep(1.0)


def _unreachable(error: Any) -> ClusterUnreachableError:
    kinds = {HTTPStatus.FORBIDDEN: ForbiddenError, HTTPStatus.UNAUTHORIZED: UnauthorizedError}
    kind = kinds.get(error.status, ClusterUnreachableError)
    return kind(f"the API server refuses: {refusal(error)}")


def refusal(error: Any) -> str:
    """The message in the Status of the API server's response."""
    try:
        return str(json.loads(error.body)["message"])
    except (KeyError, TypeError, ValueError):
        return f"{error.status} {error.reason}"
