"""A manifest of KubeRay becomes a cluster, job or service that renders to exactly the same object, or the reason is
reported."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from core.stack_file import stack_file
from core.yaml_reader.document import documents
from stacks.commands.importing.file import import_file
from stacks.commands.importing.manifests import NotWrittenError, completed, defaulted, from_manifest, from_owner
from stacks.launcher_files.reader import Answers, Imported, RefusedError
from stacks.load import parse, settings_of
from stacks.objects.ray_clusters import rendered_job, rendered_service
from testbed.policies.case import put

PLAIN = yaml.safe_load("""
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: raycluster-kuberay
  namespace: research
spec:
  rayVersion: 2.52.0
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers:
          - name: ray-head
            image: rayproject/ray:2.52.0
            resources: {limits: {cpu: 1, memory: 5Gi}, requests: {cpu: 1, memory: 5Gi}}
            ports: [{containerPort: 6379, name: gcs-server}, {containerPort: 8000, name: serve}]
  workerGroupSpecs:
    - groupName: workergroup
      replicas: 1
      minReplicas: 1
      maxReplicas: 5
      rayStartParams: {}
      template:
        spec:
          containers:
            - name: ray-worker
              image: rayproject/ray:2.52.0
              resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: 1Gi}}
""")

FULL = yaml.safe_load("""
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: full
  namespace: research
  labels: {team: vision}
  annotations:
    owner: ada
    kubectl.kubernetes.io/last-applied-configuration: "{}"
  resourceVersion: "12"
  managedFields: [{manager: kubectl}]
spec:
  rayVersion: 2.60.0
  enableInTreeAutoscaling: true
  autoscalerOptions: {version: v2, idleTimeoutSeconds: 120, upscalingMode: Conservative, resources: {limits: {cpu: 1}}}
  authOptions: {mode: token}
  headServiceAnnotations: {a: b}
  gcsFaultToleranceOptions:
    redisAddress: redis:6379
    redisPassword: {valueFrom: {secretKeyRef: {name: redis, key: password}}}
  headGroupSpec:
    serviceType: NodePort
    rayStartParams: {num-cpus: "0", dashboard-host: 0.0.0.0}
    template:
      metadata: {labels: {app: ray}, annotations: {note: head}, creationTimestamp: null}
      spec:
        serviceAccountName: ray
        imagePullSecrets: [{name: pull}]
        initContainers: [{name: wait, image: busybox, command: [sleep, "1"]}]
        containers:
          - name: head
            image: rayproject/ray:2.60.0-py311
            imagePullPolicy: Always
            env: [{name: A, value: "1"}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
            resources: {limits: {cpu: "2", memory: 8Gi, nvidia.com/gpu: 1}, requests: {cpu: 500m, memory: 8Gi}}
            volumeMounts: [{mountPath: /tmp/ray, name: logs}]
          - {name: fluentbit, image: fluent/fluent-bit, volumeMounts: [{mountPath: /tmp/ray, name: logs}]}
        volumes: [{name: logs, emptyDir: {}}]
        restartPolicy: Never
  workerGroupSpecs:
    - groupName: gpus
      minReplicas: 0
      maxReplicas: 4
      numOfHosts: 2
      idleTimeoutSeconds: 600
      labels: {accelerator: a100}
      rayStartParams: {num-cpus: "7"}
      scaleStrategy: {workersToDelete: [pod-1]}
      template:
        spec:
          serviceAccountName: ray
          imagePullSecrets: [{name: pull}]
          tolerations: [{key: nvidia.com/gpu, operator: Exists}]
          containers:
            - name: ray-worker
              image: example.com/ray:2.60.0
              imagePullPolicy: Always
              env: [{name: Z, value: "1"}, {name: A, value: "2"}]
              resources: {limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}}
    - groupName: none
      template:
        spec:
          serviceAccountName: ray
          imagePullSecrets: [{name: pull}]
          containers: [{name: any, image: "rayproject/ray:2.60.0", imagePullPolicy: Always}]
