"""What a cluster admin relies on when Volcano's manifest is adapted to the settings and provisioned."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.cluster import Connection
from components.manifest_files import UnexpectedManifestError
from components.scheduler_manifest import Certificate
from components.volcano.component import Volcano, VolcanoArgs
from components.volcano.manifests import scheduler_conf, volcano_images, volcano_objects
from components.volcano.settings import VolcanoSchedulerSettings, VolcanoSettings
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record

Manifest = list[dict[str, Any]]

CERTIFICATE = Certificate("authority", "certificate", "key", bundle="bundle", digest="digest")

DEPLOYMENTS = ("volcano-scheduler", "volcano-controllers", "volcano-admission")


def stages(manifest: Manifest, **settings: Any) -> tuple[Manifest, ...]:
    return volcano_objects(manifest, VolcanoSettings.model_validate(settings), CERTIFICATE)


def objects(manifest: Manifest, **settings: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Volcano's objects by kind and name."""
    return {(body["kind"], body["metadata"]["name"]): body for stage in stages(manifest, **settings) for body in stage}


def pod(manifest: Manifest, name: str, **settings: Any) -> dict[str, Any]:
    spec: dict[str, Any] = objects(manifest, **settings)["Deployment", name]["spec"]["template"]["spec"]
    return spec


