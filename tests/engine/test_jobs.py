"""RayJobs of a live stack: what starts their jobs, and what does not; and what people may run of a job template."""

import asyncio
import base64
import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from components.job_template.manifests import code_of, run_of, size_name
from components.payloads import start_run
from components.ray_job.progress import JobFailedError, until_reached
from components.ray_job.settings import JOB_LABEL
from local.rehearsal import Rehearsal
from stacks.commands.run.live import RefusedError, cancel, start
from stacks.commands.run.package import pack
from testbed.client_session import ClientSession
from testbed.platform_stack import WORKERS, Rays, Stack, training
from testbed.pods.steps import until
from tests.engine.attacks import CODE, OF_LOCAL_CODE, OF_SIZES, RUNS
from tests.engine.conftest import MakeStack
from tests.engine.people import ALICE, BOB, Person, acting_as, jobs_of, refusal

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(900)]

NAMESPACE, NAME = "team-a", "count"

EXTERNAL, SUBMITTED = "lab", "there"
"""An external cluster, and a job on it. On a simulated node both pods succeed at once."""

TEMPLATE = "finetune"

MINE = "mine"
"""A template whose runs bring their code."""

SIZED, SIZES = "sized", {"small": {"replicas": 1}, "wide": {"replicas": 1, "cpu": 2}}
"""A template with sizes, and what these change of its workers."""

CODE_URI = f"gcs://_ray_pkg_{'a1' * 20}.zip"

LABEL, OF_TEMPLATE = (f"{JOB_LABEL}={name}" for name in (NAME, TEMPLATE))

APPLIED = 20.0
"""Seconds within which the API server knows a changed template; it usually takes much less."""


@pytest.fixture(scope="module")
def jobs(cluster: Rehearsal) -> Rays:
    return Rays(cluster, "rayjobs")