""")


HEAD = "spec headGroupSpec template spec containers 0"
ENV = "spec.headGroupSpec.template.spec.containers[0].env[0]"
SECRET = f"hf_{'aB' * 17}"


def job(kind: str, cluster: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "once", "namespace": "research", "labels": {"team": "vision"}}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": {cluster: PLAIN["spec"], **spec}}


def rendered(result: Imported) -> dict[str, Any]:
    return ray_cluster(valid(result.cluster), ())


def lines(result: Imported) -> list[str]:
    return [str(note) for note in result.notes]


@pytest.mark.parametrize(
    "body", [PLAIN, FULL, {**PLAIN, "apiVersion": "ray.io/v1alpha1"}], ids=["plain", "full", "old"]
)
def test_it_renders_to_the_same_cluster(body: dict[str, Any]) -> None:
    spec = completed(defaulted(body["spec"]))
    for group in spec["workerGroupSpecs"]:
        group.pop("scaleStrategy", None)  # the autoscaler's
    assert defaulted(rendered(from_manifest(body))["spec"]) == spec


@pytest.mark.parametrize(
    ("body", "cluster"),
    [
        (job("RayJob", "rayClusterSpec", entrypoint="python train.py"), "rayClusterSpec"),
        (job("RayService", "rayClusterConfig", serveConfigV2="applications: []"), "rayClusterConfig"),
    ],
    ids=["job", "service"],
)
def test_the_cluster_of_a_job_or_service_stays(body: dict[str, Any], cluster: str) -> None:
    result = from_manifest(body)
    assert defaulted(rendered(result)["spec"]) == defaulted(PLAIN["spec"])
    assert result.cluster["name"] == "once"
    [other] = set(body["spec"]) - {cluster}
    assert any(
        line.startswith(f"spec.{other}: only the cluster of a {body['kind']} is imported; ") for line in lines(result)
    )


def test_fields_with_a_setting_use_it_and_those_that_the_server_maintains_are_listed() -> None:
    result = from_manifest(FULL)
    cluster = result.cluster
    shared = ("imagePullPolicy", "imagePullSecrets", "serviceAccount")
    assert [cluster[key] for key in shared] == ["Always", ["pull"], "ray"]
    assert (cluster["idleTimeout"], cluster["autoScalingMode"]) == ("2m", "conservative")
    gpus = cluster["workerGroups"][0]
    assert (gpus["gpus"], gpus["cpu"], gpus["idleTimeout"], gpus["env"]) == (2, "8", "10m", {"Z": "1", "A": "2"})
    # A stack file refuses it in overrides.
    assert cluster["head"]["serviceType"] == "NodePort"
    assert "serviceType" not in cluster["overrides"].get("headGroupSpec", {})
    metadata = rendered(result)["metadata"]
    assert (cluster["labels"], metadata["labels"], metadata["annotations"]["owner"]) == (
        {"team": "vision"},
        {"team": "vision"},
        "ada",
    )
    applied = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"
    assert {
        "metadata.resourceVersion: the API server maintains it; remove it",
        f"{applied}: kubectl maintains it; remove it",
    } <= set(lines(result))


def test_a_cluster_without_a_token_stays_so_and_a_note_recommends_one() -> None:
    result = from_manifest(PLAIN)
    assert "authOptions" not in rendered(result)["spec"]
    assert any("so that callers need a token" in line for line in lines(result))


def test_the_version_comes_from_the_image() -> None:
    body = deepcopy(PLAIN)
    del body["spec"]["rayVersion"]
    result = from_manifest(body)
    assert result.cluster["rayVersion"] == "2.52.0"
    assert "rayVersion" not in rendered(result)["spec"]


@pytest.mark.parametrize(("at", "value"), [("spec rayVersion", "2.51.0"), (f"{HEAD} image", "ray:latest")])
def test_an_image_with_another_version_in_its_tag_is_kept(at: str, value: str) -> None:
    body = deepcopy(PLAIN)
    put(body, at, value)
    assert from_manifest(body).cluster["verifyImageTag"] is False


@pytest.mark.parametrize(
    ("at", "value", "place"),
    [
        ("spec workerGroupSpecs 0 maxReplicas", 0, "spec.workerGroupSpecs[0]"),
        ("spec headGrupSpec", {}, "spec.headGrupSpec"),
        ("spec", "all", "spec"),
        ("metadata name", "Upper_Case", "metadata.name"),
    ],
)
def test_a_value_that_kuberay_refuses_is_refused_at_its_place(at: str, value: Any, place: str) -> None:
    body = deepcopy(PLAIN)
    put(body, at, value)
    with pytest.raises(RefusedError) as refused:
        from_manifest(body)
    assert str(refused.value).startswith(place)


def test_an_unknown_version_can_be_set() -> None:
    body = deepcopy(PLAIN)
    body["spec"]["rayVersion"] = "nightly"
    body["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = "rayproject/ray:nightly"
    with pytest.raises(
        RefusedError, match=r"spec.rayVersion: the tag of image 'rayproject/ray:nightly' has no version"
    ):
        from_manifest(body)
    result = from_manifest(body, Answers(ray_version="2.60.0"))
    assert (result.cluster["rayVersion"], rendered(result)["spec"]["rayVersion"]) == ("2.60.0", "nightly")


@pytest.mark.parametrize(
    ("at", "value", "place"),
    [
        ("metadata annotations", {"example.com/api-token": "a1b2c3"}, "metadata.annotations.example.com/api-token"),
        ("metadata annotations", {"note": SECRET}, "metadata.annotations.note"),
        (f"{HEAD} args", ["-c", f"login --token {SECRET}"], "spec.headGroupSpec.template.spec.containers[0].args[1]"),
        (f"{HEAD} env", [{"name": "A", "value": SECRET}], f"{ENV}.value"),
        (f"{HEAD} env", [{"name": "WANDB_API_KEY", "value": "a1b2c3"}], f"{ENV}: 'WANDB_API_KEY' looks like a secret"),
        ("spec headGroupSpec rayStartParams", {"dashboard-host": SECRET}, "spec.headGroupSpec.rayStartParams"),
        ("spec entrypoint", f"python train.py --token {SECRET}", "spec.entrypoint"),
    ],
)
def test_a_secret_anywhere_is_refused_at_its_place_and_not_shown(at: str, value: Any, place: str) -> None:
    of_job = at.endswith("entrypoint")
    body = deepcopy(rayjob() if of_job else PLAIN)
    put(body, at, value)
    with pytest.raises(RefusedError) as refused:
        from_owner(body, Answers()) if of_job else from_manifest(body)
    assert str(refused.value).startswith(place)
    assert "a1b2c3" not in str(refused.value)
    assert SECRET not in str(refused.value)


def test_annotations_about_secrets_are_kept() -> None:
    body = deepcopy(PLAIN)
    kept = {"checksum/secret": "0a1b2c3d", "vault.hashicorp.com/agent-inject-secret-config": "secret/data/team"}
    body["metadata"]["annotations"] = kept
    assert from_manifest(body).cluster["annotations"] == kept


def test_groups_get_names_that_are_allowed_unless_a_live_cluster_has_them() -> None:
    body = deepcopy(PLAIN)
    body["spec"]["workerGroupSpecs"][0]["groupName"] = "GPU-Group.1"
    result = from_manifest(body, rename=True)
    assert [each["groupName"] for each in result.cluster["workerGroups"]] == ["gpu-group-1"]
    assert any("'GPU-Group.1' is not a name of a worker group" in each for each in lines(result))
    with pytest.raises(RefusedError, match=r"groupName: 'GPU-Group.1' is not a name"):
        from_manifest(body)


CONTAINER = {"name": "ray-head", "image": "rayproject/ray:2.60.0", "resources": {"limits": {"cpu": 1, "memory": "4Gi"}}}
CLUSTER = {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [CONTAINER]}}}}
META = {"name": "once", "namespace": "research", "labels": {"team": "vision"}}


def rayjob(**spec: Any) -> dict[str, Any]:
    spec = {"entrypoint": "python train.py", "rayClusterSpec": CLUSTER, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": META, "spec": spec}


def service(**spec: Any) -> dict[str, Any]:
    config = "applications: [{import_path: 'chat:app'}]"
    spec = {"serveConfigV2": config, "rayClusterConfig": CLUSTER, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": META, "spec": spec}


def entry(body: dict[str, Any]) -> dict[str, Any]:
    return from_owner(body, Answers()).entry


def test_settings_of_a_job_or_service_are_those_of_the_manifest_without_kuberays_defaults() -> None:
    made = entry(rayjob())
    assert made["cluster"]["labels"] == {"team": "vision"}
    assert made["name"] == "once"
    assert "name" not in made["cluster"]
    made = entry(rayjob(runtimeEnvYAML="pip: [numpy]", entrypointResources='{"node:a": 1}', entrypointNumCpus=1))
    assert (made["runtimeEnv"], made["entrypointResources"]) == ({"pip": ["numpy"]}, {"node:a": 1})
    assert entry(service())["serveConfigV2"] == {"applications": [{"import_path": "chat:app"}]}
    made = entry(rayjob(submissionMode="K8sJobMode", backoffLimit=0, ttlSecondsAfterFinished=0, suspend=False))
    assert made.keys() == {"name", "entrypoint", "shutdownAfterJobFinishes", "cluster"}


@pytest.mark.parametrize(("shuts_down", "made"), [(True, None), (False, False)])
def test_the_cluster_ends_with_the_job_if_it_did(shuts_down: bool, made: bool | None) -> None:
    imported = from_owner(rayjob(shutdownAfterJobFinishes=shuts_down), Answers())
    assert imported.entry.get("shutdownAfterJobFinishes") is made
    assert any("stays after the job" in str(note) for note in imported.notes) is not shuts_down


def test_the_pod_that_submits_is_the_manifests() -> None:
    containers = [{"name": "mine", "image": "ray:2.60.0"}]
    submits: dict[str, Any] = {"spec": {"restartPolicy": "OnFailure", "containers": containers}}
    jobs = [entry(rayjob(submitterPodTemplate=submits))]
    stack = parse({"tenants": [{"name": "any", "podSecurity": "privileged", "jobs": jobs}]})
    (tenant,) = stack.tenants
    assert rendered_job(stack, tenant, tenant.jobs[0])["spec"]["submitterPodTemplate"] == submits


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (rayjob(entrypoint="a && b"), "the shell that submits the job would interpret '&'"),
        (rayjob(managedBy="kueue.x-k8s.io/multikueue"), "managedBy cannot be written in a stack file"),
        (rayjob(clusterSelector={"ray.io/cluster": "other"}), "which KubeRay prefers"),
        (rayjob(entrypointResources="one"), "entrypointResources is not a mapping"),
        (rayjob(entrypointResources="{"), "entrypointResources, line 2: this is not YAML"),
        (service(serveConfigV2="applications: [{import_path: 'chat:app', import_paht: a}]"), "import_paht"),
    ],
)
def test_what_has_no_place_is_reported(body: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match=why):
        from_owner(body, Answers())
    file = tmp_path / "once.yaml"
    file.write_text(yaml.safe_dump(body))
    result = import_file(file, Answers())
    (tenant,) = yaml.safe_load(result.text)["config"]["ray-platform:tenants"]
    assert [each["name"] for each in tenant["clusters"]] == ["once"]
    assert any(why in line and "its cluster becomes one that stays" in line for line in result.lines)


def cronjob(**spec: Any) -> dict[str, Any]:
    spec = {"schedule": "0 2 * * *", "jobTemplate": rayjob(shutdownAfterJobFinishes=True)["spec"], **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": META, "spec": spec}


def imported(tmp_path: Path, text: str, **answers: str) -> tuple[dict[str, Any], str]:
    """The configuration that a file becomes, and what is said about it."""
    file = tmp_path / "input.yaml"
    file.write_text(text)
    result = import_file(file, Answers(**answers))
    return (yaml.safe_load(result.text) or {}).get("config", {}), "\n".join(result.lines).replace(f"{tmp_path}/", "")


def test_a_schedule_becomes_a_job_template_with_cron(tmp_path: Path) -> None:
    config, _ = imported(tmp_path, yaml.safe_dump(cronjob()))
    [template] = config["ray-platform:tenants"][0]["jobTemplates"]
    assert template["cron"] == {"schedule": "0 2 * * *", "concurrencyPolicy": "Allow"}
    assert (template["name"], template["entrypoint"]) == ("once", "python train.py")


def test_manifests_may_be_for_another_release_of_kuberay(tmp_path: Path) -> None:
    newer = yaml.safe_dump(cronjob(timeZone="Europe/Berlin"))
    refused = imported(tmp_path, newer)[1]
    assert "timeZone came with KubeRay 1.7" in refused
    assert "; --operator-version 1.7.0 imports it" in refused
    assert "imports it" not in imported(tmp_path, yaml.safe_dump(cronjob(schedule="came with KubeRay 1.7")))[1]
    config, _ = imported(tmp_path, newer, operator_version="1.7.0")
    assert config["ray-platform:operator"] == {"version": "1.7.0"}
    assert config["ray-platform:tenants"][0]["jobTemplates"][0]["cron"]["timeZone"] == "Europe/Berlin"


def test_a_name_and_a_namespace_that_are_asked_for_count_before_those_of_the_file(tmp_path: Path) -> None:
    text = yaml.safe_dump({**PLAIN, "metadata": {"name": "{{ .Release.Name }}", "namespace": "<your-namespace>"}})
    assert "metadata.name: it is a template of Helm" in imported(tmp_path, text)[1]
    refused = imported(tmp_path, text, name="training")[1]
    assert "'<your-namespace>' is not a valid namespace" in refused
    assert "; --namespace sets another" in refused
    config, _ = imported(tmp_path, text, name="training", namespace="vision")
    [tenant] = config["ray-platform:tenants"]
    assert (tenant["name"], tenant["clusters"][0]["name"]) == ("vision", "training")


def test_the_option_for_the_version_of_ray_is_for_images_without_one(tmp_path: Path) -> None:
    old = yaml.safe_dump(PLAIN).replace("2.52.0", "2.3.0")
    assert (
        "--ray-version 2.60.0 is for images whose tag has no version"
        in imported(tmp_path, old, ray_version="2.60.0")[1]
    )


def test_large_objects_beside_a_cluster_are_no_obstacle(tmp_path: Path) -> None:
    large = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"a": "a" * 5_000_000}}
    config, said = imported(tmp_path, yaml.safe_dump_all([PLAIN, large]))
    assert config["ray-platform:tenants"][0]["clusters"]
    assert "ConfigMap 'big' is not imported; keep applying it" in said


def test_booleans_are_those_of_kubectl(tmp_path: Path) -> None:
    text = yaml.safe_dump(PLAIN).replace("\nspec:\n", "\nspec:\n  enableInTreeAutoscaling: yes\n")
    config, _ = imported(tmp_path, text)
    assert "autoscaling" not in config["ray-platform:tenants"][0]["clusters"][0]


def test_what_other_programs_set_is_left_to_them(tmp_path: Path) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "gpus", "app.kubernetes.io/managed-by": "Helm", "team": "vision"}
    metadata = {**PLAIN["metadata"], "labels": labels, "annotations": {"meta.helm.sh/release-name": "ray"}}
    body = {**PLAIN, "metadata": metadata, "spec": {**PLAIN["spec"], "suspend": True}}
    config, said = imported(tmp_path, yaml.safe_dump(body))
    [cluster] = config["ray-platform:tenants"][0]["clusters"]
    assert cluster["labels"] == {"kueue.x-k8s.io/queue-name": "gpus", "team": "vision"}
    assert "suspend" not in cluster.get("overrides", {})
    assert "annotations" not in cluster
    assert "metadata.labels.kueue.x-k8s.io/queue-name: is for Kueue, and scheduler.kueue is not set" in said
    for part in ("spec.suspend: Kueue sets it", "release-name: Helm maintains it", "managed-by: Helm maintains it"):
        assert part in said


SIDE = {"name": "side", "image": "alpine:3"}


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        ("headGroupSpec rayStartParams", {"dashboard-port": "9000"}, "dashboard-port: workers, probes"),
        ("headGroupSpec rayStartParams", {"redis-password": "pass"}, "redis-password: a command line keeps no secret"),
        ("workerGroupSpecs 0 rayStartParams", {"resources": '{"NPU": 1}'}, "resources: '{\"NPU\": 1}' is not one word"),
        (
            "workerGroupSpecs 0 template spec containers 0 volumeMounts",
            [{"name": "lost", "mountPath": "/lost"}],
            "[0].name: the pod has no volume 'lost'",
        ),
        (
            "workerGroupSpecs 0 template spec containers",
            [PLAIN["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0], SIDE | {"stdin": "no"}],
            "[1].stdin: 'no' is text",
        ),
        (
            "headGroupSpec template spec tolerations",
            [{"operator": "Exists"}, {"operator": "Maybe"}],
            "[1].operator: 'Maybe' is not accepted",
        ),
        (
            "workerGroupSpecs 0 template spec containers 0 resources limits memory",
            "256Mi",
            ": of 256Mi of memory Ray's own processes take",
        ),
    ],
)
def test_what_check_finds_has_its_place_in_the_manifest(at: str, value: Any, said: str, tmp_path: Path) -> None:
    body = deepcopy(PLAIN)
    put(body, f"spec {at}", value)
    put(body, "spec workerGroupSpecs 0 template spec containers 0 resources requests memory", "256Mi")
    text = yaml.safe_dump(body)
    place = next(documents(text)).span(("spec", *(int(each) if each.isdigit() else each for each in at.split())))
    found = [each for each in imported(tmp_path, text)[1].splitlines() if said in each]
    assert len(found) == 1, found
    line, where, *_ = found[0].removeprefix("input.yaml:").split(": ")
    assert where.startswith("spec." + re.sub(r" (\d+)", r"[\1]", at).replace(" ", ".")), where
    assert int(line) >= place.line
    assert "RayCluster spec" not in found[0]


def test_lists_that_are_merged_by_name_have_the_manifests_indexes(tmp_path: Path) -> None:
    body = deepcopy(PLAIN)
    put(body, "spec workerGroupSpecs 0 template spec containers 0 env", [{"name": "A", "value": "a"}, {"name": "B"}])
    put(body, "spec workerGroupSpecs 0 template spec containers 0 env 1 valueFrom", {"fieldRef": {"fieldPath": "no"}})
    assert "containers[0].env[1].valueFrom.fieldRef.fieldPath: 'no'" in imported(tmp_path, yaml.safe_dump(body))[1]


def test_a_boolean_is_said_as_it_is_written(tmp_path: Path) -> None:
    text = yaml.safe_dump(PLAIN | {"metadata": {"name": "it", "labels": {"spot": "WORD"}}}).replace("WORD", "yes")
    [line] = imported(tmp_path, text)[1].splitlines()
    assert 'labels.spot: yes is true or false, but text is expected: write it in quotes, "yes"' in line


def test_the_password_of_redis_as_a_variable_is_imported(tmp_path: Path) -> None:
    body = deepcopy(PLAIN)
    put(body, "spec headGroupSpec rayStartParams", {"redis-password": "$REDIS_PASSWORD"})
    written, said = imported(tmp_path, yaml.safe_dump(body))
    [cluster] = written["ray-platform:tenants"][0]["clusters"]
    assert cluster["head"]["rayStartParams"] == {"redis-password": "$REDIS_PASSWORD"}
    assert "redis-password: KubeRay's job that deletes the keys" in said


def test_what_is_wrong_in_a_serve_config_has_its_line(tmp_path: Path) -> None:
    config = "|\n    applications:\n    - import_path: a:b\n    proxy_location: HeadOnly"
    text = yaml.safe_dump(service(serveConfigV2="TEXT", rayClusterConfig=PLAIN["spec"])).replace("TEXT", config)
    line = text[: text.index("proxy_location")].count("\n") + 1
    assert f"input.yaml:{line}: spec.serveConfigV2.proxy_location: KubeRay asks" in imported(tmp_path, text)[1]


RAY = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: it}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{- if .Values.ray }}\nkind: RayCluster\n", "it is a template of Helm; render it with `helm template"),
        ("config: {'ray-platform:tenants': []}\n", "it is a stack file already; check it with"),
        ("apiVersion: v1\nkind: Kustomization\n", "a Kustomization is not imported; render it with `kubectl kustomize"),
        ("apiVersion: v1\nkind: Application\nmetadata: {name: ray}\n", "Application 'ray' is not imported; render its"),
        (
            "resources: [a.yaml]\npatches: [{path: b.yaml}]\n",
            "it is a Kustomization; render it with",
        ),
        (
            f"{RAY}spec: {{rayVersion: '{{{{ .Values.v }}}}', headGroupSpec: {{}}}}\n",
            ":4: spec.rayVersion: it is",
        ),
        (f"{RAY}spec: {{workerGroupSpecs: []}}\n", "a patch has only a part: import what `kubectl kustomize"),
        (RAY, "spec: 'spec' is missing: add it"),
        (
            RAY.replace("Cluster", "Job") + "spec: {entrypoint: ls, clusterSelectors: {}}\n",
            "'clusterSelector'",
        ),
    ],
)
def test_what_others_render_is_named(text: str, said: str, tmp_path: Path) -> None:
    assert said in imported(tmp_path, text)[1]


def test_what_is_in_an_app_wrapper_is_found(tmp_path: Path) -> None:
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"name": "w"}}
    text = yaml.safe_dump({**wrapper, "spec": {"components": [{"template": PLAIN}]}})
    config, _ = imported(tmp_path, text)
    assert len(config["ray-platform:tenants"][0]["clusters"]) == 1


def test_comments_are_at_the_job_of_their_tenant(tmp_path: Path) -> None:
    other = {**rayjob(), "metadata": {"name": "twice", "namespace": "sales"}}
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([rayjob(), service() | {"metadata": {**META, "name": "chat"}}, other]))
    text = import_file(file, Answers()).text
    tenants = yaml.safe_load(text)["config"]["ray-platform:tenants"]
    assert [sorted(each.keys() & {"clusters", "jobs", "services"}) for each in tenants] == [
        ["jobs", "services"],
        ["jobs"],
    ]
    lines = text.splitlines()
    for at in (index for index, line in enumerate(lines) if line.strip() == "podDefaults: none"):
        assert "delete `podDefaults: none` to give the pods the stack's defaults" in lines[at - 1]
    assert sum(line.strip() == "podDefaults: none" for line in lines) == 3


def test_texts_are_read_as_kuberay_reads_them(tmp_path: Path) -> None:
    args = {"commit": "1234567e1", "window": "12:30", "day": "2026-13-45", "on": True, "mode": 511, "rate": 1000}
    config = """\
applications:
- import_path: chat:app
  args: {commit: "1234567e1", window: 12:30, day: 2026-13-45, "on": yes, mode: 0777, rate: 1e3}
  deployments: [{name: Chat, user_config: {rev: "7e10", note: "a\\u2028b"}}]
"""
    file = tmp_path / "chat.yaml"
    file.write_text(yaml.safe_dump(service(serveConfigV2=config)))
    text = import_file(file, Answers()).text
    stack = settings_of(stack_file("Pulumi.any.yaml", text))
    rendered = rendered_service(stack, stack.tenants[0], stack.tenants[0].services[0])["spec"]["serveConfigV2"]
    for read in (text, rendered):
        assert '"1234567e1"' in read or "'1234567e1'" in read
    [application] = yaml.safe_load(rendered)["applications"]
    assert application["args"] == args
    assert application["deployments"][0]["user_config"] == {"rev": "7e10", "note": "a\u2028b"}
