"""A session with a client that a test has."""

from kubernetes.client import ApiClient

from components.kubernetes_cluster import KubernetesCluster


class ClientSession(KubernetesCluster):
    """A session that uses this client."""

    def __init__(self, client: ApiClient) -> None:
        super().__init__()
        self._client = client
