"""Kueue in the rehearsal: the real manager beside the real operator, as the stack installs it, on simulated nodes."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
import yaml
from kubernetes import client, utils
from prometheus_client.parser import text_string_to_metric_families

from components.kueue.settings import KueueSettings
from components.monitoring import metrics
from components.ray_job.settings import JOB_LABEL
from components.ray_service.settings import SERVICE_LABEL
from local import tools
from local.host_pods.states import read_states
from local.rehearsal import Rehearsal
from stacks.program.cancelled import EXIT_CODE
from testbed.browser import browser
from testbed.gangs import settled
from testbed.kubectl import Kubectl
from testbed.platform_stack import Rays, Stack, existing
from tests.engine.conftest import MakeStack
from tests.engine.people import Judge, Person, account, refusal
from tests.engine.ray_gangs import KUEUE_API, Suspended

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(600)]

KUEUE, MANAGER = "kueue-system", "kueue-controller-manager"

TRAINING = {
    "name": "training",
    "rayVersion": "2.60.0",
    "image": "rayproject/ray:2.60.0",
    "autoscaling": False,
    "workers": {"pool": "a100", "variants": [{"gpus": 8, "minReplicas": 1}]},
}
"""The stack's RayCluster: a head, and one worker with the GPUs of a node."""


JOB = {
    "name": "count",
    "entrypoint": "python count.py",
    "cluster": {**{key: TRAINING[key] for key in ("rayVersion", "image")}, "autoscaling": False},
}
"""A RayJob with only a head."""


def with_kueue(settings: dict[str, Any]) -> None:
    """The dev stack with Kueue, and a team that may use half of the GPUs."""
    # Its pod is Ready at once, and on a busy machine the manager takes longer than 10 s until it listens.
    settings["scheduler"] = {"kueue": {"webhook": {"timeoutSeconds": 30}}}
    tenant = settings["tenants"][0]
    tenant["queue"] = {"capability": {"gpus": 16}}
    tenant["clusters"] = [TRAINING]
    settings["access"] = {"clusterAdmins": ["group:platform"]}


@pytest.fixture(scope="module")
def before(cluster: Rehearsal) -> set[str]:
    """The objects in the cluster before the stack."""
    return existing(cluster)


@pytest.fixture(scope="module")
def made(stack: MakeStack, before: set[str]) -> Stack:
    """A stack. Each test needs `up`."""
    return stack("kueue")


@pytest.fixture
def up(made: Stack) -> Stack:
    """The stack with Kueue after `pulumi up`."""
    return made.settle(with_kueue)


@pytest.fixture
def team(up: Stack, cluster: Rehearsal) -> Suspended:
    """The team's namespace."""
    return Suspended(cluster, "team-a")


def test_its_manager_runs_and_has_admitted_the_stacks_raycluster(up: Stack, cluster: Rehearsal, rays: Rays) -> None:
    states = {pod.deployment: pod.state for pod in read_states(cluster.run)}
    assert states[f"{KUEUE}/{MANAGER}"] == "Running"
    assert up.outputs()["scheduler"] == {"name": "kueue", "version": "0.19.2"}
    training = rays.read("team-a", "training")
    assert training["status"]["state"] == "ready"
    assert training["spec"]["suspend"] is False


def test_cluster_admins_change_its_configuration_and_no_other_object_there(up: Stack, cluster: Rehearsal) -> None:
    patch = ("patch", "-n", KUEUE, "--type=merge", "--dry-run=server", "--as=root", "--as-group=platform")
    note = ("-p", '{"metadata": {"annotations": {"note": "1"}}}')
    kubectl = Kubectl(cluster)
    kubectl.does(*patch, *note, f"configmap/{KueueSettings.CONFIG_MAP}")
    for other in ("configmap/kube-root-ca.crt", f"deployment/{MANAGER}", "secret/kueue-webhook-server-cert"):
        assert "is forbidden" in kubectl.tries(*patch, *note, other).stderr


