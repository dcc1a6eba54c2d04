"""A cluster: the official client's configuration, authentication and connections, and the few requests that we send."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from kubernetes import config
from kubernetes.client import ApiClient, Configuration

from local.plugins.kubernetes.discovery import ACCEPT, Discovery, Endpoint
from local.plugins.kubernetes.errors import ApiError, UnreachableError
from local.plugins.kubernetes.objects import CRD, Kind, name_of, namespace_of
from local.plugins.kubernetes.settings import Settings, is_path, parse_kubeconfig
from local.plugins.kubernetes.values import Json

_CONNECTIONS = 64
_TIMEOUT: Final = urllib3.Timeout(connect=10, read=60)
_WATCH_SECONDS = 300
_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"  # JSON is YAML
_JSON_PATCH = "application/json-patch+json"


class Cluster:
    """One API server, with the credentials of a kubeconfig.

    Raises (any request): `ApiError` if the server refuses, `UnreachableError` if it does not answer, `NoSuchKindError`
    if it does not have the kind.
    """

    def __init__(self, settings: Settings) -> None:
        """Loads the kubeconfig and reads the server's kinds.

        Raises:
            UnreachableError: no usable kubeconfig, or no answer.
        """
        configuration = Configuration()
        configuration.connection_pool_maxsize = _CONNECTIONS
        # A request that was refused for now (429) or never sent can be repeated; one without an answer cannot.
        configuration.retries = urllib3.Retry(
            total=6, connect=3, read=0, other=0, status=6, status_forcelist={429}, allowed_methods=None,
            backoff_factor=0.3, raise_on_status=False, redirect=0,
        )  # fmt: skip
        try:
            self.namespace = settings.namespace or _configure(configuration, settings) or "default"
        except (config.ConfigException, yaml.YAMLError, OSError, ValueError) as error:
            raise UnreachableError(
                f"unable to load Kubernetes client configuration from kubeconfig file: {error}"
            ) from error
        self._client = ApiClient(configuration)
        self.discovery = Discovery(lambda path: self._request("GET", path, accept=ACCEPT))
        try:
            self.discovery.find(CRD)
        except ApiError as error:
            raise UnreachableError(f"unable to load schema information from the API server: {error}") from error

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        return self._request("GET", self.discovery.find(kind).path(namespace, name))

    def create(self, obj: Json, manager: str, dry_run: bool = False) -> Json:
        """Creates an object that does not exist yet."""
        path = self._endpoint(obj).path(namespace_of(obj))
        return self._request("POST", path, {"fieldManager": manager} | _dry(dry_run), obj)

    def apply(self, obj: Json, manager: str, *, force: bool, dry_run: bool = False) -> Json:
        """Server-side apply: creates it, or sets its fields and releases owned fields that are not set any more."""
        path = self._endpoint(obj).path(namespace_of(obj), name_of(obj))
        query = {"fieldManager": manager, "force": str(force).lower()} | _dry(dry_run)
        return self._request("PATCH", path, query, obj, _APPLY)

    def replace(self, obj: Json, manager: str, dry_run: bool = False) -> Json:
        path = self._endpoint(obj).path(namespace_of(obj), name_of(obj))
        return self._request("PUT", path, {"fieldManager": manager} | _dry(dry_run), obj)

    def patch(self, obj: Json, operations: list[Json]) -> Json:
        """JSON patch (RFC 6902)."""
        path = self._endpoint(obj).path(namespace_of(obj), name_of(obj))
        return self._request("PATCH", path, body=operations, content_type=_JSON_PATCH)

    def delete(self, kind: Kind, namespace: str, name: str, propagation: str) -> None:
        self._request(
            "DELETE", self.discovery.find(kind).path(namespace, name), body={"propagationPolicy": propagation}
        )

    def list(self, kind: Kind, namespace: str, **selectors: str) -> list[Json]:
        """Objects of a namespace; `labelSelector` and `fieldSelector` as in the Kubernetes API."""
        found = self._request("GET", self.discovery.find(kind).path(namespace), selectors)
        return [{"apiVersion": kind.api_version, "kind": kind.kind} | item for item in found.get("items", [])]

    def watch(self, kind: Kind, namespace: str, **selectors: str) -> "Watch":
        """The existing objects, and then all changes."""
        path = self.discovery.find(kind).path(namespace)
        query = {"watch": "true", "timeoutSeconds": str(_WATCH_SECONDS)} | selectors
        timeout = urllib3.Timeout(connect=10, read=_WATCH_SECONDS + 30)
        return Watch(self._send("GET", path, query, timeout=timeout, stream=True))

    def _endpoint(self, obj: Json) -> Endpoint:
        return self.discovery.find(Kind.of_object(obj))

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Json:
        response = self._send(method, path, query, body, content_type, accept)
        parsed: Json = json.loads(response.data)
        return parsed

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = _JSON,
        accept: str = _JSON,
        timeout: urllib3.Timeout = _TIMEOUT,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        # The generated API classes only know the paths and types of built-in kinds; this method handles any kind.
        _, url, headers, _, _ = self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": accept, "Content-Type": content_type},
            auth_settings=["BearerToken"],
        )
        try:
            response: urllib3.BaseHTTPResponse = self._client.rest_client.pool_manager.request(
                method,
                url,
                headers=headers,
                body=None if body is None else json.dumps(body).encode(),
                timeout=timeout,
                preload_content=not stream,
            )
        except urllib3.exceptions.HTTPError as error:
            raise UnreachableError(f"Kubernetes API server {self._client.configuration.host}: {error}") from error
        if response.status >= 400:
            raise ApiError(response.status, response.data)
        return response


class Watch:
    """The events of one watch, until the server ends it or it is closed from another thread."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._closed = False

    def __iter__(self) -> Iterator[tuple[str, Json]]:
        """Yield event types (`ADDED`, `MODIFIED`, `DELETED`) with the object.

        Raises:
            UnreachableError: the connection broke.
        """
        try:
            for line in _lines(self._response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event["type"], event["object"]
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            if not self._closed:
                raise UnreachableError(f"the watch broke: {error}") from error
        finally:
            self._response.close()

    def close(self) -> None:
        """Ends the iteration, even if it is blocked in another thread."""
        self._closed = True
        try:
            self._response.shutdown()
        except (RuntimeError, ValueError, OSError):
            # It has ended already.
            return


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(None):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _configure(configuration: Configuration, settings: Settings) -> str:
    """Loads credentials into the client's configuration and returns the context's namespace."""
    context = settings.context or None
    if settings.kubeconfig and not is_path(settings.kubeconfig):
        content = parse_kubeconfig(settings.kubeconfig)
        config.load_kube_config_from_dict(content, context=context, client_configuration=configuration)
        name = context or content.get("current-context")
        chosen: Json = next((entry for entry in content.get("contexts") or [] if entry["name"] == name), {})
        return str(chosen.get("context", {}).get("namespace") or "")
    path = settings.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    if not settings.kubeconfig and not _any_exists(path) and "KUBERNETES_SERVICE_HOST" in os.environ:
        config.load_incluster_config(client_configuration=configuration)
        return ""
    path = os.pathsep.join(str(Path(part).expanduser()) for part in path.split(os.pathsep))
    config.load_kube_config(path, context=context, client_configuration=configuration, persist_config=False)
    contexts, current = config.list_kube_config_contexts(path)
    chosen = next((entry for entry in contexts if entry["name"] == context), current)
    return str(chosen["context"].get("namespace") or "")


def _any_exists(paths: str) -> bool:
    return any(Path(part).expanduser().exists() for part in paths.split(os.pathsep))
