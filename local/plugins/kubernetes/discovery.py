"""Which kinds a server has, by aggregated discovery: two requests instead of one per group and version.

https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery (Kubernetes 1.27 and newer)
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from local.plugins.kubernetes.errors import NoSuchKindError
from local.plugins.kubernetes.objects import Kind
from local.plugins.kubernetes.values import Json

ACCEPT = ", ".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_REFRESH_SECONDS = 0.5
"""A missing kind is looked up again, but not more often than this."""


@dataclass(frozen=True)
class Endpoint:
    """The path of objects of a kind: of the collection in a namespace, or in the whole cluster."""

    kind: Kind
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        root = f"/apis/{self.kind.group}" if self.kind.group else "/api"
        parts = [root, self.kind.version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        return "/".join(parts)


class Discovery:
    """The server's kinds, read once, and again when one is missing; safe to use from several threads."""

    def __init__(self, get: Callable[[str], Json]) -> None:
        self._get = get
        self._lock = threading.Lock()
        self._kinds: dict[Kind, Endpoint] = {}
        self._read_at = 0.0

    def find(self, kind: Kind) -> Endpoint:
        """The endpoint of a kind.

        Raises:
            NoSuchKindError: the server does not have it.
        """
        if kind not in self._kinds:
            self._refresh()
        if kind not in self._kinds:
            raise NoSuchKindError(kind)
        return self._kinds[kind]

    def forget(self) -> None:
        """Reads again at the next lookup, however recent the last answer: a CRD was written or deleted."""
        with self._lock:
            self._kinds, self._read_at = {}, 0.0

    def _refresh(self) -> None:
        with self._lock:
            if self._kinds and time.monotonic() - self._read_at < _REFRESH_SECONDS:
                return
            self._kinds = {
                endpoint.kind: endpoint for root in ("/api", "/apis") for endpoint in _endpoints(self._get(root))
            }
            self._read_at = time.monotonic()


def _endpoints(listing: Json) -> list[Endpoint]:
    return [
        Endpoint(
            Kind(group["metadata"].get("name", ""), version["version"], resource["responseKind"]["kind"]),
            resource["resource"],
            resource["scope"] == "Namespaced",
        )
        for group in listing.get("items", [])
        for version in group.get("versions", [])
        for resource in version.get("resources", [])
        if "responseKind" in resource
    ]
