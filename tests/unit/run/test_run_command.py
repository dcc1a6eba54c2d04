"""`ray-platform run` and `cancel`: output and exit codes, with an API server that each test sets."""

from pathlib import Path
from typing import Any

import pytest

from components import waiting
from components.cluster import ClusterUnreachableError, ForbiddenError, NoAnswerError
from components.job_template.manifests import CODE_ANNOTATION, OPTIONS_ANNOTATION
from components.ray_job import progress
from stacks.commands.status import live
from stacks.commands.status.snapshot import Live
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster, of_all_sessions
from tests.unit.status.live import NOW, found, metadata, ray_cluster

STACK = """\
config:
  ray-platform:kubernetes: {context: prod}
  ray-platform:tenants:
    - name: team-a
      jobs:
        - &job
          name: nightly
          entrypoint: python train.py
          cluster: {rayVersion: 2.60.0, image: "rayproject/ray:2.60.0"}
      jobTemplates:
        - {<<: *job, name: finetune}
        - {<<: *job, name: evaluate}
        - <<: *job
          name: sized
          cluster:
            rayVersion: 2.60.0
            image: rayproject/ray:2.60.0
            workerGroups: [{groupName: cpu, cpu: 1, memory: 4Gi}]
          sizes:
            small: {workerGroups: [{groupName: cpu, cpu: 2}]}
            large: {workerGroups: [{groupName: cpu, cpu: 8}]}
    - name: team-b
      jobNames: [weekly]
      jobTemplates:
        - {<<: *job, name: evaluate}
"""

TEMPLATE = {
    "metadata": metadata("finetune", labels={"ray-platform/job-template": "finetune"}),
    "spec": {"jobTemplate": {"entrypoint": "python train.py", "submissionMode": "K8sJobMode"}},
}

REFUSAL = "the API server refuses: ValidatingAdmissionPolicy 'job-templates' denied request"


class Api(FakeCluster):
    """An API server with one job template."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []
        self.created: dict[str, Any] = {}
        self.template: dict[str, Any] | None = TEMPLATE
        self.refuses: ClusterUnreachableError | None = None
        self.refuses_code: BaseException | None = None
        self.code: dict[str, Any] = {}
        self.looking: ClusterUnreachableError | None = None
        self.found: dict[str, Any] | None = None

    def run(self) -> dict[str, Any] | None:
        """A run that the command looks for."""
        if self.looking:
            raise self.looking
        return self.found

    def request(self, method: str, path: str, **more: Any) -> dict[str, Any] | None:
        assert self.connection.context == "prod"
        self.sent.append((method, path))
        if path.endswith("selfsubjectreviews"):
            return {"status": {"userInfo": {"username": "alice"}}}
        if method == "GET":
            return self.run() if "/rayjobs/" in path else self.template
        if self.refuses:
            raise self.refuses
        if path.endswith("configmaps"):
            if self.refuses_code:
                raise self.refuses_code
            self.code = more["body"]
        elif method == "POST":
            self.created = more["body"]
            return {**self.created, "metadata": {**self.created["metadata"], "uid": "1"}}
        return {}


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    """The API server of the stack file `prod`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    made = Api()
    of_all_sessions(monkeypatch, made)
    jobs = [{"metadata": metadata(name), "spec": {}} for name in ("finetune-x7k2p", "nightly")]
    own = found(rayjobs=[{"metadata": metadata("weekly"), "spec": {}}])
    exists = {"team-a": found(rayjobs=jobs, rayclusters=[ray_cluster("training")]), "team-b": own}
    monkeypatch.setattr(live, "look", lambda *_: Live(NOW, exists))
    return made


@pytest.mark.parametrize("arguments", [("--", "--epochs", "3"), ("--epochs", "3")])
def test_a_run_is_created_with_its_arguments_and_its_name_printed(api: Api, arguments: tuple[str, ...]) -> None:
    done = stacks("run", "prod", "finetune", *arguments)
    assert done.exit_code == 0, done.output
    name = api.created["metadata"]["name"]
    assert done.stdout == f"team-a/{name}\n"
    assert f"# ray-platform cancel prod team-a/{name}\n" in done.stderr
    assert api.created["spec"]["entrypoint"] == "python train.py --epochs 3"
    assert api.created["metadata"]["annotations"]["ray-platform/created-by"] == "alice"
    assert ("POST", "/apis/ray.io/v1/namespaces/team-a/rayjobs") in api.sent


def test_a_run_has_the_size_that_a_person_picks(api: Api) -> None:
    labels = {"ray-platform/job-template": "sized", "ray-platform/job-size": "large"}
    api.template = {**TEMPLATE, "metadata": metadata("sized-large", labels=labels)}
    done = stacks("run", "prod", "sized", "--size", "large", "--", "--size=3")
    assert done.exit_code == 0, done.output
    assert ("GET", "/apis/ray.io/v1/namespaces/team-a/raycronjobs/sized-large") in api.sent
    assert done.stdout.startswith("team-a/sized-large-")
    assert "without --size" not in done.stderr
    assert (api.created["metadata"]["labels"], api.created["spec"]["entrypoint"]) == (
        labels,
        "python train.py --size=3",
    )


