"""Every sample of KubeRay's own, imported: it renders to the same cluster, or is refused for a known reason."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from core.problems import StackFileError
from local.tools import KUBERAY
from stacks.commands.importing.manifests import KINDS, completed, defaulted, from_manifest, has_cluster
from stacks.commands.importing.writing import tenants
from stacks.launcher_files.reader import Answers, RefusedError
from stacks.load import parse

pytestmark = [pytest.mark.engine, pytest.mark.thorough]

ANSWERS = {
    "ray-job.pytorch-image-classifier.yaml": Answers(name="classifier"),
    "ray-job.pytorch-distributed-training.yaml": Answers(name="training"),
    "ray-job.kueue-toy-sample.yaml": Answers(name="toy"),
    "ray-cluster-label-selector.yaml": Answers(ray_version="2.60.0"),
}
"""Values that a person has to add to samples without a name, or with an image without a version."""

REFUSED = {
    "ray-service.vllm-tpu-v6e-singlehost.yaml": "image '$VLLM_IMAGE' has no version of Ray",
}
"""Samples that are refused on purpose, and the reported reason."""

REFUSED_BY_CHECK = {"ray-job.resources.yaml": "Ray would offer 2 GPUs, and its container has 0"}
"""Samples that are imported as they are and then have to be edited: this one counts GPUs that no container has."""


def samples() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted((KUBERAY.share("config") / "samples").rglob("*.yaml")):
        for body in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader):
            if body and body["kind"] in KINDS and has_cluster(body):
                yield file.name, body


def test_there_are_samples_of_every_kind() -> None:
    assert {body["kind"] for _, body in samples()} == set(KINDS)


def test_every_sample_renders_to_itself_or_is_refused_for_a_known_reason() -> None:
    wrong = {}
    for name, body in samples():
        try:
            result = from_manifest(body, ANSWERS.get(name))
        except RefusedError as refused:
            if REFUSED.get(name, "no reason") not in str(refused):
                wrong[name] = str(refused)
            continue
        spec: Any = body
        for step in KINDS[body["kind"]]:
            spec = spec[step]
        made = ray_cluster(valid(result.cluster), ())
        if defaulted(made["spec"]) != completed(defaulted(spec)):
            wrong[name] = "differs"
        try:
            parse({"tenants": tenants([result], namespace="team")})
        except StackFileError as refused:
            if REFUSED_BY_CHECK.get(name, "no reason") not in str(refused):
                wrong[name] = str(refused)
    assert wrong == {}


def test_answers_and_reasons_are_of_existing_samples() -> None:
    assert {*REFUSED, *REFUSED_BY_CHECK, *ANSWERS} <= {
        path.name for path in Path(KUBERAY.share("config") / "samples").rglob("*.yaml")
    }
