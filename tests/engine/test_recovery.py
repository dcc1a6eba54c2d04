"""One command recovers an update that is killed (SIGKILL of all its processes) at any moment (docs/operations.md)."""

import itertools
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kubernetes import client

from core.engine import STATE_AT_END
from local.rehearsal import Rehearsal
from testbed.aws import CREDENTIALS, bucket, key
from testbed.harness import Project
from tests.engine.conftest import PROGRAMS, MakeProject

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(1200)]

NUMBERS = itertools.count(1)

SHELVES = 30

HIDDEN = "correct horse battery staple"

CHANCE = random.Random(19)  # noqa: S311 -- worker processes need the same names of tests

MOMENTS = {
    "as the program begins": (0, 1.0),
    "at a random moment": (CHANCE.randrange(1, SHELVES), CHANCE.random() / 10),
}
"""The moments: after this number of objects exists, and this number of seconds."""


@dataclass(frozen=True)
class Store:
    """A namespace with many objects, each created after the one before it."""

    project: Project
    namespace: str
    core: client.CoreV1Api

    def uids(self) -> dict[str, str]:
        """The uids of existing objects, by name."""
        items = self.core.list_namespaced_config_map(self.namespace).to_dict()["items"]
        found = {item["metadata"]["name"]: str(item["metadata"]["uid"]) for item in items}
        return {name: uid for name, uid in found.items() if name.startswith("shelf-")}

    def high(self) -> int:
        """The number of objects of height 2."""
        items = self.core.list_namespaced_config_map(self.namespace).items
        return sum(item.data == {"height": "2"} for item in items)

    def killed(self, made: int, seconds: float = 0.0, environment: Mapping[str, str] = STATE_AT_END) -> dict[str, str]:
        """Kills an update so many seconds after so many objects exist; returns the uids of its objects."""
        update = self.project.start("up", "--yes", "--skip-preview", environment=environment)

        def reached() -> bool:
            if len(self.uids()) < made:
                return False
            time.sleep(seconds)
            return True

        self.project.killed(reached, update)
        return self.uids()

    def is_whole(self, before: Mapping[str, str]) -> None:
        """Fails the test unless all objects exist, existing ones were kept, and nothing is left to do."""
        now = self.uids()
        assert now.keys() == {f"shelf-{number}" for number in range(SHELVES)}
        assert {name: now[name] for name in before} == before, "objects were recreated"
        assert len(self.project.resources()) == SHELVES + 3  # the stack, its provider and the namespace
        self.project.changes_nothing()


@pytest.fixture
def store(project: MakeProject, cluster: Rehearsal) -> Store:
    made = project(PROGRAMS / "shelves.py", cluster=cluster)
    store = Store(made, f"store-{next(NUMBERS)}", client.CoreV1Api(cluster.client()))
    made.configure("namespace", store.namespace)
    made.configure("shelves", str(SHELVES))
    return store


@pytest.mark.thorough
@pytest.mark.parametrize(("made", "seconds"), MOMENTS.values(), ids=MOMENTS.keys())
def test_one_command_recovers_a_killed_first_update(store: Store, made: int, seconds: float) -> None:
    before = store.killed(made, seconds, environment={})
    if made:
        # It is locked, or its state cannot be read.
        store.project.up(fails=True)
    recovered = store.project.recover().output
    assert not made or "removed the lock of" in recovered
    store.is_whole(before)


