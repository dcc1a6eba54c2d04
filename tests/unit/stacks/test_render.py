"""The program creates all objects of the list of a stack, and no others."""

import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from components.install import Installed
from components.operator import upgrade
from components.ray_job.manifests import RUN_ANNOTATION
from components.redis import component as redis
from components.redis.existing import Seen
from core.environment import tenants_stack
from core.images import images_in
from core.yaml_reader.document import document
from stacks.commands.render.files import dump
from stacks.commands.render.stages import rendered_stack
from stacks.load import load, parse
from stacks.objects.stack import STACK, Key, key_of, ray_clusters, render
from stacks.program import facts
from stacks.program.build import build
from stacks.settings import PlatformReference, StackSettings
from testbed.recorder import Recorder, Registered, record
from tests.unit.stacks.references import needed

ROOT = Path(__file__).parents[3]
GOOD = [*sorted((ROOT / "tests" / "stack_files" / "good").glob("*.yaml")), *sorted(ROOT.glob("Pulumi.*.yaml"))]


@pytest.fixture(autouse=True)
def installed_without_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    """KubeRay, Volcano and Kueue have no objects of their own here; external ones and external Redis exist."""
    for program in ("operator", "volcano", "kueue"):
        component = f"components.{program}.component"
        monkeypatch.setattr(f"{component}.{program}_objects", lambda *_: ([], [], []))
        reads = "read" if program == "volcano" else "render"
        monkeypatch.setattr(f"{component}.{reads}", lambda *_, **__: [])
    monkeypatch.setattr(facts, "uid_of", lambda *_: None)
    monkeypatch.setattr(upgrade, "check_existing", lambda *_: ("1.6.2", None))
    monkeypatch.setattr(Installed, "check", lambda *_: "1.0.0")
    monkeypatch.setattr(facts, "check_kinds", lambda *_: None)
    monkeypatch.setattr(redis, "see", lambda *_: Seen({"username": "u", "password": "p"}, None))


@functools.cache
def read(file: Path) -> StackSettings:
    """Each file is read once."""
    return load(file)


Secrets = set[tuple[str, str]]
"""Their namespaces and names."""


@functools.cache
def recorded(file: Path) -> tuple[StackSettings, tuple[Recorder, ...]]:
    """The stack, and what the programs of all parts of its environment register."""
    stack = read(file)
    if stack.platform:
        # Only an update knows the outputs of another stack.
        stack = stack.model_copy(update={"platform": PlatformReference()})
    groups = stack.split.stacks if stack.split else 0
    names = [STACK, *(tenants_stack(STACK, group) for group in range(1, groups + 1))]
    return stack, tuple(record(lambda: build(stack), stack=name) for name in names)


def registered(recorders: Iterable[Recorder]) -> tuple[set[Key], Secrets]:
    """The objects that programs register; the Secrets among them apart."""
    found: list[Key] = []
    secrets: Secrets = set()
    for recorder in recorders:
        for each in recorder.registered.values():
            if each.type == "kubernetes:core/v1:Secret":
                secrets.add((each.inputs["metadata"]["namespace"], each.inputs["metadata"]["name"]))
            elif each.type.startswith("kubernetes:"):
                found.append(key_of(each.inputs))
    assert len(found) == len({*found}), "no object is in two stacks"
    return {*found}, secrets


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_the_program_registers_the_rendered_objects(file: Path) -> None:
    stack, recorders = recorded(file)
    found, secrets = registered(recorders)
    assert found == render(stack).keys()
    assert_that_plain_manifests_refer_to(secrets, stack)


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_each_object_is_below_a_component_and_made_after_all_that_it_needs(file: Path) -> None:
    """Its namespace, the objects that it names, and the definitions of its kind."""
    for recorder in recorded(file)[1]:
        objects = [each for each in recorder.registered.values() if each.type.startswith("kubernetes:")]
        assert all(each.parent for each in objects)
        there = {key: each.name for each in objects for key in made_by(each.inputs)}
        for each in objects:
            namespace = each.inputs["metadata"].get("namespace")
            # The first pod of a CronJob starts long after.
            spec = {} if each.inputs["kind"] == "CronJob" else each.inputs.get("spec", {})
            names = [("Namespace", namespace), *needed(spec)]
            needs = [(kind, at, name) for kind, name in names for at in (namespace, None)]
            first = {there[key] for key in needs if key in there} - {each.name}
            if each.type.startswith("kubernetes:ray.io/"):
                first |= {"platform-kuberay-crd-guard"} & recorder.registered.keys()
            assert {name for name in first if not recorder.made_before(name, each.name)} == set(), each.name


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_each_object_has_its_place_in_the_stack_file(file: Path) -> None:
    stack = read(file)
    settings = stack.model_dump(by_alias=True)
    for key, each in render(stack).items():
        at: Any = settings
        for step in each.place:
            assert isinstance(step, int) or step in at, (key, each.place)
            at = at[step]
        if key[0] == "RayCluster":
            assert at["name"] == each.body["metadata"]["name"]


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_plain_manifests_are_the_rendered_objects_as_yaml(file: Path) -> None:
    stack = read(file)
    found = rendered_stack(stack, STACK, ())
    plain = {key_of(body): body for bodies in found.stages.values() for body in bodies}
    left = {kind for kind, _ in render(stack).keys() - plain.keys()}
    assert plain.keys() <= render(stack).keys()
    assert left <= {"Job", "RayJob"}
    for body in plain.values():
        written = document(dump(body))
        assert written is not None
        assert written.value == json.loads(json.dumps(body))