def test_an_account_that_may_read_metrics_gets_those_of_the_alerts(
    up: Stack, cluster: Rehearsal, core: client.CoreV1Api
) -> None:
    """As docs/monitoring.md has it for a Prometheus."""
    rbac = client.RbacAuthorizationV1Api(cluster.client())
    [port] = [pod.ports[8443] for pod in read_states(cluster.run) if pod.deployment == f"{KUEUE}/{MANAGER}"]
    url, http = f"https://127.0.0.1:{port}/metrics", urllib3.PoolManager(cert_reqs="CERT_NONE", assert_hostname=False)
    group, reader = "rbac.authorization.k8s.io", {"name": "prometheus", "namespace": "default"}
    bodies = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": reader},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "prometheus"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "kueue-metrics-reader"},
            "subjects": [{"kind": "ServiceAccount", **reader}],
        },
    ]
    for body in bodies:
        utils.create_from_dict(cluster.client(), body)
    try:
        asked = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
        granted = core.create_namespaced_service_account_token("prometheus", "default", asked).status
        assert granted
        assert http.request("GET", url).status == 401
        answer = http.request("GET", url, headers={"Authorization": f"Bearer {granted.token}"})
    finally:
        rbac.delete_cluster_role_binding("prometheus")
        core.delete_namespaced_service_account("prometheus", "default")
    assert answer.status == 200
    families = text_string_to_metric_families(answer.data.decode())
    assert set(metrics.Kueue) <= {sample.name for family in families for sample in family.samples}


def test_it_admits_a_rayjob_with_its_submitter_and_leaves_a_raycluster_with_kubernetes_scheduler_alone(
    up: Stack, cluster: Rehearsal, rays: Rays
) -> None:
    """That RayCluster has more GPUs than the queue. Kueue admits others, and the RayCluster of a RayJob, by `suspend`
    and node selectors, and writes its certificate into existing objects."""
    workers = {"pool": "a100", "variants": [{"gpus": 8, "minReplicas": 3, "maxReplicas": 3}]}
    at_once = {**TRAINING, "name": "at-once", "scheduler": "kubernetes", "workers": workers}
    more = {"scheduler": ["kueue", "kubernetes"], "clusters": [TRAINING, at_once], "jobs": [JOB]}
    up.edit(lambda settings: settings["tenants"][0].update(more))
    up.up()
    made = rays.read("team-a", "at-once")
    assert made["status"]["state"] == "ready"
    assert not [label for label in made["metadata"].get("labels", {}) if "kueue" in label]
    settled(lambda: bool(rays.named("team-a", f"{JOB_LABEL}=count")))
    team = Suspended(cluster, "team-a")
    workloads: Any = team.objects.list_namespaced_custom_object(*KUEUE_API, "team-a", "workloads")
    [of_job] = [each for each in workloads["items"] if each["metadata"]["ownerReferences"][0]["kind"] == "RayJob"]
    assert [each["name"] for each in of_job["spec"]["podSets"]] == ["head", "submitter"]
    up.changes_nothing(refreshed=True)


def test_a_gang_waits_until_it_fits_and_no_later_one_overtakes_it(team: Suspended) -> None:
    """8 of 16 GPUs are free: not enough for the first, but enough for the second."""
    team.start_ray("wide", {8: 2}, "team-a")
    settled(lambda: "insufficient unused quota for nvidia.com/gpu" in team.why("wide"))
    # Kubernetes' times are whole seconds: of two within one second either may be the first.
    time.sleep(1.0)
    team.start_ray("narrow", {8: 1}, "team-a")
    settled(lambda: team.pending("team-a") == 2)
    assert [team.placed_ray("wide"), team.placed_ray("narrow")] == [[], []]
    team.end_ray("wide")
    settled(lambda: len(team.placed_ray("narrow")) == 2)
    team.end_ray("narrow")


