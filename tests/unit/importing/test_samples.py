"""The samples of KubeRay and ado are imported, except for those with a reason, and no value of an input is dropped."""

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from components.ray_job.settings import JOB_LABEL
from components.ray_service.settings import SERVICE_LABEL
from stacks.commands.importing.file import clusters_in, import_file
from stacks.commands.importing.manifests import defaulted, from_owner
from stacks.launcher_files.reader import Answers, Imported, RefusedError
from stacks.load import parse
from stacks.objects.ray_clusters import rendered_job, rendered_service
from testbed.policies.verdicts import files
from tests.unit.importing.test_launcher import FIRST_OPERATOR, WITH_FIELDS
from tests.unit.importing.test_manifests import FULL, PLAIN, job
from tests.unit.importing.values import leaves

pytestmark = pytest.mark.thorough

FILES = {name: file for name, file in files().items() if "kind: Ray" in file.read_text()}


def _kinds(file: Path) -> set[str]:
    return set(re.findall(r"^kind: (\w+)$", file.read_text(), re.MULTILINE))


REFUSED = {
    "pytorch-resnet-image-classifier/ray-job.pytorch-image-classifier.yaml": "the object has no name",
    "pytorch-text-classifier/ray-job.pytorch-distributed-training.yaml": "the object has no name",
    "ray-job.kueue-toy-sample.yaml": "the object has no name",
    "ray-job.resources.yaml": "Ray would offer 2 GPUs, and its container has 0",
    "ray-job.use-existing-raycluster.yaml": "has no cluster",
    "vllm/ray-service.vllm-tpu-v6e-singlehost.yaml": "'$VLLM_IMAGE' is not an image reference",
}
"""Reasons, by the names of files."""


STAY = {
    "ray-job.deletion-rules.yaml": "'DeleteSelf' is not allowed",
    "ray-job.light-weight-submitter.yaml": "the job has nothing to run",
    "ray-service.custom-serve-service.yaml": "serveService cannot be written in a stack file",
    "ray-service.incremental-upgrade.yaml": "needs the operator's feature gate RayServiceIncrementalUpgrade",
}
"""RayJobs and RayServices that have no place in `jobs` and `services`, and why; their clusters stay."""

OWNERS = {"RayJob": "jobs", "RayService": "services"}


@pytest.mark.parametrize("name", FILES)
def test_a_sample_is_imported_or_refused_with_its_reason(name: str) -> None:
    """An imported one passes the check, which the import itself asks."""
    result = import_file(Path(FILES[name]), Answers(ray_version="2.60.0"))
    assert bool(result.text) == (name not in REFUSED)
    assert REFUSED.get(name, "") in "\n".join(result.lines)


OWNED = [name for name, file in FILES.items() if name not in REFUSED and _kinds(file) & OWNERS.keys()]


@pytest.mark.parametrize("name", OWNED)
def test_a_job_or_service_is_one_of_the_tenants(name: str) -> None:
    result = import_file(Path(FILES[name]), Answers(ray_version="2.60.0"))
    (tenant,) = yaml.safe_load(result.text)["config"]["ray-platform:tenants"]
    made = {key for key in ("clusters", *OWNERS.values()) if key in tenant}
    if name in STAY:
        assert made == {"clusters"}
        assert any("cannot be one of the tenant's" in line and STAY[name] in line for line in result.lines)
    else:
        assert made == {OWNERS[kind] for kind in _kinds(FILES[name]) & OWNERS.keys()}


@pytest.mark.parametrize("name", [name for name in OWNED if name not in STAY])
def test_it_renders_to_itself(name: str) -> None:
    """With the label that its NetworkPolicies need, and the pod that submits, which KubeRay would add by itself."""
    for body in yaml.load_all(FILES[name].read_text(), Loader=yaml.CSafeLoader):
        if not body or body["kind"] not in OWNERS:
            continue
        made = from_owner(body, Answers(ray_version="2.60.0"))
        stack = parse({"tenants": [{"name": "any", "podSecurity": "privileged", made.key: [made.entry]}]})
        (tenant,) = stack.tenants
        job = tenant.jobs[0] if tenant.jobs else None
        rendered = rendered_job(stack, tenant, job) if job else rendered_service(stack, tenant, tenant.services[0])
        assert comparable(rendered, made) == comparable(body, made)


