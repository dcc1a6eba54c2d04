"""What a cluster admin relies on when KubeRay's tree is rendered and adapted to the operator's settings."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.manifest_files import KustomizeError, ManifestError, UnexpectedManifestError, render
from components.operator.manifests import needed, operator_objects
from components.operator.settings import OperatorSettings, Toleration

Tree = list[dict[str, Any]]


def objects(tree: Tree, **settings: Any) -> dict[tuple[str, str | None, str], dict[str, Any]]:
    """The operator's objects by kind, namespace and name."""
    return {
        (body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]): body
        for stage in operator_objects(tree, OperatorSettings(**settings))
        for body in stage
    }


def deployment(tree: Tree, **settings: Any) -> dict[str, Any]:
    return objects(tree, **settings)["Deployment", "ray-system", "kuberay-operator"]


def container(tree: Tree, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = deployment(tree, **settings)["spec"]["template"]["spec"]["containers"][0]
    return found


def test_the_namespace_comes_first_then_access_then_the_operator(tree: Tree) -> None:
    stages = [{body["kind"] for body in stage} for stage in operator_objects(tree, OperatorSettings())]
    assert stages == [
        {"Namespace"},
        {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
        {"Deployment", "Service"},
    ]
    labels = objects(tree)["Namespace", None, "ray-system"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    """Pulumi would, ten seconds longer than for the Deployment."""
    metadata = objects(tree)["Service", "ray-system", "kuberay-operator"]["metadata"]
    assert metadata["annotations"]["pulumi.com/skipAwait"] == "true"


def test_namespaced_objects_are_in_the_operators_namespace(tree: Tree) -> None:
    made = objects(tree, namespace="kuberay")
    assert ("Namespace", None, "kuberay") in made
    assert {namespace for _, namespace, _ in made} == {None, "kuberay"}
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        bindings = [body for (made_kind, _, _), body in made.items() if made_kind == kind]
        assert {subject["namespace"] for body in bindings for subject in body["subjects"]} == {"kuberay"}


def test_fields_that_are_not_set_stay_as_in_kuberays_tree(tree: Tree) -> None:
    shipped = next(body for body in tree if body["kind"] == "Deployment")
    assert deployment(tree)["spec"] == shipped["spec"]


def test_the_rendered_tree_itself_is_not_changed(tree: Tree) -> None:
    before = str(tree)
    operator_objects(tree, OperatorSettings(namespace="kuberay", watch_namespaces=("a",), batch_scheduler="volcano"))
    assert str(tree) == before


def test_it_has_the_rights_of_a_feature_gate_only_with_the_gate(tree: Tree) -> None:
    shipped = next(body for body in tree if body["kind"] == "ClusterRole")["rules"]
    gates = {"RayCronJob": True, "RayServiceIncrementalUpgrade": True}
    assert objects(tree, feature_gates=gates)["ClusterRole", None, "kuberay-operator"]["rules"] == shipped
    without = objects(tree)["ClusterRole", None, "kuberay-operator"]["rules"]
    cut = {resource for rule in shipped for resource in rule["resources"]}
    cut -= {resource for rule in without for resource in rule["resources"]}
    of_cron_jobs = {"raycronjobs", "raycronjobs/status", "raycronjobs/finalizers"}
    assert cut == {"gateways", "httproutes", *of_cron_jobs}


OF_1_7 = [
    {"apiGroups": [""], "resources": ["persistentvolumeclaims", "pods"], "verbs": ["create", "delete", "get", "watch"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "delete", "get", "update"]},
    {"apiGroups": ["cert-manager.io"], "resources": ["issuers"], "verbs": ["create", "get"]},
    {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["create", "delete"]},
]
"""Rules of KubeRay 1.7.0 (ray-operator/config/rbac/role.yaml)."""


def test_without_the_gates_of_1_7_it_only_watches_claims_and_creates_secrets() -> None:
    assert list(needed(OF_1_7, {})) == [
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get", "watch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "get", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get"]},
    ]
    assert [rule["resources"] for rule in needed(OF_1_7, {"RayClusterNetworkPolicy": True})][-1] == ["networkpolicies"]


def test_an_operator_of_some_namespaces_has_roles_only_in_these(tree: Tree) -> None:
    made = objects(tree, watch_namespaces=("team-a", "team-b"))
    everywhere = objects(tree)["ClusterRole", None, "kuberay-operator"]
    for namespace in ("team-a", "team-b"):
        role = made["Role", namespace, "kuberay-operator"]
        binding = made["RoleBinding", namespace, "kuberay-operator"]
        assert binding["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "kuberay-operator",
        }
        assert len(role["rules"]) == len(everywhere["rules"]) - 1
        assert not any("ingressclasses" in rule["resources"] for rule in role["rules"])
    assert made["ClusterRole", None, "kuberay-operator"]["rules"] == [
        {"apiGroups": ["networking.k8s.io"], "resources": ["ingressclasses"], "verbs": ["get", "list", "watch"]}
    ]
    assert "--watch-namespace=team-a,team-b" in container(tree, watch_namespaces=("team-a", "team-b"))["args"]


@pytest.mark.parametrize("watched", [(), ("team-a",)])
@pytest.mark.parametrize(
    ("scheduler", "group"), [("volcano", "scheduling.volcano.sh"), ("scheduler-plugins", "scheduling.x-k8s.io")]
)
def test_a_batch_scheduler_adds_the_rules_for_its_pod_groups(
    tree: Tree, scheduler: Any, group: str, watched: tuple[str, ...]
) -> None:
    made = objects(tree, batch_scheduler=scheduler, watch_namespaces=watched)
    role = made["Role", "team-a", "kuberay-operator"] if watched else made["ClusterRole", None, "kuberay-operator"]
    assert any(rule["apiGroups"] == [group] and rule["resources"] == ["podgroups"] for rule in role["rules"])
    assert f"--batch-scheduler={scheduler}" in container(tree, batch_scheduler=scheduler)["args"]


def test_replicas_elect_a_leader_on_several_nodes_and_one_keeps_running_while_nodes_are_drained(tree: Tree) -> None:
    made = objects(tree, replicas=2)
    spec = made["Deployment", "ray-system", "kuberay-operator"]["spec"]
    assert (spec["replicas"], "--enable-leader-election=true" in container(tree, replicas=2)["args"]) == (2, True)
    [spread] = spec["template"]["spec"]["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["labelSelector"]) == ("kubernetes.io/hostname", spec["selector"])
    budget = made["PodDisruptionBudget", "ray-system", "kuberay-operator"]["spec"]
    assert budget == {"maxUnavailable": 1, "selector": spec["selector"]}
    # A single one is as in KubeRay's tree, and does not block a node drain.
    assert not any(kind == "PodDisruptionBudget" for kind, _, _ in objects(tree))


def test_feature_gates_are_added_to_those_of_the_tree(tree: Tree) -> None:
    arguments = container(tree, feature_gates={"RayCronJob": True, "RayMultiHostIndexing": False})["args"]
    assert arguments == ["--feature-gates=RayClusterStatusConditions=true,RayCronJob=true,RayMultiHostIndexing=false"]


def test_log_format_environment_image_secrets_and_placement_reach_the_pod(tree: Tree) -> None:
    settings = {
        "log_format": "console",
        "env": {"CLUSTER_DOMAIN": "corp.example"},
        "image": "mirror.example/kuberay/operator:v1.6.2",
        "image_pull_secrets": ("mirror",),
        "node_selector": {"role": "infra"},
        "tolerations": ({"key": "infra", "operator": "Exists"},),
        "resources": {"cpu": "500m", "memory": "1Gi"},
    }
    pod = deployment(tree, **settings)["spec"]["template"]["spec"]
    [operator] = pod["containers"]
    assert "--log-stdout-encoder=console" in operator["args"]
    assert operator["env"] == [{"name": "CLUSTER_DOMAIN", "value": "corp.example"}]
    assert operator["image"] == "mirror.example/kuberay/operator:v1.6.2"
    amounts = {"cpu": "500m", "memory": "1Gi"}
    assert operator["resources"] == {"requests": amounts, "limits": amounts}
    assert pod["imagePullSecrets"] == [{"name": "mirror"}]
    assert pod["nodeSelector"] == {"role": "infra"}
    assert pod["tolerations"] == [{"key": "infra", "operator": "Exists"}]


def test_an_operator_of_any_tree_meets_the_level_of_its_namespace(tree: Tree) -> None:
    """The trees of 1.5 set no capabilities, so the level `restricted` would refuse the pod."""
    deployment = next(body for body in tree if body["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["securityContext"].pop("capabilities")
    assert container(tree)["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_tree_of_another_version_or_without_an_operator_is_refused(tree: Tree) -> None:
    with pytest.raises(UnexpectedManifestError, match=r"is not KubeRay v1.6.1: it has quay.io/kuberay/operator:v1.6.2"):
        operator_objects(tree, OperatorSettings(version="1.6.1"))
    crds = [body for body in tree if body["kind"] == "CustomResourceDefinition"]
    with pytest.raises(UnexpectedManifestError, match="it has no Deployment"):
        operator_objects(crds, OperatorSettings())


def test_the_tree_is_kuberays_at_the_tag_of_the_version_unless_a_location_is_set() -> None:
    github = "https://github.com/ray-project/kuberay//ray-operator/config/default?ref=v1.6.2"
    assert OperatorSettings(version="1.6.2").tree == github
    assert OperatorSettings(location="../kuberay/config/default").tree == "../kuberay/config/default"


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "infra", "value": "ray", "effect": "NoExecute", "tolerationSeconds": 60},
        {"key": "example.com/infra"},
    ],
)
def test_a_toleration_that_the_api_server_takes_is_accepted(toleration: dict[str, Any]) -> None:
    assert Toleration(**toleration).model_dump(by_alias=True, exclude_unset=True) == toleration


URL = "https://kuberay.example/default?ref=v1.6.2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A kustomization like KubeRay's: its base is another one beside it, which has a manifest."""
    files = {
        "default/kustomization.yaml": "namespace: ray\nresources: [../manager]\n",
        "manager/kustomization.yaml": "resources: [manager.yaml]\n",
        "manager/manager.yaml": "kind: Deployment\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "default"


def times_rendered(calls: Path) -> int:
    return len(calls.read_text().splitlines())


def test_a_release_is_fetched_once_and_a_location_that_may_change_is_rendered_each_time(
    kubectl_that_renders: Path,
) -> None:
    first = render(URL, pinned=True)
    assert render(URL, pinned=True) == first
    assert kubectl_that_renders.read_text() == f"kustomize {URL}\n"
    render(URL)
    render(URL)
    assert times_rendered(kubectl_that_renders) == 3


@pytest.mark.parametrize(
    "changed", ["default/kustomization.yaml", "manager/kustomization.yaml", "manager/manager.yaml", "bin/kubectl"]
)
def test_a_folder_is_rendered_once_and_again_once_a_file_or_the_renderer_has_changed(
    kubectl_that_renders: Path, folder: Path, tmp_path: Path, changed: str
) -> None:
    assert render(str(folder)) == render(str(folder))
    assert times_rendered(kubectl_that_renders) == 1
    file = tmp_path / changed
    file.write_text(file.read_text() + "# another line\n")
    for _ in range(2):
        render(str(folder))
        assert times_rendered(kubectl_that_renders) == 2


@pytest.mark.parametrize(
    "kustomization",
    [
        "resources: [../manager, 'https://example.com/more.yaml']",
        "resources: [../manager, 'github.com/ray-project/kuberay//ray-operator/config/crd']",
        "configMapGenerator: [{name: settings, envs: [settings.env]}]",
        "resources: [",
        "[]",
    ],
)
def test_a_folder_that_may_refer_to_other_files_is_rendered_each_time(
    kubectl_that_renders: Path, folder: Path, kustomization: str
) -> None:
    (folder / "kustomization.yaml").write_text(kustomization)
    render(str(folder))
    render(str(folder))
    assert times_rendered(kubectl_that_renders) == 2


@pytest.mark.parametrize("spoil", [lambda file: file.write_text("{"), Path.unlink])
def test_a_broken_cache_file_is_rendered_again(
    kubectl_that_renders: Path, folder: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    first = render(str(folder))
    (kept,) = (tmp_path / "cache" / "manifests").iterdir()
    spoil(kept)
    assert render(str(folder)) == first


def test_without_a_cache_folder_a_tree_is_still_rendered(
    kubectl_that_renders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_PLATFORM_CACHE", os.devnull)
    assert render(URL, pinned=True)


def test_without_kubectl_or_kustomize_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KustomizeError, match=r"neither kubectl nor kustomize is on the PATH.*install kubectl"):
        render("config/default")


def test_a_failure_shows_the_output_of_kubectl_and_names_the_setting(
    kubectl_that_renders: Path, tmp_path: Path
) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.write_text("#!/bin/sh\necho 'error: must build at directory: not a valid directory' >&2\nexit 1\n")
    with pytest.raises(KustomizeError, match=r"config/none failed: error: must build at directory.*set `location`"):
        render("config/none")


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: [", "is not YAML"), ("since: 2026-11-21", "is not YAML of Kubernetes"), ("", "renders to is nothing")],
)
def test_an_invalid_tree_is_refused(kubectl_that_renders: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bin" / "kubectl").write_text(f"#!/bin/sh\necho '{text}'\n")
    with pytest.raises(ManifestError, match=message):
        render("config/default")
