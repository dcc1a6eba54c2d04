"""A stack as plain manifests: stages, what is left, files, and which folders `render` writes again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.commands.render.files import OccupiedError, dump, write
from stacks.commands.render.stages import OPERATOR, Rendered, rendered_stack
from stacks.load import load, parse
from testbed.commands import stacks
from tests.unit.stacks.references import needed

ROOT = Path(__file__).parents[3]
GOOD = ROOT / "tests" / "stack_files" / "good"

ON_CML = """config:
  ray-platform:cml:
    host: https://ml-1234.example.cloudera.site
    clusters:
      - {name: a, project: abcd-efgh-1234-5678, rayVersion: 2.60.0, numWorkers: 1, resources: {cpu: 4, memory: 8}}
"""


@pytest.fixture(scope="module")
def prod() -> Rendered:
    return rendered_stack(load(ROOT / "Pulumi.prod.yaml"), "prod", ())


@pytest.fixture(scope="module")
def dev() -> Rendered:
    """Few files, for tests that write them several times."""
    return rendered_stack(load(ROOT / "Pulumi.dev.yaml"), "dev", ())


def names(rendered: Rendered, stage: str, kind: str) -> list[str]:
    return [body["metadata"]["name"] for body in rendered.stages[stage] if body["kind"] == kind]


def annotations(rendered: Rendered, stage: str, kind: str) -> dict[str, str]:
    found: dict[str, str] = next(
        body["metadata"]["annotations"] for body in rendered.stages[stage] if body["kind"] == kind
    )
    return found


def test_each_stage_needs_those_before_it(prod: Rendered) -> None:
    assert "vision" in names(prod, "20-namespaces", "Namespace")
    assert "ray-platform.prod.scaling-only" in names(prod, "30-rules", "ValidatingAdmissionPolicy")
    assert names(prod, "30-rules", "ClusterRole")
    assert names(prod, "50-platform", "StatefulSet") == ["ray-redis"]
    assert names(prod, "50-platform", "Queue")
    assert "training" in names(prod, "60-tenants", "RayCluster")
    of_cluster = annotations(prod, "60-tenants", "RayCluster")
    assert of_cluster["argocd.argoproj.io/sync-wave"] == "60"
    # It scales, so Flux only creates it.
    assert of_cluster["kustomize.toolkit.fluxcd.io/ssa"] == "IfNotPresent"


@pytest.mark.parametrize("file", sorted(GOOD.glob("*.yaml")), ids=lambda file: file.stem)
def test_each_object_has_its_wave_and_all_that_it_refers_to_is_there_before_it(file: Path) -> None:
    found = rendered_stack(load(file), file.stem, ())
    placed = {
        (body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]): stage
        for stage, bodies in found.stages.items()
        for body in bodies
    }
    for stage, body in ((stage, body) for stage, bodies in found.stages.items() for body in bodies):
        metadata = body["metadata"]
        assert metadata["annotations"]["argocd.argoproj.io/sync-wave"] == stage[:2]
        kept = body["kind"] in {"Namespace", "PersistentVolume", "PersistentVolumeClaim", "Queue", "ClusterQueue"}
        assert (metadata["annotations"].get("kustomize.toolkit.fluxcd.io/prune") == "disabled") == kept
        assert ("Prune=false" in metadata["annotations"].get("argocd.argoproj.io/sync-options", "")) == kept
        namespace = metadata.get("namespace")
        assert placed.get(("Namespace", None, namespace), "") < stage
        if stage >= OPERATOR:
            for kind, name in needed(body.get("spec", {})):
                for there in ((kind, namespace, name), (kind, None, name)):
                    assert placed.get(there, "") < stage, (body["kind"], metadata["name"], there)


def test_the_operators_own_manifests_are_adapted(tree: list[dict[str, Any]]) -> None:
    stack = parse({"operator": {"namespace": "rays", "image": "mirror.example/operator:v1.6.2"}})
    found = rendered_stack(stack, "dev", tree)
    assert "rayclusters.ray.io" in names(found, "10-definitions", "CustomResourceDefinition")
    [deployment] = [body for body in found.stages["40-operator"] if body["kind"] == "Deployment"]
    assert deployment["metadata"]["namespace"] == "rays"
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror.example/operator:v1.6.2"
    kept = annotations(found, "10-definitions", "CustomResourceDefinition")
    assert kept["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
    assert kept["kustomize.toolkit.fluxcd.io/prune"] == "disabled"


def test_what_is_no_plain_manifest_is_named(prod: Rendered) -> None:
    left = " ".join(f"{each.what}: {each.why}" for each in prod.left)
    for part in ("Volcano 1.14.1", "Numbers of workers", "ads/tuning, ", "storage namespace", "Guards", "preview"):
        assert part in left


def test_jobs_run_once_and_are_not_rendered() -> None:
    found = rendered_stack(load(GOOD / "jobs.yaml"), "jobs", ())
    kinds = {body["kind"] for bodies in found.stages.values() for body in bodies}
    assert not kinds & {"RayJob", "Job"}
    assert any(each.what.startswith("Jobs team-a/") for each in found.left)


def test_secrets_are_references(prod: Rendered) -> None:
    found = {(each.namespace, each.name): each.users for each in prod.secrets}
    assert "RayCluster training" in found["vision", "ray-redis"]
    assert ("ray-redis", "ray-redis-users") in found
    assert "Secret" not in {body["kind"] for bodies in prod.stages.values() for body in bodies}
    volume = {"name": "keys", "csi": {"driver": "keys.example.com", "nodePublishSecretRef": {"name": "keys"}}}
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "volumes": [volume]}
    with_csi = rendered_stack(parse({"tenants": [{"name": "team-a", "clusters": [cluster]}]}), "csi", ())
    assert ("team-a", "keys") in {(each.namespace, each.name) for each in with_csi.secrets}


def test_a_secret_of_cert_manager_is_not_missing() -> None:
    found = rendered_stack(load(GOOD / "tls.yaml"), "tls", ())
    bodies = [body for stage in found.stages.values() for body in stage]
    issued = [body["spec"]["secretName"] for body in bodies if body["kind"] == "Certificate"]
    assert issued
    assert not {each.name for each in found.secrets} & set(issued)


def content(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def test_files_are_the_same_each_time_and_none_remains(prod: Rendered, tmp_path: Path) -> None:
    write(prod, "prod", tmp_path / "first", "clusters/prod")
    again = rendered_stack(load(ROOT / "Pulumi.prod.yaml"), "prod", ())
    write(rendered_stack(parse({}), "prod", ()), "prod", tmp_path / "second", "clusters/prod")
    write(again, "prod", tmp_path / "second", "clusters/prod")
    assert content(tmp_path / "first") == content(tmp_path / "second")


def test_each_file_is_in_the_kustomization_of_its_stage(prod: Rendered, tmp_path: Path) -> None:
    write(prod, "prod", tmp_path, "clusters/prod")
    stages = yaml.safe_load((tmp_path / "kustomization.yaml").read_text())["resources"]
    assert stages == list(prod.stages)
    for stage in stages:
        listed = yaml.safe_load((tmp_path / stage / "kustomization.yaml").read_text())["resources"]
        assert {*listed, "kustomization.yaml"} == {each.name for each in (tmp_path / stage).iterdir()}
    flux = list(yaml.safe_load_all((tmp_path / "flux.yaml").read_text()))
    assert [each["spec"]["path"] for each in flux] == [f"./clusters/prod/{stage}" for stage in stages]
    assert flux[1]["spec"]["dependsOn"] == [{"name": flux[0]["metadata"]["name"]}]
    application = yaml.safe_load((tmp_path / "argocd.yaml").read_text())
    assert application["spec"]["source"]["path"] == "clusters/prod"


def test_texts_that_yaml_would_read_as_something_else_are_quoted() -> None:
    assert (
        dump({"a": "7e10", "b": "yes", "c": "1:30", "d": "a\nb\n"})
        == "a: '7e10'\nb: 'yes'\nc: '1:30'\nd: |\n  a\n  b\n"
    )
    assert dump({"n": "y"}) == "'n': 'y'\n"


def test_names_that_differ_in_what_files_have_not_have_two_files(tmp_path: Path) -> None:
    roles = [{"apiVersion": "v1", "kind": "ClusterRole", "metadata": {"name": name}} for name in ("a:b", "a-b", "A-b")]
    write(Rendered({"30-rules": roles}, (), ()), "dev", tmp_path, "x")
    files = list((tmp_path / "30-rules").glob("clusterrole--a-b-*.yaml"))
    assert {yaml.safe_load(each.read_text())["metadata"]["name"] for each in files} == {"a:b", "a-b", "A-b"}


def test_the_name_of_a_stack_becomes_one_of_kubernetes(dev: Rendered, tmp_path: Path) -> None:
    write(dev, "Prod_EU", tmp_path, "x")
    assert yaml.safe_load((tmp_path / "argocd.yaml").read_text())["metadata"]["name"] == "ray-platform-prod-eu"
    first = next(yaml.safe_load_all((tmp_path / "flux.yaml").read_text()))
    assert first["metadata"]["name"].startswith("ray-platform-prod-eu-")


@pytest.fixture
def render(tmp_path: Path) -> Callable[[str], tuple[int, str, str]]:
    """Renders a stack file into the folder `out`: exit code, output and errors."""

    def command(text: str) -> tuple[int, str, str]:
        (tmp_path / "Pulumi.small.yaml").write_text(text)
        done = stacks("render", str(tmp_path / "Pulumi.small.yaml"), "-o", str(tmp_path / "out"))
        return done.exit_code, done.stdout, done.stderr

    return command


def test_the_command(render: Callable[[str], tuple[int, str, str]], tmp_path: Path) -> None:
    text = "config:\n  ray-platform:operator: {install: existing}\n  ray-platform:tenants: [{name: team-a}]\n"
    code, shown, _ = render(text)
    assert code == 0
    assert "objects in 2 stages, references to 0 Secrets\nnot in there: Guards" in shown
    assert "# Stack small as plain manifests" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("config:\n  ray-platform:operator: {location: /nowhere}\n", 1, "error: "),
        ("config:\n  ray-platform:operator: {replicas: 9}\n", 2, ""),
        # `up` creates no operator for it, so neither do manifests.
        (ON_CML, 1, " has nothing on Kubernetes, so it has no manifests\n"),
    ],
)
def test_the_command_reports_what_it_cannot_do(
    render: Callable[[str], tuple[int, str, str]], tmp_path: Path, text: str, code: int, message: str
) -> None:
    ended, _, shown = render(text)
    assert ended == code
    assert message in shown
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_refused(dev: Rendered, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(OccupiedError, match="has other files"):
        write(dev, "dev", tmp_path, "x")
    assert (tmp_path / "mine.txt").exists()
    write(dev, "dev", tmp_path / "new", "x")
    (tmp_path / "new" / "mine.txt").touch()
    with pytest.raises(OccupiedError, match="has other files"):
        write(dev, "dev", tmp_path / "new", "x")
    (tmp_path / "new" / "mine.txt").rename(tmp_path / "new" / "60-tenants" / "mine.yaml")
    with pytest.raises(OccupiedError, match="has other files"):
        write(dev, "dev", tmp_path / "new", "x")
    (tmp_path / "new" / "60-tenants" / "mine.yaml").unlink()
    write(dev, "dev", tmp_path / "new", "x")


@pytest.mark.parametrize("name", ["mine.yaml", "team-a--secret--mine.yaml"])
def test_a_file_of_ones_own_is_kept_even_if_the_kustomization_lists_it(
    dev: Rendered, tmp_path: Path, name: str
) -> None:
    write(dev, "dev", tmp_path, "x")
    mine = tmp_path / "60-tenants" / name
    mine.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: mine, namespace: team-a}\n")
    list_resources(tmp_path, lambda listed: [*listed, name])
    whole = content(tmp_path)
    with pytest.raises(OccupiedError, match=f"has other files, such as 60-tenants/{name}: "):
        write(dev, "dev", tmp_path, "x")
    assert content(tmp_path) == whole


@pytest.mark.parametrize("resources", [None, {"a.yaml": 1}, [{"a": 1}], "folder"])
def test_a_folder_with_another_kustomization_is_refused_and_kept(dev: Rendered, tmp_path: Path, resources: Any) -> None:
    write(dev, "dev", tmp_path, "x")
    if resources == "folder":
        (tmp_path / "60-tenants" / "folder").mkdir()
    list_resources(tmp_path, lambda listed: [*listed, "folder"] if resources == "folder" else resources)
    whole = content(tmp_path)
    with pytest.raises(OccupiedError, match="has other files, such as 60-tenants/"):
        write(dev, "dev", tmp_path, "x")
    assert content(tmp_path) == whole


@pytest.mark.parametrize("kept", [0, 8, 200])
def test_a_file_whose_writing_was_stopped_is_written_again(dev: Rendered, tmp_path: Path, kept: int) -> None:
    write(dev, "dev", tmp_path, "x")
    whole = content(tmp_path)
    for file in (tmp_path / "30-rules").glob("*--*.yaml"):
        file.write_bytes(file.read_bytes()[:kept])
    write(dev, "dev", tmp_path, "x")
    assert content(tmp_path) == whole


def list_resources(folder: Path, change: Callable[[list[str]], Any]) -> None:
    file = folder / "60-tenants" / "kustomization.yaml"
    whole = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**whole, "resources": change(whole["resources"])}))


def test_a_folder_whose_readme_is_in_another_encoding_is_refused(dev: Rendered, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes("Größe".encode("latin-1"))
    with pytest.raises(OccupiedError, match="has other files"):
        write(dev, "dev", tmp_path, "x")


@pytest.mark.parametrize("number", [1, 8, 20])
def test_a_folder_whose_writing_was_stopped_is_written_again(
    dev: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write(dev, "dev", tmp_path, "x")
    whole, left = content(tmp_path), iter(range(number))
    unlink = Path.unlink

    def stopped(file: Path) -> None:
        if next(left, None) is None:
            raise PermissionError
        unlink(file)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", stopped)
        with pytest.raises(PermissionError):
            write(dev, "dev", tmp_path, "x")
    write(dev, "dev", tmp_path, "x")
    assert content(tmp_path) == whole
