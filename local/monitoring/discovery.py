"""Finds what Prometheus scrapes, as its own `kubernetes_sd_config` does, which Debian's package is built without.

Run as a program it writes the targets into files for `file_sd_configs`, again and again.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from components.monitoring.targets import meta_label
from core.body import ReadOnlyBody
from local.host_pods.states import HostPod, read_states
from local.supervision import Program, of_module

NAME = "targets"

EVERY_SECONDS = 5.0

Group = dict[str, Any]
"""An entry of a file of `file_sd_configs`: `targets` with `labels`."""

Here = Mapping[tuple[str, str], Mapping[int, int]]
"""By namespace and name of a pod whose program runs on this machine: its ports, by those of the pod."""


def groups(
    pods: Sequence[ReadOnlyBody], services: Iterable[ReadOnlyBody], slices: Iterable[ReadOnlyBody], here: Here | None
) -> dict[str, list[Group]]:
    """The targets by role. `here`: on simulated nodes, where no other pod has a process; None on a real node."""
    return {"pod": list(_of_pods(pods, here)), "endpointslice": list(_of_services(services, slices, here))}


def programs_here(pods: Iterable[ReadOnlyBody], running: Iterable[HostPod]) -> Here:
    """The pods whose programs run on this machine: those of the Deployments that host-pods runs."""
    found = {}
    ports = {each.deployment: each.ports for each in running if each.state == "Running"}
    for pod in pods:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        # `<deployment>-<digest of its template>-<generated>`
        if mine := ports.get(f"{namespace}/{name.rpartition('-')[0].rpartition('-')[0]}"):
            found[namespace, name] = mine
    return found


def _of_pods(pods: Iterable[ReadOnlyBody], here: Here | None) -> Iterator[Group]:
    for pod in pods:
        named = _labels("pod", pod) | {"__meta_kubernetes_pod_phase": pod["status"].get("phase", "")}
        spec, own = pod["spec"], (pod["metadata"]["namespace"], pod["metadata"]["name"])
        for container in (*spec["containers"], *(spec.get("initContainers") or ())):
            for port in container.get("ports") or ():
                label = {"__meta_kubernetes_pod_container_port_name": port.get("name", "")}
                if target := _target(pod["status"].get("podIP"), port["containerPort"], own, here):
                    yield {"targets": [target], "labels": named | label}


def _of_services(
    services: Iterable[ReadOnlyBody], slices: Iterable[ReadOnlyBody], here: Here | None
) -> Iterator[Group]:
    known = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in services}
    for piece in slices:
        metadata = piece["metadata"]
        service = known.get(
            (metadata["namespace"], (metadata.get("labels") or {}).get("kubernetes.io/service-name", ""))
        )
        for port in (piece.get("ports") or ()) if service else ():
            label = {"__meta_kubernetes_endpointslice_port_name": port.get("name") or ""}
            targets = [
                target
                for each in piece.get("endpoints") or ()
                for address in each["addresses"]
                if (target := _target(address, port["port"], _pod_of(metadata["namespace"], each), here))
            ]
            if targets:
                yield {"targets": targets, "labels": _labels("service", service or {}) | label}


def _pod_of(namespace: str, endpoint: ReadOnlyBody) -> tuple[str, str]:
    return namespace, (endpoint.get("targetRef") or {}).get("name", "")


def _target(address: str | None, port: int, pod: tuple[str, str], here: Here | None) -> str | None:
    if here is None:
        return f"{address}:{port}" if address else None
    ports = here.get(pod) or {}
    return f"127.0.0.1:{ports[port]}" if port in ports else None


def _labels(of: Literal["pod", "service"], body: ReadOnlyBody) -> dict[str, str]:
    """The labels of an object, before those of its targets (prometheus.io, kubernetes_sd_config)."""
    metadata = body["metadata"]
    own = {"__meta_kubernetes_namespace": metadata["namespace"], f"__meta_kubernetes_{of}_name": metadata["name"]}
    return own | {meta_label(of, name): value for name, value in (metadata.get("labels") or {}).items()}


def write(folder: Path, found: Mapping[str, Sequence[Group]]) -> None:
    """Writes a file for each role, atomically."""
    for role, each in found.items():
        file = folder / f"{role}.json"
        file.with_suffix(".new").write_text(json.dumps(each))
        file.with_suffix(".new").rename(file)


def program(run: Path, folder: Path, *, simulated: bool) -> Program:
    """The program of a rehearsal that writes the targets into a folder."""
    nodes = "simulated" if simulated else "real"
    return of_module(NAME, "local.monitoring.discovery", run, folder, nodes)


def _serve(run: Path, folder: Path, *, simulated: bool) -> None:
    """Runs for ever. Requests that the API server refuses are repeated."""
    api = config.new_client_from_config(str(run / "kubeconfigs" / "admin"))
    core, discovery = client.CoreV1Api(api), client.DiscoveryV1Api(api)
    lists = (
        core.list_pod_for_all_namespaces,
        core.list_service_for_all_namespaces,
        discovery.list_endpoint_slice_for_all_namespaces,
    )
    while True:
        try:
            pods, services, slices = (api.sanitize_for_serialization(each())["items"] for each in lists)
            here = programs_here(pods, read_states(run)) if simulated else None
            write(folder, groups(pods, services, slices, here))
        except (client.ApiException, HTTPError) as error:
            print(f"{NAME}: {error}", flush=True)
        time.sleep(EVERY_SECONDS)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), Path(sys.argv[2]), simulated=sys.argv[3] == "simulated")
