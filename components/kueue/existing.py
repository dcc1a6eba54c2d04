"""How to tell which Kueue others have installed."""

from ..installed import Installed
from ..queues.kueue import API_VERSION
from .manifests import MANAGER
from .supported import RELEASES

KUEUE = Installed(
    "Kueue",
    "scheduler.kueue",
    MANAGER,
    "clusterqueues.kueue.x-k8s.io",
    crd_version=API_VERSION.rpartition("/")[2],
    releases=RELEASES,
)
