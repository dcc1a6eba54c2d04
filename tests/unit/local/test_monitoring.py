"""The rehearsal's Prometheus: what it scrapes, its configuration, and that it is missing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.monitoring.manifests import scrape_file
from components.monitoring.settings import MonitoringSettings
from local import report
from local.errors import RehearsalError
from local.host_pods.states import HostPod, read_states, write_states
from local.monitoring import prometheus
from local.monitoring.discovery import Group, groups, programs_here, write
from local.monitoring.prometheus import Prometheus, configuration
from local.rehearsal import Rehearsal
from local.supervision import State
from stacks.objects.monitoring import monitored
from tests.unit.planning.stacks import stack, tenant


def pod(name: str, address: str | None, *ports: tuple[str, int]) -> dict[str, Any]:
    container = {"name": "one", "ports": [{"name": label, "containerPort": port} for label, port in ports]}
    metadata = {"namespace": "ray-system", "name": name, "labels": {"app.kubernetes.io/name": "kuberay"}}
    return {"metadata": metadata, "spec": {"containers": [container]}, "status": {"phase": "Running", "podIP": address}}


PODS = [pod("kuberay-operator-5d4f-x2x", "10.0.0.1", ("http", 8080)), pod("new", None, ("metrics", 8080))]

SERVICES = [{"metadata": {"namespace": "ray-system", "name": "metrics", "labels": {"app": "volcano"}}}]

SLICE = {
    "metadata": {
        "namespace": "ray-system",
        "name": "metrics-1",
        "labels": {"kubernetes.io/service-name": "metrics"},
    },
    "ports": [{"name": "http", "port": 8080}],
    "endpoints": [
        {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "kuberay-operator-5d4f-x2x"}},
        {"addresses": ["10.0.0.2"]},
    ],
}

OTHER = {"metadata": {"namespace": "default", "name": "kubernetes"}, "ports": None, "endpoints": None}


def targets(found: list[Group]) -> list[str]:
    return [target for each in found for target in each["targets"]]


def test_on_a_real_node_targets_have_the_addresses_and_labels_of_their_pods() -> None:
    found = groups(PODS, SERVICES, [SLICE, OTHER], None)
    assert (targets(found["pod"]), targets(found["endpointslice"])) == (
        ["10.0.0.1:8080"],
        ["10.0.0.1:8080", "10.0.0.2:8080"],
    )
    assert found["pod"][0]["labels"] == {
        "__meta_kubernetes_namespace": "ray-system",
        "__meta_kubernetes_pod_name": "kuberay-operator-5d4f-x2x",
        "__meta_kubernetes_pod_label_app_kubernetes_io_name": "kuberay",
        "__meta_kubernetes_pod_phase": "Running",
        "__meta_kubernetes_pod_container_port_name": "http",
    }
    assert found["endpointslice"][0]["labels"]["__meta_kubernetes_service_label_app"] == "volcano"
    assert found["endpointslice"][0]["labels"]["__meta_kubernetes_endpointslice_port_name"] == "http"


def test_on_simulated_nodes_only_programs_of_this_machine_are_targets(tmp_path: Path) -> None:
    operator = HostPod("ray-system/kuberay-operator", "kuberay/operator", "Running", ports={8080: 23456})
    ended = HostPod("ray-system/ended", "kuberay/operator", "CrashLoopBackOff", ports={8080: 23457})
    write_states(tmp_path, [operator, ended])
    pods = [
        *PODS,
        pod("ended-5d4f-abc", "10.0.0.3", ("http", 8080)),
        pod("a-training-head", "10.0.0.4", ("http", 8080)),
    ]
    here = programs_here(pods, read_states(tmp_path))
    found = groups(pods, SERVICES, [SLICE], here)
    assert (targets(found["pod"]), targets(found["endpointslice"])) == (["127.0.0.1:23456"], ["127.0.0.1:23456"])
    write(tmp_path, found)
    assert json.loads((tmp_path / "pod.json").read_text()) == found["pod"]


def test_the_configuration_has_the_stacks_jobs_with_targets_from_files(tmp_path: Path) -> None:
    known = stack(tenant("team-a"), scheduler={"kueue": {}})
    parts = monitored(known)
    scrape = scrape_file(MonitoringSettings(mode="scrapeConfig"), parts)
    made = yaml.safe_load(configuration(scrape, tmp_path))
    own = {each["job_name"]: each for each in yaml.safe_load(scrape)["scrape_configs"]}
    jobs = {each["job_name"]: each for each in made["scrape_configs"]}
    assert own.keys() - jobs.keys() == {"kueue"}
    for name, job in jobs.items():
        role = own[name]["kubernetes_sd_configs"][0]["role"]
        assert job.pop("file_sd_configs") == [{"files": [f"{tmp_path}/{role}.json"], "refresh_interval": "5s"}]
        assert job == {key: value for key, value in own[name].items() if key != "kubernetes_sd_configs"}
    assert made["rule_files"] == ["rules.yaml"]


def test_a_stack_without_monitoring_has_the_default_rules_and_the_port_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Prometheus(tmp_path, "127.0.0.1", simulated=True)
    made.configure(stack(tenant("team-a")))
    before = made.url
    made.configure(stack(tenant("team-a")))
    assert made.url == before
    assert before.startswith("http://127.0.0.1:")
    assert not made.ready
    rules = yaml.safe_load((made.folder / "rules.yaml").read_text())
    assert [each["name"] for each in rules["groups"]] == ["ray-platform-records", "ray-platform-alerts"]
    monkeypatch.setattr(shutil, "which", lambda _name: "/usr/bin/prometheus")
    finder, itself = made.programs()
    assert finder.command[-1] == "simulated"
    assert f"--web.listen-address={before.removeprefix('http://')}" in itself.command


@pytest.mark.parametrize("running", [True, False])
def test_make_up_prints_its_url_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], running: bool
) -> None:
    rehearsal = Rehearsal(tmp_path, "simulated")
    rehearsal.prometheus.configure(stack(tenant("team-a")))
    state = State(prometheus.NAME, running, "", 1, "", tmp_path / "log")
    monkeypatch.setattr(Rehearsal, "states", lambda _self: [state])
    report.pages(rehearsal, "dev")
    assert (f"Prometheus:   {rehearsal.prometheus.url}" in capsys.readouterr().out) is running


def test_without_prometheus_the_error_tells_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        RehearsalError, match=r"apt-get install --no-install-recommends prometheus.*leave MONITORING out"
    ):
        prometheus.check()