def test_in_a_namespace_without_a_localqueue_nothing_is_admitted(up: Stack, cluster: Rehearsal) -> None:
    elsewhere = Suspended(cluster, "elsewhere")
    utils.create_from_dict(elsewhere.api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    elsewhere.start_ray("stray", {8: 1}, "team-a")
    settled(lambda: "LocalQueue team-a doesn't exist" in elsewhere.why("stray"))
    assert elsewhere.placed_ray("stray") == []
    elsewhere.end_ray("stray")
    elsewhere.core.delete_namespace("elsewhere")
    settled(lambda: "namespace elsewhere" not in existing(cluster))


def greater(settings: dict[str, Any]) -> None:
    """A second RayCluster, for which there is no room beside the first."""
    variants = [{"gpus": 8, "minReplicas": 2}]
    second = {**TRAINING, "name": "greater", "readyTimeout": "5s", "workers": {"pool": "a100", "variants": variants}}
    settings["tenants"][0]["clusters"].append(second)


def status(up: Stack, *arguments: str) -> str:
    """The output of `ray-platform status`, which ends with 1."""
    command = [sys.executable, "-m", "stacks", "status", str(up.file), *arguments]
    done = subprocess.run(command, cwd=up.folder, env=up.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout


def on_page(up: Stack) -> str:
    """The text of `ray-platform page --live` in a browser."""
    command = [sys.executable, "-m", "stacks", "page", str(up.file), "--live", "--port", "0"]
    served = subprocess.Popen(command, cwd=up.folder, env=up.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdout is not None
        with browser() as chromium:
            page = chromium.new_page()
            page.goto(served.stdout.readline().partition(" ")[0])
            return " ".join(page.inner_text("body").split())
    finally:
        served.send_signal(signal.SIGINT)
        assert served.wait(timeout=30) == EXIT_CODE


def test_an_up_that_waits_for_a_queue_the_status_and_the_page_report_why(up: Stack) -> None:
    up.edit(greater)
    output = up.up(fails=True).output
    assert "RayCluster team-a/greater waits in its queue: couldn't assign flavors to pod set" in output
    assert "it waits in its queue: couldn't assign flavors to pod set" in output
    shown = json.loads(status(up, "--format", "json"))
    training, waits = shown["tenants"][0]["clusters"]
    assert (training["state"], training["gpus"]) == ("ready", {"held": 8, "waiting": 0, "most": 8})
    assert (waits["state"], waits["inStackFile"], waits["gpus"]["most"]) == ("waiting", True, 16)
    assert "it waits in its queue: couldn't assign flavors to pod set" in waits["reasons"][0]
    [queue] = shown["queues"]
    assert (queue["queue"], queue["used"]["gpus"], queue["limit"]["gpus"]) == ("team-a", 8, 16)
    assert (queue["admitted"], queue["waiting"], shown["unreadable"]) == (1, 1, [])
    first, *lines = status(up).splitlines()
    assert first == "kueue: 1 of 2 RayClusters ready (1 waiting); GPUs: 8 of 24 held; 1 in queues"
    assert [line.split()[:2] for line in lines if line.startswith("greater")] == [["greater", "waiting"]]
    assert any(line.startswith(f"- RayCluster greater: {waits['reasons'][0][:60]}") for line in lines)
    page = on_page(up)
    assert "RayCluster greater it waits in its queue: couldn't assign flavors to pod set" in page
    assert "8 of 24 GPUs held" in page
    assert re.search(r"a100-\d 8 of 8 GPUs held (team-a/training head )?team-a/training a100-8gpu", page)


def edited(**keys: Any) -> Callable[[dict[str, Any]], None]:
    """The stack's RayCluster with other keys."""
    return lambda settings: settings["tenants"][0]["clusters"][0].update(keys)


def test_an_edit_of_an_admitted_raycluster_restarts_it_only_if_containers_change(
    up: Stack, team: Suspended, rays: Rays
) -> None:
    """Kueue has written into worker groups, and their list is one value to server-side apply."""

    def pods() -> set[str]:
        return {pod["metadata"]["uid"] for pod in team.pods("team-a", "ray.io/cluster=training")}

    def written() -> dict[str, Any]:
        found: dict[str, Any] = rays.read("team-a", "training")["spec"]["workerGroupSpecs"][0]["template"]["metadata"]
        return found

    first = pods()
    assert written()["labels"]["kueue.x-k8s.io/podset"] == "a100-8gpu"
    up.edit(edited(labels={"edited": "yes"}))
    up.up()
    assert rays.read("team-a", "training")["metadata"]["labels"]["edited"] == "yes"
    assert (pods(), written()["labels"]["kueue.x-k8s.io/podset"]) == (first, "a100-8gpu")
    up.changes_nothing(refreshed=True)
    up.edit(edited(env={"LEVEL": "2"}))
    up.up()
    settled(lambda: len(pods()) == 2 and not pods() & first)
    settled(lambda: len(team.placed_ray("training")) == 2)
    # Kueue has restored the labels of pods that it had admitted.
    assert "edited" not in written()["labels"]
    up.pulumi("up", "--yes", "--skip-preview", "--refresh")
    assert written()["labels"]["edited"] == "yes"
    up.changes_nothing(refreshed=True)


TUNING = {
    **{key: TRAINING[key] for key in ("rayVersion", "image")},
    "name": "tuning",
    "workers": {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 2}]},
}
"""A RayCluster that scales."""


def test_of_a_raycluster_that_scales_it_admits_each_worker(up: Stack, team: Suspended, rays: Rays) -> None:
    def scale(workers: int) -> None:
        """As the autoscaler does."""
        number = {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": workers}
        rays.patch("team-a", "tuning", [number], _content_type="application/json-patch+json")

    up.edit(lambda settings: settings["tenants"][0]["clusters"].append(TUNING))
    up.up()
    settled(lambda: len(team.placed_ray("tuning")) == 1)
    scale(1)
    settled(lambda: len(team.placed_ray("tuning")) == 2)
    scale(2)
    settled(lambda: "insufficient unused quota for nvidia.com/gpu" in team.why("tuning"))
    settled(lambda: len(team.pods("team-a", "ray.io/cluster=tuning")) == 3)
    assert len(team.placed_ray("tuning")) == 2
    up.edit(lambda settings: settings["tenants"][0]["clusters"][1].update(env={"LEVEL": "2"}))
    up.up()
    up.changes_nothing(refreshed=True)
    spec = rays.read("team-a", "tuning")["spec"]
    assert (spec["workerGroupSpecs"][0]["replicas"], spec["suspend"]) == (2, False)
    assert len(team.placed_ray("tuning")) == 2


def service(workers: int, version: str = "1") -> dict[str, Any]:
    """A RayService with workers of eight GPUs. Its head is on no node: simulated pods never serve."""
    head = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
    variants = [{"gpus": 8, "minReplicas": workers}]
    keys = ("rayVersion", "image", "autoscaling")
    return {
        "name": "chat",
        "serveConfigV2": {"applications": [{"import_path": "chat:app", "args": {"version": version}}]},
        "cluster": {
            **{key: TRAINING[key] for key in keys},
            "head": head,
            "workers": {"pool": "a100", "variants": variants},
        },
    }


def test_it_admits_a_rayservice_and_takes_it_out_if_it_is_never_ready(up: Stack, team: Suspended, rays: Rays) -> None:
    def clusters() -> list[dict[str, Any]]:
        return rays.named("team-a", f"{SERVICE_LABEL}=chat")

    def suspended(value: bool) -> bool:
        return {each["spec"].get("suspend", False) for each in clusters()} == {value}

    up.edit(lambda settings: settings["tenants"][0].update(services=[service(2)]))
    up.up()
    settled(lambda: "insufficient unused quota for nvidia.com/gpu" in team.why("chat"))
    settled(lambda: suspended(True))
    assert "it waits in its queue: couldn't assign flavors to pod set" in status(up)
    up.edit(lambda settings: settings["tenants"][0].update(services=[service(1)]))
    up.up()
    settled(lambda: suspended(False))
    names = {each["metadata"]["name"] for each in clusters()}
    up.edit(lambda settings: settings["tenants"][0].update(services=[service(1, "2")]))
    up.up()
    assert {each["metadata"]["name"] for each in clusters()} == names
    other = service(1, "2")
    other["cluster"]["env"] = {"LEVEL": "2"}
    up.edit(lambda settings: settings["tenants"][0].update(services=[other]))
    up.up()
    settled(lambda: any("LEVEL" in str(each) and not each["spec"]["suspend"] for each in clusters()))
    up.changes_nothing(refreshed=True)
    up.edit(lambda settings: settings["scheduler"]["kueue"].update(waitForPodsReady={"timeoutSeconds": 20}))
    up.up()
    settled(lambda: suspended(True))
    assert rays.read("team-a", "training")["spec"]["suspend"] is False


def rules_of_the_tree() -> set[tuple[str, str, str, str]]:
    """The rights in Kueue's own ClusterRoles for its manager: verb, group, resource, name. Kustomize adds `kueue-` to
    the names of its webhook configurations."""
    folder = tools.KUEUE.share("config") / "components" / "rbac"
    roles = [yaml.safe_load((folder / file).read_text()) for file in ("role.yaml", "metrics_auth_role.yaml")]
    return {
        (verb, group, resource, f"kueue-{name}" if name.endswith("-webhook-configuration") else name)
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


@pytest.mark.usefixtures("up")
def test_it_has_only_the_rights_of_its_tree(cluster: Rehearsal) -> None:
    judge = Judge(cluster.client())
    given = judge.rules(account(KUEUE, MANAGER), "default") - judge.rules(Person("anybody"), "default")
    assert given
    assert given <= rules_of_the_tree()


@pytest.fixture
def manager_down(team: Suspended, cluster: Rehearsal) -> Iterator[None]:
    """Scales Kueue's manager to no pod."""
    name = f"{KUEUE}/{MANAGER}"
    team.apps.patch_namespaced_deployment(MANAGER, KUEUE, {"spec": {"replicas": 0}})
    settled(lambda: name not in [pod.deployment for pod in read_states(cluster.run)])
    yield
    team.apps.patch_namespaced_deployment(MANAGER, KUEUE, {"spec": {"replicas": 1}})
    settled(lambda: [pod.state for pod in read_states(cluster.run) if pod.deployment == name] == ["Running"])
    settled(lambda: not refusal(lambda: flavor(team, dry_run="All")))


EXTERNAL = "external"


def flavor(team: Suspended, **options: Any) -> None:
    """Creates a ResourceFlavor that is not of the stack."""
    body = {"apiVersion": "/".join(KUEUE_API), "kind": "ResourceFlavor", "metadata": {"name": EXTERNAL}}
    team.objects.create_cluster_custom_object(*KUEUE_API, "resourceflavors", body, **options)


@pytest.mark.usefixtures("manager_down")
def test_while_it_is_down_only_objects_with_a_queue_are_refused(team: Suspended, cluster: Rehearsal) -> None:
    output = refusal(lambda: team.start_ray("never", {8: 1}, "team-a"))
    assert "failed calling webhook" in output
    assert "raycluster.kb.io" in output
    team.queue_label = "unqueued"
    team.start_ray("free", {}, "none")
    settled(lambda: len(team.placed_ray("free")) == 1)
    team.end_ray("free")


def test_up_creates_its_deleted_deployment_again_before_an_edit_that_its_webhook_judges(
    up: Stack, team: Suspended, cluster: Rehearsal, rays: Rays
) -> None:
    team.apps.delete_namespaced_deployment(MANAGER, KUEUE)
    settled(lambda: f"{KUEUE}/{MANAGER}" not in [pod.deployment for pod in read_states(cluster.run)])
    up.edit(edited(labels={"edited": "meanwhile"}))
    assert "failed calling webhook" in up.pulumi("preview", fails=True).output
    up.up()
    assert rays.read("team-a", "training")["metadata"]["labels"]["edited"] == "meanwhile"
    up.changes_nothing(refreshed=True)


@pytest.mark.last
def test_it_was_denied_nothing_and_destroy_deletes_everything_after_an_external_queue(
    up: Stack, team: Suspended, cluster: Rehearsal, before: set[str]
) -> None:
    assert "is forbidden" not in (cluster.run / "logs" / f"{MANAGER}.log").read_text()
    flavor(team)
    output = up.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "Kueue's CRDs are not deleted while there is ResourceFlavor external" in output
    team.objects.delete_cluster_custom_object(*KUEUE_API, "resourceflavors", EXTERNAL)
    up.destroy()
    settled(lambda: existing(cluster) == before)