def comparable(body: dict[str, Any], made: Imported) -> dict[str, Any]:
    """The spec with texts as their values and KubeRay's defaults, and without what the stack adds."""
    spec = {key: each for key, each in body["spec"].items() if each not in (None, False, 0, "", "K8sJobMode")}
    if "submitterPodTemplate" not in (made.owner.settings if made.owner else {}):
        spec.pop("submitterPodTemplate", None)
    for key in ("runtimeEnvYAML", "entrypointResources", "serveConfigV2"):
        if key in spec:
            spec[key] = yaml.safe_load(spec[key])
    key = "rayClusterSpec" if "rayClusterSpec" in spec else "rayClusterConfig"
    spec[key] = defaulted(spec[key])
    for group in (spec[key]["headGroupSpec"], *spec[key].get("workerGroupSpecs", ())):
        # KubeRay admits capitals in names of groups, and a stack file does not.
        group["groupName"] = group.get("groupName", "").lower()
        labels = group["template"].get("metadata", {}).get("labels", {})
        kept = {name: value for name, value in labels.items() if name not in (JOB_LABEL, SERVICE_LABEL)}
        group["template"]["metadata"] = {**group["template"].get("metadata", {}), "labels": kept}
    spec[key].setdefault("workerGroupSpecs", [])
    return spec


DOCUMENTS: dict[str, Any] = {
    **{file.stem: yaml.safe_load(file.read_text()) for file in (Path(__file__).parent / "launcher_files").glob("*")},
    "first operator": yaml.safe_load(FIRST_OPERATOR),
    "proposal": yaml.safe_load(WITH_FIELDS),
    "manifest": PLAIN,
    "full manifest": FULL,
    "job": job("RayJob", "rayClusterSpec", entrypoint="python train.py", shutdownAfterJobFinishes=True),
    "service": job("RayService", "rayClusterConfig", serveConfigV2="applications: []"),
}

WITHOUT_EFFECT = {
    ("provider", "type"): "machines of all providers are the Kubernetes cluster's",
    ("available_node_types", "head_node", "node_config", "apiVersion"): "a pod is a pod",
    ("available_node_types", "head_node", "node_config", "kind"): "a pod is a pod",
    ("docker", "run_options", 0): "each pod has a /dev/shm of its memory",
    ("available_node_types", "head_node", "node_config", "spec", "restartPolicy"): "the autoscaler replaces pods",
    ("available_node_types", "worker-node", "node_config", "spec", "restartPolicy"): "the autoscaler replaces pods",
    ("autoscaling_mode",): "default is what it is without",
    ("apiVersion",): "the version of the same object",
}
"""Leaves that nothing depends on, and why."""


def changed(value: Any, path: tuple[str | int, ...]) -> Iterator[Any]:
    """Copies of `value` with another leaf at `path`."""
    leaf = value
    for step in path:
        leaf = leaf[step]
    numbers = isinstance(leaf, int | float) and not isinstance(leaf, bool)
    for other in [leaf + 1, max(0, leaf - 1)] if numbers else [not leaf] if isinstance(leaf, bool) else [f"{leaf}9"]:
        yield with_value(value, path, other)


def with_value(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    copy = deepcopy(value)
    parent = copy
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = other
    return copy


def result(document: Any) -> Any:
    try:
        found, others = clusters_in(document, Answers())
    except RefusedError as refused:
        return str(refused)
    notes = [str(note) for each in found for note in each.notes]
    return [(each.entry, each.namespace) for each in found], notes, [str(note) for note in others]


def cases() -> list[Any]:
    return [
        pytest.param(name, path, id=f"{name}:{'.'.join(map(str, path))}")
        for name, document in DOCUMENTS.items()
        for path in leaves(document)
    ]


@pytest.mark.parametrize(("name", "path"), cases())
def test_every_leaf_is_listed_or_changes_the_result(name: str, path: tuple[str | int, ...]) -> None:
    """Changing a value that no note covers must change the result."""
    document = DOCUMENTS[name]
    [imported], _ = clusters_in(document, Answers())
    if any((note.path == path[: len(note.path)] and note.at is None) or note.path == path for note in imported.notes):
        return
    before = result(document)
    assert path in WITHOUT_EFFECT or any(result(each) != before for each in changed(document, path))


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(each, (*path, key))


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", "$X", -1, 0, 10**12, 1.5, True, [], {}, [None], [1], {"a": None}, "a: [", {"b": [{}]}]
)


@given(st.data())
@settings(derandomize=True, max_examples=600)
def test_wild_input_is_imported_or_refused(data: st.DataObject) -> None:
    document = DOCUMENTS[data.draw(st.sampled_from(sorted(DOCUMENTS)))]
    for _ in range(data.draw(st.integers(1, 3))):
        found = list(places(document))
        document = with_value(document, data.draw(st.sampled_from(found)), data.draw(ODD))
    result(document)
