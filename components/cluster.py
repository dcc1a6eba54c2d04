"""The cluster as it is: reading it with the kubeconfig and context that the provider uses."""

import functools
import json
import os
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import kubernetes
import urllib3
import yaml

_SECONDS = 20
"""An API server that has not answered a read by then is taken for unreachable."""


class ClusterUnreachableError(Exception):
    """There is no usable kubeconfig, or the API server does not answer or refuses."""


class ForbiddenError(ClusterUnreachableError):
    """The API server answers that this account may not read that."""


@functools.cache
def connect(context: str | None = None) -> Any:
    """An API client for the ambient kubeconfig: KUBECONFIG, else ~/.kube/config, else the account of its own pod.

    `context`: name of the kubeconfig's context; None for its current one.
    Raises ClusterUnreachableError where there is no usable kubeconfig.
    """
    configuration = kubernetes.client.Configuration()
    try:
        if context is None and "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ:
            kubernetes.config.load_incluster_config(client_configuration=configuration)
        else:
            kubernetes.config.load_kube_config(context=context, client_configuration=configuration)
    except (kubernetes.config.ConfigException, yaml.YAMLError, OSError, ValueError) as error:
        raise ClusterUnreachableError(f"no usable kubeconfig: {error}") from error
    configuration.retries = False
    return kubernetes.client.ApiClient(configuration)


def read(call: Callable[..., Any], *names: str, **options: str) -> dict[str, Any] | None:
    """The JSON that a read method of the Kubernetes client gets, None where there is no such object or kind (404).

    Raises ClusterUnreachableError where the API server does not answer or refuses; where it is a matter of rights,
    ForbiddenError.
    """
    data = read_bytes(call, *names, **options)
    return None if data is None else dict(json.loads(data))


def read_bytes(call: Callable[..., Any], *names: str, **options: Any) -> bytes | None:
    """What a read method of the Kubernetes client gets, such as the log of a container. As `read`."""
    return _answer(lambda: bytes(call(*names, **options, _preload_content=False, _request_timeout=_SECONDS).data))


def request(
    context: str | None,
    method: str,
    path: str,
    *,
    query: Mapping[str, str] = MappingProxyType({}),
    headers: Mapping[str, str] = MappingProxyType({}),
    body: str | None = None,
) -> dict[str, Any] | None:
    """The JSON that the API server answers to a request that the client's methods do not make: for part of an object,
    or with a body as it is. None where there is no such object (404). Raises as `read`."""
    client = connect(context)
    serialized = client.param_serialize(
        method, path, query_params=list(query.items()), header_params=dict(headers), auth_settings=["BearerToken"]
    )
    _, url, sent, *_ = serialized

    def ask() -> bytes:
        response = client.call_api(method, url, sent, body, _request_timeout=_SECONDS)
        data = bytes(response.read())
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise kubernetes.client.ApiException(http_resp=response, body=data.decode())
        return data

    data = _answer(ask)
    return None if data is None else dict(json.loads(data))


def _answer(ask: Callable[[], bytes]) -> bytes | None:
    """What the API server answers, None where there is no such object. Raises as `read`.

    It is asked again while it wants to be (429), as for a moment after a CRD was changed.
    """
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
            raise ClusterUnreachableError(f"the API server does not answer: {error}") from error
        time.sleep(1.0)


def _unreachable(error: Any) -> ClusterUnreachableError:
    kind = ForbiddenError if error.status == HTTPStatus.FORBIDDEN else ClusterUnreachableError
    return kind(f"the API server refuses: {refusal(error)}")


def refusal(error: Any) -> str:
    """What the API server says in its Status: who may not do what."""
    try:
        return str(json.loads(error.body)["message"])
    except (KeyError, TypeError, ValueError):
        return f"{error.status} {error.reason}"
