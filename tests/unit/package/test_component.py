"""RayPlatform in a program: its settings, its packages, and a program that also creates the Kubernetes cluster."""

from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes
import pytest
from pulumi.provider.experimental.analyzer import Analyzer

import stacks.program.build
from components.cluster import Cluster, ClusterUnreachableError, Connection
from components.future_cluster import FutureCluster
from components.pulumi_internals import unknown
from ray_platform import NodePool, RayPlatform, RayPlatformArgs, StackSettings, TenantSettings, load
from ray_platform.component import Settings, _values
from stacks.load import parse
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record

ROOT = Path(__file__).parents[3]

FILES = [*ROOT.glob("Pulumi.*.yaml"), ROOT / "tests" / "stack_files" / "good" / "every-setting.yaml"]


def made(args: Any) -> Recorder:
    return record(lambda: RayPlatform("ray", args))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_typed_settings_are_checked_as_the_values_that_they_were_made_of(file: Path) -> None:
    settings = load(file)
    assert parse(_values(settings)) == settings


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"nodes": [{"pool": "a100"}]}, "ray-platform:nodes[0].count: "),
        ({"split": {"stacks": 2}}, "ray-platform:split: divides a stack of ray-platform's own program"),
        ({"extends": "base.yaml"}, "ray-platform:extends: has paths of files: pass load"),
        (
            StackSettings(tenants=(TenantSettings(name="a"), TenantSettings(name="a"))),
            "ray-platform:tenants[1].name: ",
        ),
    ],
    ids=["value", "split", "extends", "between models"],
)
def test_settings_that_are_not_valid_are_one_error(args: Any, message: str) -> None:
    with pytest.raises(pulumi.RunError) as refused:
        made(args)
    assert str(refused.value).startswith(message)


def test_a_stack_file_that_is_not_valid_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "platform.yaml"
    file.write_text("config: {ray-platform:nodes: [{pool: a100}]}")
    with pytest.raises(pulumi.RunError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}:1:31: ray-platform:nodes[0].count: ")


def test_a_mapping_has_the_keys_of_a_stack_file(kubectl_that_renders: Path) -> None:
    recorder = made({"nodes": [{"pool": "a100", "count": 1, "cpu": 8, "memory": "64Gi"}], "tenants": [{"name": "a"}]})
    assert recorder.registered["platform"].parent == "ray"
    pool = NodePool(pool="a100", count=1, cpu="8", memory="64Gi")
    typed = made(StackSettings(nodes=(pool,), tenants=(TenantSettings(name="a"),)))
    assert typed.registered == recorder.registered


def test_without_settings_those_of_the_running_stack_are_used(
    kubectl_that_renders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi.runtime, "get_config_env", lambda: {"ray-platform:tenants": '[{"name": "b"}]'})
    monkeypatch.setattr(pulumi.runtime, "get_config_secret_keys_env", list)
    assert "platform-namespace-b" in made(None).registered


@pytest.mark.parametrize("settings", [StackSettings, NodePool])
def test_the_host_for_programs_in_other_languages_refuses_the_settings(settings: type) -> None:
    """docs/package.md reports it under its limits."""
    with pytest.raises(TypeError, match=r"issubclass\(\) arg 1 must be a class"):
        Analyzer("ray-platform").analyze_type(settings, is_component_output=False)


UID = "0f5c2f0e-1111-4c1e-9d0a-3a2b1c0d9e8f"

KUBE_SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": UID}}

TRAINING = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "a100"}}

SETTINGS: dict[str, Any] = {
    "nodes": [{"pool": "a100", "count": 1, "cpu": 64, "memory": "1000Gi", "gpus": 8}],
    "tenants": [{"name": "a"}],
}

EXISTING = {"install": "existing"}

SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "content"}
"""The content as a secret in a request to the engine."""


class Sessions:
    """The sessions of the program by their kubeconfig's content, and the cluster with which they are."""

    def __init__(self) -> None:
        self.contents: list[str | None] = []
        self.cluster = FakeCluster(KUBE_SYSTEM)

    def __call__(self, connection: Connection, content: str | None = None) -> Cluster:
        self.contents.append(content)
        self.cluster.connection = connection
        return self.cluster


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch, kubectl_that_renders: Path) -> Sessions:
    built = Sessions()
    monkeypatch.setattr(stacks.program.build, "KubernetesCluster", built)
    return built


def built(kubeconfig: str | None, settings: Settings = SETTINGS, preview: bool = False) -> Recorder:
    """A program whose cluster has this kubeconfig; None: it is not known yet."""

    def program() -> None:
        cluster = pulumi.CustomResource("cloud:index:Cluster", "new", {"kubeconfig": None})
        content = unknown() if kubeconfig is None else pulumi.Output.from_input(kubeconfig)
        # As an output of the resource.
        output = pulumi.Output.all(cluster.urn, content).apply(lambda known: str(known[1]))
        RayPlatform("ray", RayPlatformArgs(settings, output))

    return record(program, preview=preview)


