"""What a cluster admin relies on when Kueue's tree is adapted to the settings and provisioned."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from components.cluster import Connection
from components.kueue.component import Kueue, KueueArgs, KueueCertificate
from components.kueue.manifests import kueue_image, kueue_objects, webhook_names
from components.kueue.settings import KueueSettings
from components.manifest_files import UnexpectedManifestError
from components.scheduler_manifest import Certificate
from components.tls.issuing import new_certificate
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record

Tree = list[dict[str, Any]]

CERTIFICATE = Certificate("certificate", "certificate", "key", bundle="bundle", digest="digest")

MANAGER = "kueue-controller-manager"

OF_RAY = {f"{part}{kind}.kb.io" for part in "mv" for kind in ("raycluster", "rayjob", "rayservice")}

OF_KUEUE = {
    *(f"{part}{kind}.kb.io" for part in "mv" for kind in ("clusterqueue", "resourceflavor", "workload")),
    "vcohort.kb.io",
}


def stages(tree: Tree, **settings: Any) -> tuple[Tree, ...]:
    return kueue_objects(tree, KueueSettings.model_validate(settings), CERTIFICATE)


def objects(tree: Tree, **settings: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Kueue's objects by kind and name."""
    return {(body["kind"], body["metadata"]["name"]): body for stage in stages(tree, **settings) for body in stage}


def pod(tree: Tree, **settings: Any) -> dict[str, Any]:
    spec: dict[str, Any] = objects(tree, **settings)["Deployment", MANAGER]["spec"]["template"]["spec"]
    return spec


def webhooks(tree: Tree, **settings: Any) -> dict[str, dict[str, Any]]:
    found = objects(tree, **settings)
    return {each["name"]: each for (kind, _), body in found.items() if "Webhook" in kind for each in body["webhooks"]}


def configuration(tree: Tree, **settings: Any) -> dict[str, Any]:
    text = objects(tree, **settings)["ConfigMap", KueueSettings.CONFIG_MAP]["data"]["controller_manager_config.yaml"]
    return dict(yaml.safe_load(text))