@pytest.mark.thorough
def test_a_killed_recovery_is_recovered(store: Store) -> None:
    """After an update that has written no state at all (PULUMI_SKIP_CHECKPOINTS): the created objects are unknown."""
    before = store.killed(SHELVES // 3)
    assert store.project.resources() == []
    store.project.killed(lambda: bool(store.project.resources()), store.project.start_recovery())
    continued = store.project.start_recovery()
    store.project.killed(lambda: len(store.uids()) > len(before) + 3, continued)
    before = store.uids()
    store.project.recover()
    store.is_whole(before)


def test_it_recovers_to_the_current_program(store: Store) -> None:
    """Objects of the killed update are changed like any others, without forcing conflicts."""
    store.killed(SHELVES // 2, environment={})
    store.project.configure("height", "2")
    store.project.recover()
    store.is_whole({})
    assert store.high() == SHELVES


@pytest.mark.thorough
def test_it_recovers_an_update_that_replaces_what_exists(store: Store) -> None:
    """Pulumi deletes a changed ConfigMap before it creates the new one. Until then the state has a deleted object."""
    store.project.up()
    store.project.configure("height", "2")
    update = store.project.start("up", "--yes", "--skip-preview")
    store.project.killed(lambda: store.high() > SHELVES // 3, update)
    store.project.recover()
    store.is_whole({})
    assert store.high() == SHELVES


@pytest.mark.thorough
def test_an_external_object_is_named_and_never_adopted(store: Store) -> None:
    store.killed(SHELVES // 3, environment={})
    foreign = client.V1ConfigMap(metadata={"name": f"shelf-{SHELVES - 1}"}, data={"height": "external"})
    store.core.create_namespaced_config_map(store.namespace, foreign, field_manager="kubectl-create")
    refused = store.project.recover(fails=True).output
    assert f"ConfigMap {store.namespace}/shelf-{SHELVES - 1} exists, and stack 'test' did not create it" in refused
    assert "kubectl-create" in refused
    kept = store.core.read_namespaced_config_map(f"shelf-{SHELVES - 1}", store.namespace)
    assert kept.data == {"height": "external"}
    store.core.delete_namespaced_config_map(f"shelf-{SHELVES - 1}", store.namespace)
    before = store.uids()
    store.project.recover()
    store.is_whole(before)


@pytest.mark.thorough
def test_a_stack_moves_into_a_bucket_and_is_recovered_there(store: Store, tmp_path: Path) -> None:
    """As docs/clouds.md describes it. The passphrase encrypts the secrets in both, until a key service does."""
    store.project.configure("password", HIDDEN, "--secret")
    store.project.configure("shelves", "10")
    store.project.up()
    before, moved = store.uids(), str(tmp_path / "moved.json")
    store.project.pulumi("stack", "export", "--file", moved)
    with bucket(tmp_path / "s3") as states, key(tmp_path / "kms") as secrets:
        store.project.environment |= {**CREDENTIALS, "PULUMI_BACKEND_URL": states.url}
        store.project.pulumi("stack", "init", "test")
        store.project.pulumi("stack", "import", "--file", moved)
        store.project.changes_nothing()
        assert store.project.setting("password") == HIDDEN

        store.project.pulumi("stack", "change-secrets-provider", secrets)
        del store.project.environment["PULUMI_CONFIG_PASSPHRASE"]
        assert store.project.setting("password") == HIDDEN
        store.project.configure("shelves", str(SHELVES))
        before |= store.killed(SHELVES // 2, environment={})
        assert "the stack is currently locked by 1 lock" in store.project.up(fails=True).output
        assert "removed the lock of" in store.project.recover().output
        now = store.uids()
        assert len(now) == SHELVES
        assert {name: now[name] for name in before} == before, "objects were recreated"
        store.project.changes_nothing()
        store.project.pulumi("destroy", "--yes", "--skip-preview")
        assert store.uids() == {}
        stored = [each.read_bytes() for each in states.folder.rglob("*") if each.is_file()]
        assert stored
        assert not [each for each in stored if HIDDEN.encode() in each]


@pytest.mark.thorough
def test_a_killed_first_update_can_be_destroyed_completely(store: Store) -> None:
    """`pulumi destroy` only knows the state, so the state is recovered first."""
    store.killed(SHELVES // 2)
    store.project.recover("--state-only")
    store.project.pulumi("destroy", "--yes", "--skip-preview")
    assert store.project.resources() == []
    assert store.namespace not in {item["metadata"]["name"] for item in store.core.list_namespace().to_dict()["items"]}


@pytest.mark.thorough
def test_a_state_with_empty_attributes_can_be_read_again(project: MakeProject) -> None:
    """Pulumi empties them before it writes them. Two of the first dozen kills left such a state."""
    shop = project("")
    shop.up()
    (attributes,) = (shop.folder.parent / "state" / ".pulumi" / "stacks").rglob("test.json.attrs")
    attributes.write_text("")
    assert "failed to load checkpoint: EOF" in shop.up(fails=True).output
    shop.recover()
    shop.changes_nothing()


def test_a_running_update_is_not_recovered(project: MakeProject) -> None:
    shop = project(
        """
        import pathlib, time
        import pulumi
        print("the first one runs", flush=True)
        while not pulumi.runtime.is_dry_run() and not pathlib.Path("finish").exists():
            time.sleep(0.1)
        """
    )
    first = shop.start("up", "--yes", "--skip-preview")
    assert first.stdout is not None
    for line in first.stdout:
        if "the first one runs" in line:
            break
    assert "the stack is currently locked by 1 lock" in shop.up(fails=True).output
    refused = shop.recover(fails=True).output
    assert f"process {first.pid}" in refused
    assert "still runs" in refused
    (shop.folder / "finish").touch()
    output, _ = first.communicate(timeout=300)
    assert first.returncode == 0, output
