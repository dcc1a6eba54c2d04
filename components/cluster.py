"""A session with a Kubernetes cluster: what is read and written, the errors, and how to connect.

`kubernetes_cluster.py` implements it by the Kubernetes client.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from core.body import Body

if TYPE_CHECKING:
    import pulumi

Sent = str | Mapping[str, Any] | Sequence[Any] | None

NO_PAIRS: Mapping[str, str] = MappingProxyType({})
"""No parameters of a query, or no headers."""


class ClusterUnreachableError(Exception):
    """There is no usable kubeconfig, or the API server does not answer or refuses."""


class NoKubeconfigError(ClusterUnreachableError):
    """There is no usable kubeconfig."""


class NoAnswerError(ClusterUnreachableError):
    """The API server has not answered, or not in time."""


class ForbiddenError(ClusterUnreachableError):
    """The API server refuses the request: this account has no right to it."""


class UnauthorizedError(ClusterUnreachableError):
    """The API server does not accept the credentials, such as an expired token, and no renewed ones."""


class ConflictError(ClusterUnreachableError):
    """The API server refuses a change: the object has changed since it was read, exists already, or is invalid."""


@dataclass(frozen=True)
class Connection:
    context: str | None = None
    """Context of the kubeconfig; None for its current one."""

    kubeconfig: "pulumi.Input[str] | None" = field(default=None, repr=False)
    """Content of a kubeconfig. None for the ambient one: KUBECONFIG, else ~/.kube/config, else the account of the own
    pod."""

    def __str__(self) -> str:
        """For a message."""
        if self.kubeconfig is None:
            return f"context {self.context!r}" if self.context else "the current context"
        return f"context {self.context!r} of the given kubeconfig" if self.context else "the given kubeconfig"

    def inputs(self) -> dict[str, Any]:
        """The inputs of a dynamic resource for `kubernetes_cluster.cluster_of`. A kubeconfig is a secret in them."""
        given: dict[str, Any] = {"context": self.context} if self.context else {}
        if self.kubeconfig is not None:
            from pulumi import Output

            given["kubeconfig"] = Output.secret(self.kubeconfig)
        return {"connection": given}


AMBIENT = Connection()
"""The current context of the ambient kubeconfig."""


class Cluster(Protocol):
    """A session with a cluster.

    All methods raise ClusterUnreachableError if there is no usable kubeconfig, or the API server does not answer or
    refuses. `api_version` is a group with its version, such as `ray.io/v1`; `plural` the plural name of a kind.
    """

    connection: Connection

    exists: bool = True
    """False for a cluster that will be created later (`future_cluster.py`)."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NO_PAIRS,
        headers: Mapping[str, str] = NO_PAIRS,
        body: Sent = None,
    ) -> Body | None:
        """The JSON object in the response; None if the object or kind does not exist (404).

        `body`: written as JSON, except a text, which is sent verbatim and needs another content type than JSON.
        """

    def stream(self, path: str, *, query: Mapping[str, str] = NO_PAIRS, follow: bool = False) -> Iterator[bytes]:
        """The response to a GET as it arrives; nothing if the object does not exist. `follow`: waits for further parts
        without a timeout."""

    def ask_pod(self, namespace: str, pod: str, port: int, path: str) -> bytes | None:
        """The response to a GET of a program that listens on a pod's loopback address, by a port-forward; None if the
        program answers 404."""

    def exec(
        self, namespace: str, pod: str, container: str, command: Sequence[str], *, seconds: int
    ) -> tuple[str, str]:
        """The standard output and the standard error of a command in a container. `seconds`: for the command."""

    def renew(self) -> None:
        """Reads the credentials again before the next request."""

    @cached_property
    def kubernetes(self) -> tuple[int, ...] | None:
        """Major and minor version of the API server, which is asked once; None if it cannot be read."""
        try:
            reported = self.request("GET", "/version") or {}
        except ClusterUnreachableError:
            return None
        # Some clouds write `29+`.
        numbers = [re.match(r"\d+", str(reported.get(part, ""))) for part in ("major", "minor")]
        return tuple(int(number[0]) for number in numbers if number) if all(numbers) else None

    def get(self, api_version: str, plural: str, namespace: str | None, name: str) -> Body | None:
        """An object; None if it or its kind does not exist. `namespace`: None for kinds without one."""
        return self.request("GET", path_of(api_version, plural, namespace, name))

    def list(
        self, api_version: str, plural: str, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> tuple[Body, ...] | None:
        """The objects of a kind in a namespace, or in all; None if the cluster has no such kind.

        `labels`, `fields`: selectors.
        """
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in selectors.items() if value}
        listed = self.request("GET", path_of(api_version, plural, namespace), query=query)
        return None if listed is None else tuple(listed["items"])

    def patch(
        self,
        api_version: str,
        plural: str,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    ) -> Body | None:
        """The object after a change; None if it does not exist. `body`: a mapping is a merge patch, a sequence a JSON
        patch. Raises ConflictError."""
        kind = "merge" if isinstance(body, Mapping) else "json"
        headers = {"Content-Type": f"application/{kind}-patch+json"}
        # The client (kubernetes 37) takes no other sequence than a list for a JSON patch.
        sent = body if isinstance(body, Mapping) else [*body]
        return self.request("PATCH", path_of(api_version, plural, namespace, name), headers=headers, body=sent)

    def delete(
        self, api_version: str, plural: str, namespace: str | None, name: str, options: Mapping[str, Any] = NO_PAIRS
    ) -> Body | None:
        """Deletes an object; None if it does not exist. `options`: of the deletion (DeleteOptions). Raises
        ConflictError if the object does not meet their preconditions."""
        path = path_of(api_version, plural, namespace, name)
        return self.request("DELETE", path, headers={"Content-Type": "application/json"}, body=options or None)

    def log(
        self, namespace: str, pod: str, container: str, *, follow: bool = False, tail: int | None = None
    ) -> Iterator[bytes]:
        """The log of a container as it arrives; nothing if the pod does not exist. `tail`: only that many last lines.
        `follow`: with further lines, without end."""
        query = {"container": container, **({"follow": "true"} if follow else {})}
        query |= {} if tail is None else {"tailLines": str(tail)}
        return self.stream(f"{path_of('v1', 'pods', namespace, pod)}/log", query=query, follow=follow)


def path_of(api_version: str, plural: str, namespace: str | None = None, name: str | None = None) -> str:
    """The path of an object in the API; without a name that of all of its kind."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{within}/{plural}{f'/{name}' if name else ''}"