def made(file: str, kind: str) -> list[Registered]:
    """The objects of a kind that a good file registers."""
    recorders = recorded(GOOD[0].with_name(f"{file}.yaml"))[1]
    found = [
        each
        for recorder in recorders
        for each in recorder.registered.values()
        if each.type == f"kubernetes:ray.io/v1:{kind}"
    ]
    assert found
    return found


def test_only_another_run_replaces_a_job_and_only_suspend_reaches_it() -> None:
    for job in made("jobs", "RayJob"):
        assert job.replaced_on == (f'metadata.annotations["{RUN_ANNOTATION}"]',)
        assert {*job.ignored} == {"metadata.labels", *(f"spec.{key}" for key in job.inputs["spec"])} - {"spec.suspend"}


def test_every_edit_of_a_service_is_applied_in_place_except_another_queue_of_kueue() -> None:
    queue = ('metadata.labels["kueue.x-k8s.io/queue-name"]',)
    assert {(each.replaced_on, each.ignored) for each in made("services", "RayService")} == {(queue, ())}


def made_by(body: dict[str, Any]) -> Iterator[tuple[str, str | None, str]]:
    """The objects that exist with this one: kind, namespace and name. cert-manager creates the Secret of a
    Certificate."""
    namespace = body["metadata"].get("namespace")
    yield body["kind"], namespace, body["metadata"]["name"]
    if body["kind"] == "Certificate":
        yield "Secret", namespace, body["spec"]["secretName"]


OF_SCHEDULERS = {"volcano-admission-secret", "kueue-webhook-server-cert"}
"""Secrets of programs that are not among plain manifests."""


def assert_that_plain_manifests_refer_to(secrets: Secrets, stack: StackSettings) -> None:
    """All Secrets that pods use; `up` also creates some for tenants none of whose RayClusters uses Redis."""
    text = {name: "" for name, _ in secrets}
    for (_, name), each in render(stack).items():
        namespace = name.partition("/")[0]
        if namespace in text:
            text[namespace] += json.dumps(each.body)
    used = {(namespace, name) for namespace, name in secrets if f'"{name}"' in text[namespace]}
    referred = {(each.namespace, each.name) for each in rendered_stack(stack, STACK, ()).secrets}
    assert {each for each in used if each[1] not in OF_SCHEDULERS} <= referred


def test_ray_clusters_alone_are_those_among_all_objects() -> None:
    stack = read(GOOD[0].with_name("tenants.yaml"))
    alone = ray_clusters(stack)
    assert alone
    assert alone == {key: each for key, each in render(stack).items() if key[0] == "RayCluster"}


def test_each_object_has_the_stacks_mirrors() -> None:
    stack = parse({"images": {"mirrors": {"docker.io": "mirror.example"}}, "redis": {}})
    [redis] = [each.body for (kind, _), each in render(stack).items() if kind == "StatefulSet"]
    assert {image for _, image in images_in(redis)} == {"mirror.example/library/redis:7.2.11"}
