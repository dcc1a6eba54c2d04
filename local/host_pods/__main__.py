"""`python -m local.host_pods RUN`: serves the rehearsal of that run folder until it gets a signal to stop."""

import sys
from pathlib import Path

from local.host_pods.pods import HostPods

if __name__ == "__main__":
    HostPods(Path(sys.argv[1])).serve()
