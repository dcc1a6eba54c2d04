"""A cluster that does not exist yet."""

from collections.abc import Iterator
from typing import Any

from components.cluster import Cluster, ClusterUnreachableError, Connection
from core.body import Body


class FutureCluster(Cluster):
    """The cluster that another resource of the program will create, in a preview: nothing exists in it."""

    exists = False

    def __init__(self, connection: Connection) -> None:
        """`connection`: its kubeconfig is an output that is not known yet."""
        self.connection = connection

    def request(self, *_: Any, **__: Any) -> Body | None:
        return None

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        return iter(())

    def ask_pod(self, *_: Any) -> bytes | None:
        return None

    def exec(self, *_: Any, **__: Any) -> tuple[str, str]:
        raise ClusterUnreachableError("the cluster does not exist yet")

    def renew(self) -> None:
        """It has no credentials."""