def test_the_namespace_comes_first_then_access_and_webhooks_then_the_manager(tree: Tree) -> None:
    assert [{body["kind"] for body in stage} for stage in stages(tree)] == [
        {"Namespace"},
        {
            *("Secret", "ServiceAccount", "ConfigMap", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
            *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        },
        {"Deployment", "Service"},
    ]


def test_the_image_is_that_of_the_release_and_the_tree_is_not_changed(tree: Tree) -> None:
    before = str(tree)
    image = pod(tree, namespace="queues", replicas=2)["containers"][0]["image"]
    assert image == kueue_image("0.19.2") == "registry.k8s.io/kueue/kueue:v0.19.2"
    assert str(tree) == before


def test_a_tree_of_another_release_or_program_is_refused(tree: Tree) -> None:
    newer = [dict(body) for body in tree]
    for body in newer:
        if body["kind"] == "Deployment":
            body["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/kueue/kueue:v0.16.1"
    with pytest.raises(UnexpectedManifestError, match=r"is not Kueue 0\.19: it has .*v0\.16\.1.*Set scheduler\.kueue"):
        stages(newer)
    with pytest.raises(UnexpectedManifestError, match="it has no Deployment"):
        stages([{"kind": "ConfigMap", "metadata": {"name": "x"}}])


def test_the_webhook_applies_only_to_rays_kinds_with_a_queue_and_to_kueues_own_kinds(tree: Tree) -> None:
    """An outage of a webhook for pods, Jobs or Deployments would block the whole cluster."""
    found = webhooks(tree)
    assert set(found) == OF_RAY | OF_KUEUE
    named = {"matchExpressions": [{"key": "kueue.x-k8s.io/queue-name", "operator": "Exists"}]}
    assert {name for name, webhook in found.items() if webhook.get("objectSelector") == named} == OF_RAY


def test_the_failure_policy_can_be_set(tree: Tree) -> None:
    assert {webhook["failurePolicy"] for webhook in webhooks(tree).values()} == {"Fail"}
    open_ones = webhooks(tree, webhook={"failurePolicy": "Ignore", "timeoutSeconds": 4})
    assert {(each["failurePolicy"], each["timeoutSeconds"]) for each in open_ones.values()} == {("Ignore", 4)}


def test_the_api_server_accepts_one_certificate_which_kueue_keeps(tree: Tree) -> None:
    found = objects(tree)
    assert found["Secret", "kueue-webhook-server-cert"]["stringData"] == {
        "ca.crt": "certificate",
        "ca.key": "key",
        "tls.crt": "certificate",
        "tls.key": "key",
    }
    assert {webhook["clientConfig"]["caBundle"] for webhook in webhooks(tree).values()} == {"bundle"}
    assert webhook_names(KueueSettings(namespace="queues")) == ["kueue-webhook-service.queues.svc", "kueue-ca"]


def test_the_managers_rights_are_those_of_the_tree_without_disabled_integrations(tree: Tree) -> None:
    (original,) = (each for each in tree if each["metadata"]["name"] == "kueue-manager-role")
    rules = objects(tree)["ClusterRole", "kueue-manager-role"]["rules"]
    assert all(rule in original["rules"] for rule in rules)
    groups = {group for rule in rules for group in rule["apiGroups"]}
    assert {"ray.io", "kueue.x-k8s.io"} <= groups
    assert not groups & {"batch", "kubeflow.org", "jobset.x-k8s.io", "sparkoperator.k8s.io"}


def test_no_aggregated_api_server_is_created(tree: Tree) -> None:
    """While it does not answer, no namespace can be deleted."""
    assert not [key for key in objects(tree) if key[0] == "APIService" or "visibility" in key[1]]
    assert "visibility" not in str(pod(tree))
    assert configuration(tree)["featureGates"]["VisibilityOnDemand"] is False


def test_the_pod_meets_pod_security_restricted(tree: Tree) -> None:
    namespace = objects(tree)["Namespace", "kueue-system"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert pod(tree)["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod(tree)["securityContext"]["runAsNonRoot"] is True


def test_everything_is_in_the_configured_namespace(tree: Tree) -> None:
    moved = objects(tree, namespace="queues")
    assert "kueue-system" not in str(list(moved.values()))
    assert configuration(tree, namespace="queues")["leaderElection"]["resourceNamespace"] == "queues"


def test_resources_and_image_pull_secrets_can_be_set(tree: Tree) -> None:
    settings = {"resources": {"cpu": 2, "memory": "2Gi"}, "imagePullSecrets": ["mirror"]}
    found = pod(tree, **settings)
    assert found["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "2Gi"}
    assert found["imagePullSecrets"] == [{"name": "mirror"}]
    assert pod(tree)["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "512Mi"}


def test_one_of_several_pods_keeps_running_while_nodes_are_drained(tree: Tree) -> None:
    found = objects(tree, replicas=2)
    assert found["Deployment", MANAGER]["spec"]["replicas"] == 2
    assert found["PodDisruptionBudget", MANAGER]["spec"]["maxUnavailable"] == 1
    assert ("PodDisruptionBudget", MANAGER) not in objects(tree)


def test_metrics_can_be_disabled(tree: Tree) -> None:
    service = ("Service", "kueue-controller-manager-metrics-service")
    assert service in objects(tree)
    without = objects(tree, metrics=False)
    assert not [key for key in without if "metrics" in key[1]]
    assert "metrics" not in str(pod(tree, metrics=False))
    assert configuration(tree, metrics=False)["metrics"] == {"bindAddress": "0"}


def test_a_changed_configuration_restarts_the_manager(tree: Tree) -> None:
    def noted(**settings: Any) -> str:
        template = objects(tree, **settings)["Deployment", MANAGER]["spec"]["template"]
        return str(template["metadata"]["annotations"]["ray-platform/configuration"])

    assert noted() == noted()
    assert noted() != noted(fairSharing=True)


def test_integrations_but_rays_are_disabled_and_settings_are_written_into_the_configuration(tree: Tree) -> None:
    plain = configuration(tree)
    assert plain["integrations"] == {"frameworks": ["ray.io/raycluster", "ray.io/rayjob", "ray.io/rayservice"]}
    assert "fairSharing" not in plain
    ready = {"timeoutSeconds": 60, "recoveryTimeoutSeconds": 0, "blockAdmission": True, "backoffLimitCount": 0}
    rendered = configuration(tree, fairSharing=True, waitForPodsReady=ready)
    assert rendered["fairSharing"]["preemptionStrategies"] == ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
    assert rendered["waitForPodsReady"] == {
        "timeout": "60s",
        "recoveryTimeout": "0s",
        "blockAdmission": True,
        "requeuingStrategy": {"timestamp": "Eviction", "backoffLimitCount": 0},
    }


def test_a_raycluster_that_is_not_ready_is_suspended_after_half_an_hour_or_never(tree: Tree) -> None:
    """Kueue's own default, which only a feature gate switches off."""
    plain = configuration(tree)
    assert plain == configuration(tree, waitForPodsReady=True)
    assert plain["waitForPodsReady"]["timeout"] == "1800s"
    never = configuration(tree, waitForPodsReady=False)
    assert "waitForPodsReady" not in never
    assert never["featureGates"]["DisableWaitForPodsReady"] is True


def test_crds_are_created_before_the_manager_and_the_guard_is_deleted_first(
    kueue_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion order is reversed: the guard is deleted before everything else."""
    recorder = provisioned(kueue_file, tmp_path, monkeypatch)
    definitions = recorder.registered["kueue-crds"].inputs
    assert len(definitions["definitions"]) == 11
    assert definitions["webhook"]["namespace"] == "kueue-system"
    assert definitions["webhook"]["caBundle"]
    assert recorder.made_before("kueue-crds", "kueue-deployment-kueue-controller-manager")
    guard = recorder.registered["kueue-crd-guard"]
    for other in set(recorder.registered) - {"kueue", "kueue-crd-guard"}:
        assert recorder.made_before(other, "kueue-crd-guard")
    assert guard.inputs["connection"] == {"context": "staging"}
    assert len(guard.inputs["resources"]) == 11
    kinds = {f"{kind}.v1beta2.kueue.x-k8s.io" for kind in ("workloads", "clusterqueues")}
    assert kinds <= set(guard.inputs["resources"])


def test_an_invalid_tree_is_refused_with_the_reason(
    tmp_path: Path, kueue_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kueue_file = tmp_path / "other.yaml"
    kueue_file.write_text("kind: ConfigMap\nmetadata: {name: x}")
    with pytest.raises(pulumi.RunError, match="it has no Deployment"):
        provisioned(kueue_file, tmp_path, monkeypatch)


def provisioned(file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """With a kubectl that renders any location to the content of the file."""
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(f'#!/bin/sh\nwhile IFS= read -r line; do echo "$line"; done < {file}\n')
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(kubectl.parent))
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(folder / "cache"))
    settings = KueueSettings(location="config/default")
    return record(lambda: Kueue("kueue", KueueArgs(settings, FakeCluster(connection=Connection("staging")))))


def test_its_rsa_key_is_in_the_format_of_kueue_and_it_has_both_names() -> None:
    """With another format Kueue never became ready: `failed to parse private key`."""
    assert KueueCertificate.with_rsa
    _, pem, key, _ = new_certificate("kueue", webhook_names(KueueSettings()), with_rsa=KueueCertificate.with_rsa)
    assert key.startswith("-----BEGIN RSA PRIVATE KEY-----")
    private = serialization.load_pem_private_key(key.encode(), None)
    assert isinstance(private, rsa.RSAPrivateKey)
    certificate = x509.load_pem_x509_certificate(pem.encode())
    assert certificate.public_key() == private.public_key()
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kueue-webhook-service.kueue-system.svc", "kueue-ca"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert ExtendedKeyUsageOID.SERVER_AUTH in usage
