"""The modules of the Kubernetes client that a preview loads: a typed API takes up to a second of CPU time."""

import json
import subprocess
import sys
from pathlib import Path

READS = """
import sys
from components.cluster import ClusterUnreachableError
from components.kubernetes_cluster import KubernetesCluster
from components.operator.upgrade import look
from components.rollout.pods import Pods
for read in (Pods(KubernetesCluster(), "team-a", "training").all, lambda: look(KubernetesCluster(), "ray-system")):
    try:
        read()
    except ClusterUnreachableError:
        pass
    else:
        sys.exit("something answered")
print([name for name in sys.modules if name.startswith("kubernetes.client.api.")])
"""


def test_pods_and_the_operator_are_read_without_a_typed_api(tmp_path: Path) -> None:
    file = tmp_path / "config"
    server = {"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}
    contexts = [{"name": "none", "context": {"cluster": "none", "user": "none"}}]
    users = [{"name": "none", "user": {}}]
    file.write_text(json.dumps({"current-context": "none", "contexts": contexts, "clusters": [server], "users": users}))
    done = subprocess.run([sys.executable, "-c", READS], env={"KUBECONFIG": str(file)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