def test_without_a_size_a_run_has_the_templates_own_and_the_others_are_named(api: Api) -> None:
    done = stacks("run", "prod", "sized")
    assert ("GET", "/apis/ray.io/v1/namespaces/team-a/raycronjobs/sized") in api.sent
    assert "# without --size it has the template's own cluster; sizes: small, large\n" in done.stderr
    assert "--size" not in stacks("run", "prod", "finetune").stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sized", "--size: job template sized has no size 'larg': use one of small, large, or leave it out"),
        (
            "finetune",
            "--size: job template finetune has no sizes: leave it out, or add sizes to the template; if --size is the "
            "job's option, write `--` before it",
        ),
    ],
)
def test_a_size_that_the_template_does_not_have_is_refused_with_those_that_it_has(
    api: Api, name: str, message: str
) -> None:
    done = stacks("run", "prod", name, "--size", "larg")
    assert (done.exit_code, api.sent) == (2, [])
    assert message in " ".join(done.stderr.split())


def test_a_misspelt_option_of_run_is_not_the_jobs(api: Api) -> None:
    done = stacks("run", "prod", "finetune", "--wiat", "--epochs", "3")
    assert (done.exit_code, api.sent) == (2, [])
    assert "No such option: --wiat. Did you mean --wait?" in done.stderr
    assert stacks("run", "prod", "finetune", "--", "--wiat").exit_code == 0
    assert api.created["spec"]["entrypoint"] == "python train.py --wiat"


def test_an_administrator_is_told_that_the_templates_options_do_not_bind_them(api: Api) -> None:
    api.template = {**TEMPLATE, "metadata": {**TEMPLATE["metadata"], "annotations": {OPTIONS_ANNOTATION: "--epochs"}}}
    done = stacks("run", "prod", "finetune", "--", "--epochs=3", "--lr", "3")
    assert done.exit_code == 0
    assert "# the template does not list --lr. You are an administrator" in done.stderr
    assert "list --epochs" not in done.stderr


def test_what_the_api_server_refuses_ends_with_1_and_its_reason(api: Api) -> None:
    api.refuses = ForbiddenError(REFUSAL)
    done = stacks("run", "prod", "finetune")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"no run of job template team-a/finetune was created: {REFUSAL}\n"


def test_a_run_whose_creation_was_not_answered_is_looked_for(api: Api) -> None:
    api.refuses = NoAnswerError("the API server does not answer: Read timed out")
    done = stacks("run", "prod", "finetune")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("no run of job template team-a/finetune was created: the API server does not answer")
    api.found = {"kind": "RayJob"}
    done = stacks("run", "prod", "finetune")
    assert (done.exit_code, done.stdout.startswith("team-a/finetune-")) == (0, True)
    method, path = [each for each in api.sent if "/rayjobs/" in each[1]][-1]
    assert (method, path.rpartition("/")[2]) == ("GET", done.stdout.strip().removeprefix("team-a/"))
    api.looking = NoAnswerError("the API server does not answer: Connection refused")
    done = stacks("run", "prod", "finetune")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("it is not known whether run team-a/finetune-")


def test_a_template_that_up_has_not_created_ends_with_1(api: Api) -> None:
    api.template = None
    done = stacks("run", "prod", "finetune")
    assert (done.exit_code, "not in the cluster: `up` creates it" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("finetun",), "the stack file has no job template 'finetun': did you mean 'finetune'?"),
        (("evaluate",), "several tenants have a job template 'evaluate': write team-a/evaluate or team-b/evaluate"),
        (("team-b/finetune",), "the stack file has no job template 'team-b/finetune'"),
        (("finetune", "--", "a;b"), "'a;b' is not an argument: a shell may interpret it"),
    ],
)
def test_wrong_use_ends_with_2_and_creates_nothing(api: Api, arguments: tuple[str, ...], shown: str) -> None:
    done = stacks("run", "prod", *arguments)
    assert (done.exit_code, done.stdout, api.created) == (2, "", {})
    assert shown in done.stderr


@pytest.fixture
def code(api: Api, tmp_path: Path) -> Path:
    """A folder, and a template whose runs bring their code."""
    submitter = {"spec": {"containers": [{"name": "ray-job-submitter"}]}}
    api.template = {
        "metadata": {**TEMPLATE["metadata"], "annotations": {CODE_ANNOTATION: "local"}},
        "spec": {"jobTemplate": {**TEMPLATE["spec"]["jobTemplate"], "submitterPodTemplate": submitter}},
    }
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print('mine')")
    return folder


