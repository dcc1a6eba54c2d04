"""The images of a stack's pods, from all settings of a stack file that can name one."""

import json
from pathlib import Path
from typing import Any

import pytest

from stacks.commands.images.used import Used, used
from stacks.load import parse
from stacks.objects.stack import images_of
from testbed.commands import stacks

RAY = "rayproject/ray:2.60.0"

OPERATOR = "quay.io/kuberay/operator:v1.6.2"


def _images(cluster: dict[str, Any], **settings: Any) -> set[str]:
    clusters = [{"name": "training", "rayVersion": "2.60.0", "image": RAY, "workers": {"pool": "a100"}, **cluster}]
    nodes = [{"pool": "a100", "count": 1, "cpu": 8, "memory": "64Gi", "gpus": 1}]
    tenants = [{"name": "team-a", "podSecurity": "baseline", "clusters": clusters}]
    return images_of(parse({"nodes": nodes, "tenants": tenants, **settings}))


def test_images_of_ray_and_of_the_programs_that_the_stack_installs() -> None:
    assert _images({}) == {RAY, OPERATOR}
    assert _images({}, operator={"install": "existing"}) == {RAY}
    assert _images({}, operator={"image": "mirror.example/operator:v1.6.2"}) == {RAY, "mirror.example/operator:v1.6.2"}
    names = ("scheduler", "controller-manager", "webhook-manager")
    volcanos = {f"docker.io/volcanosh/vc-{name}:v1.14.1" for name in names}
    assert _images({}, scheduler={"volcano": {}}) == {RAY, OPERATOR, *volcanos}
    assert _images({}, scheduler={"volcano": {"install": "existing"}}) == {RAY, OPERATOR}


SIDECAR = {"containers": [{"name": "logs", "image": "other:2.60.0"}]}

INIT = {"initContainers": [{"name": "fetch", "image": "other:2.60.0"}]}


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param({"head": {"image": "other:2.60.0"}}, id="the head's"),
        pytest.param(
            {"workerGroups": [{"groupName": "cpus", "cpu": 1, "memory": "2Gi", "image": "other:2.60.0"}]},
            id="a worker group's",
        ),
        pytest.param({"head": {"podTemplate": {"spec": INIT}}}, id="an init container's"),
        pytest.param({"head": {"podTemplate": {"spec": SIDECAR}}}, id="a sidecar's"),
        pytest.param({"workers": {"pool": "a100", "podTemplate": {"spec": SIDECAR}}}, id="a worker's sidecar's"),
        pytest.param({"overrides": {"autoscalerOptions": {"image": "other:2.60.0"}}}, id="the autoscaler's"),
        pytest.param({"overrides": {"headGroupSpec": {"template": {"spec": INIT}}}}, id="an override's"),
    ],
)
def test_images_that_a_cluster_sets_beside_its_own(cluster: dict[str, Any]) -> None:
    assert _images(cluster) == {RAY, OPERATOR, "other:2.60.0"}


DIGEST = f"sha256:{'a' * 64}"


def test_the_command_lists_images_with_their_users_digests_and_mirrors_and_manifests(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(f"""
config:
  ray-platform:images: {{mirrors: {{docker.io: mirror.example/hub}}}}
  ray-platform:nodes: [{{pool: a100, count: 1, cpu: 8, memory: 64Gi, gpus: 1}}]
  ray-platform:tenants:
    - name: team-a
      clusters:
        - name: training
          rayVersion: 2.60.0
          image: rayproject/ray:2.60.0@{DIGEST}
          workers: {{pool: a100}}
        - {{name: research, rayVersion: 2.60.0, image: "rayproject/ray:2.60.0", workers: {{pool: a100}}}}
""")
    found = json.loads(stacks("images", str(file), "--format", "json").stdout)
    pinned, ray, operator = sorted(found["images"], key=lambda each: (each["digest"] is None, each["image"]))
    assert pinned == {
        "image": f"docker.io/rayproject/ray:2.60.0@{DIGEST}",
        "pulledAs": f"mirror.example/hub/rayproject/ray:2.60.0@{DIGEST}",
        "digest": DIGEST,
        "usedBy": ["RayCluster team-a/training"],
    }
    assert (ray["pulledAs"], ray["usedBy"]) == (
        "mirror.example/hub/rayproject/ray:2.60.0",
        ["RayCluster team-a/research"],
    )
    assert (operator["image"], operator["pulledAs"], operator["usedBy"]) == (OPERATOR, OPERATOR, ["KubeRay"])
    [kuberay] = found["manifests"]
    assert (kuberay["program"], kuberay["version"]) == ("KubeRay", "1.6.2")
    assert kuberay["location"].endswith("ray-operator/config/default?ref=v1.6.2")
    text = stacks("images", str(file)).stdout
    assert "docker.io/rayproject/ray:2.60.0\n    pulled as mirror.example/hub/rayproject/ray:2.60.0\n" in text
    assert "images: 3, without a digest: 2; manifests: 1" in text


def test_the_command_reports_an_invalid_file(tmp_path: Path) -> None:
    done = stacks("images", str(tmp_path / "none.yaml"))
    assert (done.exit_code, "cannot be read" in done.stderr) == (2, True)


def test_a_stack_on_cloudera_ml_alone_pulls_and_downloads_nothing() -> None:
    """`up` creates no operator for it."""
    cluster = {"name": "a", "project": "abcd-efgh-1234-5678", "rayVersion": "2.60.0"}
    workers = {"numWorkers": 1, "resources": {"cpu": 4, "memory": 8}}
    stack = parse({"cml": {"host": "https://ml-1234.example.cloudera.site", "clusters": [{**cluster, **workers}]}})
    assert used(stack) == Used((), ())
