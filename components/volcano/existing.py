"""How to tell which Volcano others have installed."""

from ..installed import Installed
from .manifests import SCHEDULER
from .supported import RELEASES

VOLCANO = Installed(
    "Volcano", "scheduler.volcano", SCHEDULER, "queues.scheduling.volcano.sh", crd_version="v1beta1", releases=RELEASES
)