def test_a_run_brings_the_code_of_a_folder(api: Api, code: Path) -> None:
    done = stacks("run", "prod", "finetune", "--working-dir", str(code), "--", "--epochs", "3")
    assert done.exit_code == 0, done.output
    uri = api.created["metadata"]["annotations"]["ray-platform/code"]
    assert f"# code: {uri}, 1 file, 1 KiB\n" in done.stderr
    [owner] = api.code["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"]) == (api.created["metadata"]["name"], "1")
    [volume] = api.created["spec"]["submitterPodTemplate"]["spec"]["volumes"]
    assert volume["configMap"]["name"] == api.code["metadata"]["name"]


def test_a_run_whose_code_is_refused_is_deleted(api: Api, code: Path) -> None:
    api.refuses_code = ForbiddenError("the API server refuses: exceeded quota")
    done = stacks("run", "prod", "finetune", "--working-dir", str(code))
    run = f"team-a/{api.created['metadata']['name']}"
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"run {run} was deleted, because its code was not stored: the API server refuses: exceeded quota\n"
    )
    assert api.sent[-1] == ("DELETE", f"/apis/ray.io/v1/namespaces/team-a/rayjobs/{run.partition('/')[2]}")


def test_a_run_that_is_interrupted_before_its_code_is_stored_is_deleted(api: Api, code: Path) -> None:
    api.refuses_code = KeyboardInterrupt()
    done = stacks("run", "prod", "finetune", "--working-dir", str(code))
    assert (done.exit_code, done.stdout) == (130, "")
    assert api.sent[-1][0] == "DELETE"


def test_a_template_of_local_code_needs_a_folder_and_another_takes_none(api: Api, code: Path) -> None:
    done = stacks("run", "prod", "finetune")
    assert (done.exit_code, api.created) == (1, {})
    assert "runs of job template team-a/finetune bring their code: add `--working-dir FOLDER`" in done.stderr
    api.template = TEMPLATE
    done = stacks("run", "prod", "finetune", "--working-dir", str(code))
    assert (done.exit_code, api.created) == (1, {})
    assert "job template team-a/finetune runs its own code: leave out --working-dir" in done.stderr


def test_a_folder_that_cannot_be_packed_ends_with_2(api: Api) -> None:
    done = stacks("run", "prod", "finetune", "--working-dir", "nowhere")
    assert (done.exit_code, api.sent) == (2, [])
    assert done.stderr == "--working-dir nowhere is not a folder\n"


SUCCEEDED = {"status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}}
FAILED = {"status": {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"}}


@pytest.mark.parametrize(
    ("last", "code", "shown"),
    [
        ((SUCCEEDED, "ended"), 0, "# SUCCEEDED"),
        ((FAILED, "ended"), 1, "has failed: AppFailed"),
        ((None, waiting.GONE), 1, ": it does not exist: it was deleted after its creation\n"),
    ],
)
def test_waiting_ends_with_the_job_or_when_somebody_cancels_it(
    api: Api, monkeypatch: pytest.MonkeyPatch, last: tuple[Any, str], code: int, shown: str
) -> None:
    looks = [({"status": {"jobDeploymentStatus": "Running"}}, "Running"), last]
    monkeypatch.setattr(progress, "look_at", lambda *_: looks.pop(0))
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0)
    done = stacks("run", "prod", "finetune", "--wait")
    assert done.exit_code == code
    assert "Running" in done.stderr
    assert shown in done.stderr


def test_cancelling_deletes_the_run(api: Api) -> None:
    done = stacks("cancel", "prod", "finetune-x7k2p")
    assert done.exit_code == 0, done.output
    assert done.stdout == "RayJob team-a/finetune-x7k2p is deleted, and its cluster with it\n"
    assert api.sent == [("DELETE", "/apis/ray.io/v1/namespaces/team-a/rayjobs/finetune-x7k2p")]


def test_a_run_of_somebody_else_is_not_deleted(api: Api) -> None:
    api.refuses = ForbiddenError("the API server refuses: this RayJob is not yours")
    done = stacks("cancel", "prod", "team-a/finetune-x7k2p")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("was not deleted: the API server refuses: this RayJob is not yours\n")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nightly", "RayJob team-a/nightly is in the stack file, and the next `up` would start it again: set suspend"),
        (
            "weekly",
            "RayJob team-b/weekly is in the stack file of the tenant's own stack, and the next `up` would",
        ),
        ("training", "RayCluster team-a/training is not a RayJob"),
        ("finetune-x7k2", "did you mean 'finetune-x7k2p'?"),
    ],
)
def test_nothing_else_is_deleted(api: Api, name: str, shown: str) -> None:
    done = stacks("cancel", "prod", name)
    assert (done.exit_code, api.sent) == (2, [])
    assert shown in done.stderr
