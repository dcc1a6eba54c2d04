"""A real node, as its operator sees it."""

import json
import subprocess
from typing import Any

import yaml
from kubernetes import client
from urllib3.exceptions import HTTPError

from core.pods import PodSecurityLevel, level_labels
from local import tools
from local.rehearsal import Rehearsal

KUBECTL_SECONDS = 600.0


def in_its_network(rehearsal: Rehearsal, but: int = 0) -> list[str]:
    """The begin of a command that runs in the network of a real node. `but`: the id of a process of `unshare` that is
    another one's."""
    (outside,) = (each for each in rehearsal.supervisor.strays() if each.name() == "unshare" and each.pid != but)
    return ["nsenter", f"--net=/proc/{outside.children()[0].pid}/ns/net"]


class Node:
    """A real node with its control plane."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.rehearsal = rehearsal

    def create_namespace(self, name: str, level: PodSecurityLevel = "restricted") -> None:
        """A namespace in which a level of Pod Security is enforced, by default as in the tenant's. Returns once it has
        the account that its pods need, which Kubernetes creates a moment later."""
        metadata = {"name": name, "labels": level_labels(level)}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        self.kubectl("create", "-f", "-", given=yaml.safe_dump(body))
        self.kubectl("wait", "--for=create", "--timeout=60s", "--namespace", name, "serviceaccount/default")

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """The output of kubectl. Fails the test with the error output if it fails."""
        done = subprocess.run(
            self.command(*arguments), input=given, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}"
        return done.stdout

    def refusal(self, *arguments: str, given: str = "") -> str:
        """The error output of kubectl. Fails the test if it succeeds."""
        done = subprocess.run(
            self.command(*arguments), input=given, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False
        )
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} did it:\n{done.stdout}"
        return done.stderr

    def pods(self, label: str, namespace: str) -> dict[str, dict[str, Any]]:
        """Pods with a label that are not being deleted, by name."""
        # Tests poll, and kubectl takes a fifth of a CPU second.
        list_all: Any = client.CoreV1Api(self.rehearsal.client()).list_namespaced_pod
        try:
            answer = list_all(namespace, label_selector=label, _preload_content=False, _request_timeout=KUBECTL_SECONDS)
        except (client.ApiException, HTTPError) as error:
            raise AssertionError(f"the pods of {namespace} cannot be listed: {error}") from error
        found = json.loads(answer.data)["items"]
        return {pod["metadata"]["name"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}

    def evict(self, pod: str, namespace: str) -> None:
        """Evicts a pod, as `kubectl drain` does."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
        self.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(body))

    def evidence(self, since: float = 0.0) -> str:
        """For a failed test: nodes and pods, the last events, and the ends of the logs that have grown since a time."""
        parts = [self._try("get", "nodes,pods,rayclusters", "-A", "-o", "wide")]
        parts.append(_tail(self._try("get", "events", "-A", "--sort-by=.lastTimestamp")))
        logs = [
            *(self.rehearsal.run / "node" / "pod-logs").glob("*/*/*.log"),
            *self.rehearsal.supervisor.logs.glob("*"),
        ]
        for file in logs:
            if file.stat().st_mtime >= since:
                parts.append(f"--- {'/'.join(file.parts[-3:])}\n{_tail(file.read_text(errors='replace'))}")
        return "\n\n".join(parts)

    def _try(self, *arguments: str) -> str:
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=30, check=False)
        return f"{done.stdout}{done.stderr}"

    def command(self, *arguments: str) -> list[str]:
        """The command line that kubectl is run with."""
        program = tools.KUBERNETES.program("kubectl")
        return [str(program), f"--kubeconfig={self.rehearsal.kubeconfig}", *arguments]


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-25:])


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether a pod is Ready for its Services."""
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
