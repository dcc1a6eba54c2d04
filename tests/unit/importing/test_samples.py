"""The samples of KubeRay and ado are imported, except for those that have a reason."""

from pathlib import Path

import pytest

from stacks.importing.file import import_file
from stacks.importing.reader import Answers
from testbed.policies.verdicts import files

pytestmark = pytest.mark.unit

FILES = {name: file for name, file in files().items() if "kind: Ray" in file.read_text()}

REFUSED = {
    "ray-cluster.deprecate-gcs-ft.yaml": "a command line keeps no secret",
    "pytorch-resnet-image-classifier/ray-job.pytorch-image-classifier.yaml": "the object has no name",
    "pytorch-text-classifier/ray-job.pytorch-distributed-training.yaml": "the object has no name",
    "ray-job.kueue-toy-sample.yaml": "the object has no name",
    "ray-job.resources.yaml": "Ray would offer 2 GPUs, and its container has 0",
    "ray-job.use-existing-raycluster.yaml": "has no cluster",
    "vllm/ray-service.vllm-tpu-v6e-singlehost.yaml": "'$VLLM_IMAGE' is not an image reference",
}
"""Reasons, by the names of files."""


@pytest.mark.parametrize("name", FILES)
def test_a_sample_is_imported_or_refused_with_its_reason(name: str) -> None:
    """An imported one passes the check, which the import itself asks."""
    result = import_file(Path(FILES[name]), Answers(ray_version="2.60.0"))
    assert bool(result.text) == (name not in REFUSED)
    assert REFUSED.get(name, "") in "\n".join(result.lines)
