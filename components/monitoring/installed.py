"""Whether the cluster has the kinds of the Prometheus operator. Only reads."""

from collections.abc import Iterable

from components.cluster import Cluster
from components.monitoring.manifests import OPERATOR_API

_GROUP = OPERATOR_API.partition("/")[0]

_DEFINITIONS = ("apiextensions.k8s.io/v1", "customresourcedefinitions")


class MissingKindsError(Exception):
    """The cluster lacks kinds of the Prometheus operator; the text names them, and the setting."""


def check_kinds(cluster: Cluster, kinds: Iterable[str]) -> None:
    """Raises MissingKindsError unless the cluster has these kinds of the Prometheus operator; ClusterUnreachableError
    if it cannot be read."""
    definitions = [f"{kind.lower()}s.{_GROUP}" for kind in sorted(kinds)]
    missing = [name for name in definitions if cluster.get(*_DEFINITIONS, None, name) is None]
    if missing:
        raise MissingKindsError(
            f"monitoring.mode is prometheusOperator, and the cluster lacks {', '.join(missing)}: install the "
            "Prometheus operator first, or set monitoring.mode to scrapeConfig"
        )
