"""The only supported function of the package: reading manifests, which `yaml.ConfigFile` uses."""

from collections.abc import Iterator
from typing import Any

import yaml

from local.plugins.kubernetes.cluster import Cluster
from local.plugins.kubernetes.errors import NoSuchKindError, RefusedError
from local.plugins.kubernetes.objects import Kind, is_kind_of_list
from local.plugins.kubernetes.values import Json


def invoke(token: str, args: Json, cluster: Cluster | None) -> Json:
    """Calls a function of the package.

    Raises:
        RefusedError: the function is not supported, or the manifest cannot be read.
    """
    if token != "kubernetes:yaml:decode":  # noqa: S105  the name of a function
        raise RefusedError(f"the stand-in does not do the function {token}; use the real plugin")
    try:
        documents = list(yaml.safe_load_all(str(args.get("text", ""))))
    except yaml.YAMLError as error:
        raise RefusedError(f"cannot read the manifest: {error}") from error
    objects = [obj for document in documents if document for obj in _expand(document)]
    namespace = str(args.get("defaultNamespace") or "")
    return {"result": [_in_namespace(obj, namespace, cluster) if namespace else obj for obj in objects]}


def _expand(document: Any) -> Iterator[Json]:
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise RefusedError("a document of the manifest is no Kubernetes object: it needs apiVersion and kind")
    if is_kind_of_list(Kind.of_object(document)):
        for item in document.get("items") or []:
            yield from _expand(item)
    else:
        yield document


def _in_namespace(obj: Json, namespace: str, cluster: Cluster | None) -> Json:
    metadata = obj.get("metadata") or {}
    if metadata.get("namespace") or not _namespaced(Kind.of_object(obj), cluster):
        return obj
    return obj | {"metadata": metadata | {"namespace": namespace}}


def _namespaced(kind: Kind, cluster: Cluster | None) -> bool:
    if cluster is None:
        return True
    try:
        return cluster.discovery.find(kind).namespaced
    except NoSuchKindError:
        return True
