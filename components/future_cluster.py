"""A cluster that does not exist yet."""

from collections.abc import Iterator, Mapping, Sequence

from components.cluster import NO_PAIRS, Cluster, ClusterUnreachableError, Connection, Sent
from core.body import Body


class FutureCluster(Cluster):
    """The cluster that another resource of the program will create, in a preview: nothing exists in it."""

    exists = False

    def __init__(self, connection: Connection) -> None:
        """`connection`: its kubeconfig is an output that is not known yet."""
        self.connection = connection

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NO_PAIRS,
        headers: Mapping[str, str] = NO_PAIRS,
        body: Sent = None,
    ) -> Body | None:
        return None

    def stream(self, path: str, *, query: Mapping[str, str] = NO_PAIRS, follow: bool = False) -> Iterator[bytes]:
        return iter(())

    def ask_pod(self, namespace: str, pod: str, port: int, path: str) -> bytes | None:
        return None

    def exec(
        self, namespace: str, pod: str, container: str, command: Sequence[str], *, seconds: int
    ) -> tuple[str, str]:
        raise ClusterUnreachableError("the cluster does not exist yet")

    def renew(self) -> None:
        """It has no credentials."""
