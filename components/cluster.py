"""The cluster as it is: reading it with the kubeconfig and context that the provider uses."""

import functools
import json
import os
from collections.abc import Callable
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
    try:
        response = call(*names, **options, _preload_content=False, _request_timeout=_SECONDS)
        return bytes(response.data)
    except kubernetes.client.ApiException as error:
        if error.status == 404:
            return None
        if error.status == 403:
            raise ForbiddenError(f"the API server refuses: {refusal(error)}") from error
        raise ClusterUnreachableError(f"the API server refuses: {error.status} {error.reason}") from error
    except urllib3.exceptions.HTTPError as error:
        raise ClusterUnreachableError(f"the API server does not answer: {error}") from error


def refusal(error: Any) -> str:
    """What the API server says in its Status: who may not do what."""
    try:
        return str(json.loads(error.body)["message"])
    except (KeyError, TypeError, ValueError):
        return f"{error.status} {error.reason}"