def container(manifest: Manifest, name: str, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod(manifest, name, **settings)["containers"][0]
    return found


def webhooks(manifest: Manifest, **settings: Any) -> list[dict[str, Any]]:
    found = objects(manifest, **settings)
    return [webhook for (kind, _), body in found.items() if "Webhook" in kind for webhook in body["webhooks"]]


def test_the_namespace_comes_first_then_access_and_webhooks_then_the_programs(manifest: Manifest) -> None:
    """The webhook listens once it has seen its configurations. If they came after it, its Deployment would never be
    available."""
    assert [{body["kind"] for body in stage} for stage in stages(manifest)] == [
        {"Namespace"},
        {
            *("Secret", "ServiceAccount", "ConfigMap", "ClusterRole", "ClusterRoleBinding"),
            *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        },
        {"Deployment", "Service"},
    ]
    assert {container(manifest, name)["image"] for name in DEPLOYMENTS} == set(volcano_images("1.14.1"))


def test_a_manifest_of_another_release_is_refused(manifest: Manifest) -> None:
    newer = [dict(body) for body in manifest]
    for body in newer:
        if body["kind"] == "Deployment":
            body["spec"]["template"]["spec"]["containers"][0]["image"] = "docker.io/volcanosh/vc-scheduler:v1.15.0"
    with pytest.raises(UnexpectedManifestError, match=r"is not Volcano 1\.14: it has .*v1\.15\.0.*Set scheduler"):
        stages(newer)
    with pytest.raises(UnexpectedManifestError, match="it has no Deployment"):
        stages([{"kind": "ConfigMap", "metadata": {"name": "x"}}])


def test_an_outage_of_the_webhook_blocks_nothing_by_default(manifest: Manifest) -> None:
    assert len(webhooks(manifest)) == 7
    assert {webhook["failurePolicy"] for webhook in webhooks(manifest)} == {"Ignore"}
    assert {webhook["timeoutSeconds"] for webhook in webhooks(manifest)} == {5}
    strict = webhooks(manifest, webhook={"failurePolicy": "Fail", "timeoutSeconds": 9})
    assert {(webhook["failurePolicy"], webhook["timeoutSeconds"]) for webhook in strict} == {("Fail", 9)}


def test_no_webhook_applies_to_pods(manifest: Manifest) -> None:
    rules = [rule for webhook in webhooks(manifest) for rule in webhook["rules"]]
    assert "pods" not in {resource for rule in rules for resource in rule["resources"]}


def test_the_stack_creates_the_webhooks_certificate_and_no_job_does(manifest: Manifest) -> None:
    found = objects(manifest)
    assert found["Secret", "volcano-admission-secret"]["stringData"] == {
        "tls.crt": "certificate",
        "tls.key": "key",
        "ca.crt": "authority",
    }
    assert {webhook["clientConfig"]["caBundle"] for webhook in webhooks(manifest)} == {"bundle"}
    assert not [key for key in found if key[0] == "Job" or "init" in key[1]]
    rules = found["ClusterRole", "volcano-admission"]["rules"]
    assert not [rule for rule in rules if "certificates.k8s.io" in rule["apiGroups"]]


@pytest.mark.parametrize("name", ["volcano-scheduler", "volcano-controllers"])
def test_other_roles_have_the_rules_of_the_manifest_which_is_not_changed(manifest: Manifest, name: str) -> None:
    before = str(manifest)
    (original,) = (each for each in manifest if each["kind"] == "ClusterRole" and each["metadata"]["name"] == name)
    made = objects(manifest, namespace="gangs", webhook={"replicas": 2})
    assert made["ClusterRole", name]["rules"] == original["rules"]
    assert str(manifest) == before


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_the_pods_meet_pod_security_restricted_and_no_argument_is_a_shell_redirection(
    manifest: Manifest, name: str
) -> None:
    namespace = objects(manifest)["Namespace", "volcano-system"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    found = container(manifest, name)
    context = found["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert (context["runAsNonRoot"], context["allowPrivilegeEscalation"]) == (True, False)
    assert pod(manifest, name)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all(argument.startswith("-") for argument in found["args"])
    assert pod(manifest, name, imagePullSecrets=["mirror"])["imagePullSecrets"] == [{"name": "mirror"}]


def test_everything_is_in_the_configured_namespace(manifest: Manifest) -> None:
    moved = objects(manifest, namespace="gangs")
    assert "volcano-system" not in str(moved)
    assert "--webhook-namespace=gangs" in container(manifest, "volcano-admission", namespace="gangs")["args"]
    assert {body["metadata"].get("namespace") for (kind, _), body in moved.items() if kind == "Deployment"} == {"gangs"}


@pytest.mark.parametrize(
    ("name", "part"),
    [("volcano-scheduler", "scheduler"), ("volcano-controllers", "controllers"), ("volcano-admission", "webhook")],
)
def test_each_program_gets_its_configured_resources(manifest: Manifest, name: str, part: str) -> None:
    assert set(container(manifest, name)["resources"]) == {"requests"}
    assert set(container(manifest, name)["resources"]["requests"]) == {"cpu", "memory"}
    settings = {part: {"resources": {"cpu": 1, "memory": "1Gi"}}}
    assert container(manifest, name, **settings)["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}


def test_a_changed_configuration_restarts_the_scheduler(manifest: Manifest) -> None:
    def noted(**settings: Any) -> str:
        template = objects(manifest, scheduler=settings)["Deployment", "volcano-scheduler"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["ray-platform/configuration"])

    assert noted() == noted()
    assert noted() != noted(queueShares="proportion")


def test_never_two_schedulers_place_pods(manifest: Manifest) -> None:
    """The manifest has no leader election, so the old scheduler must end before the new one starts."""
    spec = objects(manifest)["Deployment", "volcano-scheduler"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_one_of_several_webhooks_keeps_running_while_nodes_are_drained(manifest: Manifest) -> None:
    found = objects(manifest, webhook={"replicas": 2})
    assert found["Deployment", "volcano-admission"]["spec"]["replicas"] == 2
    assert found["PodDisruptionBudget", "volcano-admission"]["spec"]["maxUnavailable"] == 1
    assert ("PodDisruptionBudget", "volcano-admission") not in objects(manifest)


def test_claims_of_provisioners_that_are_no_csi_drivers_can_be_ignored(manifest: Manifest) -> None:
    def flags(*ignored: str) -> list[str]:
        found = container(manifest, "volcano-scheduler", scheduler={"ignoredProvisioners": ignored})["args"]
        return [each for each in found if each.startswith("--ignored-provisioners")]

    assert flags() == []
    assert flags("rancher.io/local-path", "a.b/nfs") == ["--ignored-provisioners=rancher.io/local-path,a.b/nfs"]


def test_metrics_can_be_disabled(manifest: Manifest) -> None:
    assert ("Service", "volcano-scheduler-service") in objects(manifest)
    without = objects(manifest, metrics=False)
    assert {name for kind, name in without if kind == "Service"} == {"volcano-admission-service"}
    for name in ("volcano-scheduler", "volcano-controllers"):
        assert "--enable-metrics=true" not in container(manifest, name, metrics=False)["args"]


def test_crds_are_upgraded_before_the_programs_and_the_guard_is_deleted_first(recorder: Recorder) -> None:
    """The deletion order is reversed: the guard is deleted before everything else."""
    assert len(recorder.registered["volcano-crds"].inputs["definitions"]) == 11
    assert recorder.made_before("volcano-crds", "volcano-deployment-volcano-scheduler")
    guard = recorder.registered["volcano-crd-guard"]
    for other in set(recorder.registered) - {"volcano", "volcano-crd-guard"}:
        assert recorder.made_before(other, "volcano-crd-guard")
    assert guard.inputs["connection"] == {"context": "staging"}
    assert len(guard.inputs["resources"]) == 11
    assert {f"{kind}.v1beta1.scheduling.volcano.sh" for kind in ("podgroups", "queues")} <= set(
        guard.inputs["resources"]
    )


def conf(**settings: Any) -> dict[str, Any]:
    text = scheduler_conf(VolcanoSchedulerSettings.model_validate(settings))
    return dict(yaml.safe_load(text))


def plugins(**settings: Any) -> dict[str, dict[str, Any]]:
    return {plugin["name"]: plugin for tier in conf(**settings)["tiers"] for plugin in tier["plugins"]}


def test_a_queue_reclaims_its_deserved_share_by_default_and_breaks_up_no_gang() -> None:
    assert conf()["actions"] == "enqueue, allocate, backfill, reclaim"
    assert conf(actions=["allocate", "backfill"])["actions"] == "allocate, backfill"
    assert plugins()["gang"]["enableReclaimable"] is True
    assert plugins(plugins={"gang": {"reclaimMinimum": True}})["gang"]["enableReclaimable"] is False


def test_gangs_overcommit_and_shares_of_queues_decide_together() -> None:
    """Only plugins of one tier do: with the shares in the second, a queue lost its deserved share, and overcommit would
    not be asked. With `reclaim` it is off by default."""
    overcommit = {"overcommit": {"factor": 1.5}}
    first = [plugin["name"] for plugin in conf(plugins=overcommit)["tiers"][0]["plugins"]]
    assert {"gang", "conformance", "overcommit", "capacity"} <= set(first)
    assert plugins(plugins=overcommit)["overcommit"]["arguments"] == {"overcommit-factor": 1.5}
    assert {"gang", "conformance", "capacity"} <= {plugin["name"] for plugin in conf()["tiers"][0]["plugins"]}
    assert "overcommit" not in plugins()


def test_queues_share_by_capacity_with_parents_or_by_weight_and_never_both() -> None:
    assert plugins()["capacity"]["enableHierarchy"] is True
    assert "proportion" not in plugins()
    assert "capacity" not in plugins(queueShares="proportion")
    assert "proportion" in plugins(queueShares="proportion")


def test_gpus_count_most_when_nodes_are_filled() -> None:
    arguments = plugins()["binpack"]["arguments"]
    assert arguments["binpack.resources"] == "nvidia.com/gpu"
    assert arguments["binpack.resources.nvidia.com/gpu"] > arguments["binpack.cpu"] + arguments["binpack.memory"]
    # The opposite of filling nodes.
    assert plugins()["nodeorder"]["arguments"]["leastrequested.weight"] == 0


def test_weights_have_volcanos_names() -> None:
    weights = {"weight": 3, "cpu": 2, "memory": 0, "resources": {"nvidia.com/gpu": 7, "example.com/foo": 1}}
    assert plugins(plugins={"binpack": weights})["binpack"]["arguments"] == {
        "binpack.weight": 3,
        "binpack.cpu": 2,
        "binpack.memory": 0,
        "binpack.resources": "nvidia.com/gpu, example.com/foo",
        "binpack.resources.nvidia.com/gpu": 7,
        "binpack.resources.example.com/foo": 1,
    }
    order = plugins(plugins={"nodeOrder": {"podTopologySpread": 5}})["nodeorder"]["arguments"]
    assert order["podtopologyspread.weight"] == 5


@pytest.mark.parametrize(
    "name",
    [
        *("priority", "gang", "conformance", "overcommit", "drf", "predicates", "nodeorder", "binpack"),
        "network-topology-aware",
    ],
)
def test_each_plugin_can_be_disabled_or_enabled(name: str) -> None:
    key = {"nodeorder": "nodeOrder", "network-topology-aware": "networkTopologyAware"}.get(name, name)
    assert name not in plugins(plugins={key: False})
    assert name in plugins(plugins={key: True})


def test_a_plugin_without_a_setting_is_used_unchanged() -> None:
    plugin = {"name": "sla", "arguments": {"sla-waiting-time": "1h"}}
    assert plugins(extraPlugins=[plugin, {"name": "tdm"}])["sla"] == plugin


def provisioned(location: Path | str, **keys: Any) -> Recorder:
    settings = VolcanoSettings.model_validate({"location": str(location), **keys})
    return record(lambda: Volcano("volcano", VolcanoArgs(settings, FakeCluster(connection=Connection("staging")))))


@pytest.fixture
def recorder(manifest_file: Path) -> Recorder:
    return provisioned(manifest_file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("a: [", "is not YAML of Kubernetes"),
        ("kind: ConfigMap\nmetadata: {name: x}", "it has no Deployment"),
    ],
)
def test_an_invalid_manifest_is_refused_with_the_reason(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "volcano.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(pulumi.RunError, match=message):
        provisioned(file)