def test_an_update_reads_the_new_cluster(sessions: Sessions) -> None:
    recorder = built("content")
    assert sessions.contents == ["content"]
    assert "/api/v1/namespaces/kube-system" in {each.path for each in sessions.cluster.requests}
    assert recorder.registered["cluster"].inputs["kubeconfig"] == SECRET
    assert recorder.registered["platform-kuberay-crds"].inputs["connection"] == {
        **SECRET,
        "value": {"kubeconfig": "content"},
    }


def test_what_connects_is_deleted_before_the_cluster(sessions: Sessions) -> None:
    recorder = built("content")
    for name in ("cluster", "platform-kuberay-crd-guard", "a/guard"):
        assert "new" in recorder.registered[name].dependencies


def test_a_preview_of_a_new_cluster_registers_the_same_resources(
    sessions: Sessions, in_memory: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {**SETTINGS, "tenants": [{"name": "a", "clusters": [TRAINING]}]}
    preview = built(None, settings, preview=True)
    assert (sessions.contents, sessions.cluster.requests, in_memory.requests) == ([], [], [])
    assert preview.kinds() == built("content", settings, preview=True).kinds()
    assert capsys.readouterr().err == ""


def test_such_a_preview_keeps_the_recorded_cluster(sessions: Sessions) -> None:
    exported: dict[str, Any] = {}

    def program() -> None:
        exported.update(RayPlatform("ray", RayPlatformArgs({}, unknown())).exported)

    record(program, last={"kubernetes": {"cluster": UID}})
    assert exported["kubernetes"] == {"cluster": UID}


@pytest.mark.parametrize(
    "settings",
    [
        {"operator": EXISTING},
        {"scheduler": {"volcano": EXISTING}},
        {"scheduler": {"kueue": EXISTING}},
    ],
    ids=["operator", "volcano", "kueue"],
)
def test_the_version_of_an_existing_installation_is_not_known_yet(sessions: Sessions, settings: dict[str, Any]) -> None:
    built(None, settings, preview=True)
    with pytest.raises(pulumi.RunError, match="install is existing, and the cluster has"):
        built("content", settings)


def test_an_external_redis_is_checked_later(sessions: Sessions, capsys: pytest.CaptureFixture[str]) -> None:
    external = {"address": "redis.example:6379", "secretName": "redis", "secretNamespace": "shared"}
    ray = {**TRAINING, "faultTolerance": True}
    tenants = [{"name": "a", "clusters": [ray]}]
    recorder = built(
        None, {**SETTINGS, "redis": {"mode": "external", "external": external}, "tenants": tenants}, preview=True
    )
    assert "platform-redis-secret-a" in recorder.registered
    assert "could not be checked" not in capsys.readouterr().err


def test_an_empty_kubeconfig_is_refused(sessions: Sessions) -> None:
    with pytest.raises(pulumi.RunError, match="the given kubeconfig has no content"):
        built("")


def test_the_ambient_kubeconfig_is_the_default(sessions: Sessions) -> None:
    recorder = record(lambda: RayPlatform("ray", {}))
    assert sessions.contents == [None]
    assert "kubeconfig" not in recorder.registered["cluster"].inputs


def test_a_provider_without_its_kubeconfig_is_refused(sessions: Sessions) -> None:
    def program(args: RayPlatformArgs | Settings) -> None:
        provider = pulumi_kubernetes.Provider("mine", kubeconfig="content")
        RayPlatform("ray", args, pulumi.ResourceOptions(provider=provider))

    with pytest.raises(pulumi.RunError, match=r"pass the same with RayPlatformArgs\(settings, kubeconfig=...\)"):
        record(lambda: program({}))
    assert record(lambda: program(RayPlatformArgs({}, "content"))).registered["platform-kuberay-crds"]
    assert record(lambda: program({"kubernetes": {"context": "prod"}})).registered["platform-kuberay-crds"]


def test_nothing_exists_in_a_future_cluster() -> None:
    cluster = FutureCluster(Connection("prod", "content"))
    assert cluster.get("v1", "pods", "a", "head") is None
    assert cluster.list("v1", "pods") is None
    assert list(cluster.log("a", "head", "ray-head")) == []
    assert cluster.ask_pod("a", "head", 8265, "/") is None
    with pytest.raises(ClusterUnreachableError, match="does not exist yet"):
        cluster.exec("a", "head", "ray-head", ["ray"], seconds=1)
    assert str(cluster.connection) == "context 'prod' of the given kubeconfig"
    assert str(Connection(kubeconfig="content")) == "the given kubeconfig"
    assert "content" not in repr(cluster.connection)