def job(settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = settings["tenants"][0]["jobs"][0]
    return found


def add(settings: dict[str, Any]) -> None:
    image = {key: training(settings)[key] for key in ("rayVersion", "image")}
    tenant = settings["tenants"][0]
    tenant["jobs"] = [{"name": NAME, "entrypoint": "true", "cluster": {**image, "workerGroups": [WORKERS]}}]
    vetted = {"entrypoint": "python train.py", "options": ["--epochs"], "activeDeadlineSeconds": 3600, "cluster": image}
    cron = {"schedule": "@yearly", "suspend": True, "arguments": ["--epochs=1"]}
    mine = {"name": MINE, "entrypoint": "python train.py", "localCode": True, "cluster": image}
    workers = {**image, "autoscaling": False, "workerGroups": [{**WORKERS, "replicas": 0}]}
    sizes = {name: {"workerGroups": [{"groupName": WORKERS["groupName"], **size}]} for name, size in SIZES.items()}
    sized = {"name": SIZED, "entrypoint": "python train.py", "cluster": workers, "sizes": sizes}
    tenant["jobTemplates"] = [{"name": TEMPLATE, **vetted, "cron": cron}, mine, sized]
    tenant["users"] = [
        f"user:{BOB.user}",
        {"subject": f"user:{ALICE.user}", "jobTemplates": [], "submitJobs": True},
    ]
    address = "http://lab-head-svc.laboratory.svc:8265"
    tenant["externalClusters"] = [{"name": EXTERNAL, "dashboardAddress": address, "image": image["image"]}]
    external = {"name": SUBMITTED, "entrypoint": "true", "externalCluster": EXTERNAL}
    tenant["jobs"].append({**external, "waitFor": "succeeded"})


@pytest.fixture(scope="module")
def dev(stack_on_operator: MakeStack) -> Stack:
    """The dev stack with a RayJob. Each test needs `up`."""
    return stack_on_operator("dev")


@pytest.fixture
def up(dev: Stack) -> Stack:
    return dev.settle(add)


def test_it_gets_a_cluster_of_its_own_and_a_pod_that_submits(up: Stack, rays: Rays, core: client.CoreV1Api) -> None:
    until(lambda: rays.named(NAMESPACE, LABEL), "KubeRay has created its RayCluster")
    # The namespace is at level restricted, which refuses the pod that KubeRay would create by itself.
    until(lambda: core.list_namespaced_pod(NAMESPACE, label_selector=f"job-name={NAME}").items, "its submitter starts")
    assert rays.exists(NAMESPACE, "training")
    up.changes_nothing()


def test_an_external_cluster_has_the_outputs_of_a_ray_cluster(up: Stack) -> None:
    outputs = up.outputs()
    external, own = (outputs["clusters"][f"{NAMESPACE}/{name}"] for name in (EXTERNAL, "training"))
    assert external.keys() == own.keys()
    assert external["status"].keys() == own["status"].keys()
    assert external["state"] == "ready"


@pytest.mark.thorough
def test_neither_drift_nor_a_refresh_starts_it_again(up: Stack, jobs: Rays) -> None:
    uid = jobs.read(NAMESPACE, NAME)["metadata"]["uid"]
    jobs.patch(NAMESPACE, NAME, {"spec": {"entrypoint": "python other.py", "activeDeadlineSeconds": 7200}})
    up.changes_nothing(refreshed=True)
    up.edit(lambda settings: settings["tenants"][0].update(owner="ml-research"))
    up.pulumi("up", "--yes", "--skip-preview", "--refresh")
    assert jobs.read(NAMESPACE, NAME)["metadata"]["uid"] == uid


@pytest.mark.thorough
def test_suspending_it_deletes_its_cluster_and_not_itself(up: Stack, jobs: Rays, rays: Rays) -> None:
    # A simulated submitter ends, and KubeRay soon finds that Ray has no such job: an ended job cannot be suspended.
    up.edit(lambda settings: job(settings).update(submissionMode="HTTPMode"))
    up.up()
    until(lambda: rays.named(NAMESPACE, LABEL), "KubeRay has created its RayCluster")
    uid = jobs.read(NAMESPACE, NAME)["metadata"]["uid"]
    up.edit(lambda settings: job(settings).update(suspend=True))
    up.up()
    until(lambda: not rays.named(NAMESPACE, LABEL), "its RayCluster is deleted")
    up.edit(lambda settings: job(settings).pop("suspend"))
    up.up()
    until(lambda: rays.named(NAMESPACE, LABEL), "it is resumed")
    assert jobs.read(NAMESPACE, NAME)["metadata"]["uid"] == uid


@pytest.fixture(scope="module")
def template(dev: Stack, cluster: Rehearsal) -> dict[str, Any]:
    """The job template in the cluster."""
    dev.settle(add)
    return Rays(cluster, "raycronjobs").read(NAMESPACE, TEMPLATE)


@pytest.fixture
def refused(cluster: Rehearsal) -> Callable[..., str]:
    """The error when a person creates a RayJob, as a dry run; empty if it is accepted."""

    def error(run: dict[str, Any], person: Person = BOB, namespace: str = NAMESPACE) -> str:
        return refusal(lambda: jobs_of(cluster, person).create(namespace, run, dry_run="All"))

    return error


@pytest.mark.parametrize("what", RUNS)
def test_a_run_equals_its_template_except_for_arguments(
    what: str, template: dict[str, Any], refused: Callable[..., str]
) -> None:
    edit, reason = RUNS[what]
    run = copy.deepcopy(run_of(template, [], BOB.user))
    edit(run)
    error = refused(run)
    assert reason in error
    assert bool(reason) == bool(error)


@pytest.mark.thorough
def test_a_run_is_for_those_who_may_run_the_template_where_it_is(
    template: dict[str, Any], refused: Callable[..., str]
) -> None:
    assert "you may not run this job template" in refused(run_of(template, [], ALICE.user), ALICE)
    run = run_of(template, [], BOB.user)
    assert 'cannot create resource \\"rayjobs\\"' in refused(
        {**run, "metadata": {**run["metadata"], "namespace": "default"}}, BOB, "default"
    )
    assert 'cannot create resource \\"rayjobs\\"' in refused(run_of(template, [], "eve"), Person("eve"))


@pytest.mark.thorough
def test_without_its_template_nothing_is_run(
    template: dict[str, Any], refused: Callable[..., str], cluster: Rehearsal
) -> None:
    run, templates = run_of(template, [], BOB.user), Rays(cluster, "raycronjobs")
    templates.delete(NAMESPACE, TEMPLATE)
    until(lambda: "no params found" in refused(run), "the API server knows no template", APPLIED)
    kept = {key: template["metadata"][key] for key in ("name", "labels", "annotations")}
    templates.create(NAMESPACE, {**template, "metadata": kept})
    until(lambda: refused(run) == "", "the template is back", APPLIED)


@pytest.mark.thorough
def test_users_change_no_run_and_delete_only_their_own(
    template: dict[str, Any], cluster: Rehearsal, jobs: Rays, rays: Rays
) -> None:
    run, of_bob, of_alice = run_of(template, [], BOB.user), jobs_of(cluster, BOB), jobs_of(cluster, ALICE)
    name = run["metadata"]["name"]
    of_bob.create(NAMESPACE, run)
    until(lambda: rays.named(NAMESPACE, OF_TEMPLATE), "KubeRay has created its RayCluster")
    for patch in ({"spec": {"entrypoint": "id"}}, {"metadata": {"annotations": {"ray-platform/created-by": "alice"}}}):
        changed = refusal(partial(of_bob.patch, NAMESPACE, name, patch))
        assert 'cannot patch resource \\"rayjobs\\"' in changed
    assert "this RayJob is not yours" in refusal(lambda: of_alice.delete(NAMESPACE, name))
    assert "this RayJob is not yours" in refusal(lambda: of_bob.delete(NAMESPACE, NAME))
    left_behind = refusal(lambda: of_bob.delete(NAMESPACE, name, propagation_policy="Orphan"))
    assert "delete it without --cascade=orphan" in left_behind
    of_bob.delete(NAMESPACE, name)
    until(lambda: not rays.named(NAMESPACE, OF_TEMPLATE), "its RayCluster is deleted")
    on_training = {
        "entrypoint": "true",
        "submissionMode": "HTTPMode",
        "clusterSelector": {"ray.io/cluster": "training"},
    }
    submitted = {**run, "metadata": {"name": "submitted"}, "spec": on_training}
    of_alice.create(NAMESPACE, submitted)
    of_alice.delete(NAMESPACE, "submitted")
    assert jobs.exists(NAMESPACE, NAME)


@pytest.mark.thorough
def test_the_commands_run_and_cancel_with_the_rights_of_a_user(
    template: dict[str, Any], cluster: Rehearsal, jobs: Rays
) -> None:
    of_bob = ClientSession(acting_as(BOB, cluster.client()))
    name, _ = start(of_bob, NAMESPACE, TEMPLATE, ["--epochs=1"])
    run = jobs.read(NAMESPACE, name)
    assert run["spec"]["entrypoint"] == "python train.py --epochs=1"
    assert run["metadata"]["annotations"]["ray-platform/created-by"] == BOB.user
    cancel(of_bob, NAMESPACE, name)
    until(lambda: not jobs.exists(NAMESPACE, name), "it is deleted")
    small, _ = start(of_bob, NAMESPACE, SIZED, [], size="small")
    [workers] = jobs.read(NAMESPACE, small)["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert (small.rpartition("-")[0], workers["replicas"]) == ("sized-small", 1)
    cancel(of_bob, NAMESPACE, small)


@pytest.fixture
def mine(template: dict[str, Any], cluster: Rehearsal) -> dict[str, Any]:
    """The job template in the cluster whose runs bring their code."""
    return Rays(cluster, "raycronjobs").read(NAMESPACE, MINE)


@pytest.mark.parametrize("what", OF_LOCAL_CODE)
def test_a_run_that_brings_code_mounts_that_of_its_author_and_nothing_else(
    what: str, mine: dict[str, Any], refused: Callable[..., str]
) -> None:
    edit, reason = OF_LOCAL_CODE[what]
    run = copy.deepcopy(run_of(mine, ["--epochs=3"], BOB.user, CODE_URI))
    edit(run)
    error = refused(run)
    assert reason in error
    assert bool(reason) == bool(error)


@pytest.mark.parametrize("what", CODE)
def test_a_user_creates_no_configmap_but_the_code_of_an_own_run(
    what: str, mine: dict[str, Any], cluster: Rehearsal
) -> None:
    edit, reason = CODE[what]
    run = run_of(mine, [], BOB.user, CODE_URI)
    run["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    code = code_of(run, b"PK")
    edit(code)
    error = refusal(lambda: configmaps_of(BOB, cluster).create_namespaced_config_map(NAMESPACE, code, dry_run="All"))
    assert reason in error
    assert bool(reason) == bool(error)


@pytest.mark.parametrize("what", OF_SIZES)
def test_a_run_has_one_of_the_sizes_of_its_template(
    what: str, template: dict[str, Any], cluster: Rehearsal, refused: Callable[..., str]
) -> None:
    size, edit, reason = OF_SIZES[what]
    held = {each: Rays(cluster, "raycronjobs").read(NAMESPACE, size_name(SIZED, each)) for each in (None, *SIZES)}
    run = copy.deepcopy(run_of(held[size], ["--epochs=3"], BOB.user))
    edit(run, {each: found["spec"]["jobTemplate"] for each, found in held.items()})
    error = refused(run)
    assert reason in error
    assert bool(reason) == bool(error)


@pytest.mark.thorough
def test_a_size_that_leaves_the_stack_file_is_refused(
    up: Stack, template: dict[str, Any], cluster: Rehearsal, refused: Callable[..., str]
) -> None:
    run = run_of(Rays(cluster, "raycronjobs").read(NAMESPACE, size_name(SIZED, "wide")), [], BOB.user)
    assert refused(run) == ""
    up.edit(lambda settings: settings["tenants"][0]["jobTemplates"][-1]["sizes"].pop("wide"))
    up.up()
    try:
        until(lambda: "or one of its sizes (small)" in refused(run), "the API server knows no such size", APPLIED)
    finally:
        up.settle(add)
    until(lambda: refused(run) == "", "the size is back", APPLIED)


def configmaps_of(person: Person, cluster: Rehearsal) -> Any:
    """The API of ConfigMaps, with only the rights of a person."""
    return client.CoreV1Api(acting_as(person, cluster.client()))


@pytest.mark.thorough
def test_a_run_brings_a_folder_which_nobody_changes_and_which_goes_with_it(
    mine: dict[str, Any], cluster: Rehearsal, core: client.CoreV1Api, jobs: Rays, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print('mine')")
    package, of_bob = pack(tmp_path), ClientSession(acting_as(BOB, cluster.client()))
    with pytest.raises(RefusedError, match="runs its own code: leave out --working-dir"):
        start(of_bob, NAMESPACE, TEMPLATE, [], package)
    with pytest.raises(RefusedError, match="bring their code: add `--working-dir FOLDER`"):
        start(of_bob, NAMESPACE, MINE, [])
    name, _ = start(of_bob, NAMESPACE, MINE, ["--epochs=1"], package)
    run = jobs.read(NAMESPACE, name)
    assert run["metadata"]["annotations"]["ray-platform/code"] == package.uri
    [volume] = run["spec"]["submitterPodTemplate"]["spec"]["volumes"]
    stored = volume["configMap"]["name"]
    held: Any = core.read_namespaced_config_map(stored, NAMESPACE)
    assert base64.b64decode(held.binary_data["code.zip"]) == package.content
    theirs = configmaps_of(BOB, cluster)
    for change in (
        partial(theirs.patch_namespaced_config_map, stored, NAMESPACE, {"immutable": False}),
        partial(theirs.delete_namespaced_config_map, stored, NAMESPACE),
        partial(theirs.read_namespaced_config_map, stored, NAMESPACE),
    ):
        assert 'resource \\"configmaps\\"' in refusal(change)
    assert "already exists" in refusal(
        lambda: theirs.create_namespaced_config_map(NAMESPACE, code_of(run, b"PK other code"))
    )
    of_alice = configmaps_of(ALICE, cluster)
    assert 'cannot create resource \\"configmaps\\"' in refusal(
        lambda: of_alice.create_namespaced_config_map(NAMESPACE, code_of(run, b"PK"))
    )
    cancel(of_bob, NAMESPACE, name)
    gone = f"metadata.name={stored}"
    until(lambda: not core.list_namespaced_config_map(NAMESPACE, field_selector=gone).items, "its code is deleted")


@pytest.mark.thorough
def test_a_schedule_creates_runs_with_the_rights_of_its_account_alone(
    template: dict[str, Any],
    cluster: Rehearsal,
    core: client.CoreV1Api,
    jobs: Rays,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The program of its pod, with the account's token."""
    api = cluster.client()
    cron: Any = client.BatchV1Api(api).read_namespaced_cron_job(TEMPLATE, NAMESPACE)
    pod = cron.spec.job_template.spec.template.spec
    for each in pod.containers[0].env:
        monkeypatch.setenv(each.name, each.value or "")
    monkeypatch.setenv("SERVER", api.configuration.host)
    request: Any = {"spec": {}}
    token: Any = core.create_namespaced_service_account_token(pod.service_account_name, NAMESPACE, request)
    (tmp_path / "token").write_text(token.status.token)
    (tmp_path / "ca.crt").write_bytes(Path(api.configuration.ssl_ca_cert).read_bytes())

    def starts(**settings: str) -> tuple[int, list[str]]:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        code = start_run.main(tmp_path)
        runs = jobs.named(NAMESPACE, f"ray-platform/job-template={TEMPLATE}")
        return code, [each["spec"]["entrypoint"] for each in runs if "deletionTimestamp" not in each["metadata"]]

    expected = ["python train.py --epochs=1"]
    assert starts(TIME="1") == (0, expected)
    assert starts(TIME="2") == (0, expected)
    assert starts(CONCURRENCY="Replace", TIME="3") == (0, expected)
    assert starts(CONCURRENCY="Allow", TIME="4", ARGUMENTS="--trust-remote-code") == (1, expected)
    assert "and this run gives another" in capsys.readouterr().out
    assert starts(CONCURRENCY="Replace", TIME="5") == (1, [])


@pytest.mark.thorough
def test_another_run_id_replaces_it(up: Stack, jobs: Rays, cluster: Rehearsal) -> None:
    batch = client.BatchV1Api(cluster.client())

    def uids() -> list[str]:
        external: list[Any] = [
            batch.read_namespaced_job(f"{name}-external", NAMESPACE) for name in (EXTERNAL, SUBMITTED)
        ]
        return [*(each.metadata.uid for each in external), jobs.read(NAMESPACE, NAME)["metadata"]["uid"]]

    def run_again(settings: dict[str, Any]) -> None:
        for each in settings["tenants"][0]["jobs"]:
            each["runId"] = "2"

    checked, *before = uids()
    up.edit(run_again)
    assert "2 to replace" in up.pulumi("preview").output
    up.up()
    checked_then, *after = uids()
    assert checked_then == checked
    assert not {*before} & {*after}
    up.changes_nothing()


@pytest.mark.thorough
def test_a_job_that_does_not_run_in_time_is_reported_with_what_it_waits_for(up: Stack, cluster: Rehearsal) -> None:
    session = ClientSession(cluster.client())
    head = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
    up.edit(lambda settings: job(settings)["cluster"].update(head=head))
    up.up()
    with pytest.raises(JobFailedError) as error:
        asyncio.run(until_reached(session, NAMESPACE, NAME, "running", "ray-system", 8, lambda _: None))
    assert str(error.value).startswith("RayJob team-a/count does not run after 8 s: Initializing")
    assert "didn't match Pod's node affinity/selector" in str(error.value)


@pytest.mark.thorough
@pytest.mark.last
def test_it_goes_with_its_entry_and_leaves_nothing(up: Stack, jobs: Rays, rays: Rays) -> None:

    def remove(settings: dict[str, Any]) -> None:
        for key in ("jobs", "jobTemplates", "users"):
            settings["tenants"][0].pop(key)

    up.edit(remove)
    up.up()
    assert not jobs.exists(NAMESPACE, NAME)
    until(lambda: not rays.named(NAMESPACE, LABEL), "its RayCluster is deleted")
    assert rays.exists(NAMESPACE, "training")
