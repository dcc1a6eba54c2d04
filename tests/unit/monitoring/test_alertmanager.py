"""An Alertmanager of the stack's own: who gets which alert, judged by the real one, and what its pod may reach."""

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.monitoring import prometheus
from components.monitoring.alertmanager import CONFIG_FILE, SECRETS
from components.monitoring.manifests import RULES_FILE
from components.monitoring.prometheus import ALERTMANAGER as NAME
from components.monitoring.prometheus import ALERTMANAGER_PORT as PORT
from components.monitoring.settings import AlertmanagerSettings, ReceiverSettings
from core.body import Body
from local.control_plane import free_ports
from local.images import ALERTMANAGER as IMAGE
from local.install import install_missing
from local.tools import ALERTMANAGER
from policies.configuration import Configuration
from policies.judge import Judge
from policies.values import Object
from stacks.load import parse
from stacks.objects.stack import render
from testbed.machine import lacks
from testbed.pods.steps import until
from testbed.tenant_proxies import running
from testbed.web_server import Answers, serving

NAMESPACE = "ray-monitoring"

TENANTS = [{"name": "team-a", "namespace": "ml-a"}, {"name": "team-b"}]

RECEIVERS = [
    {"name": "oncall", "type": "pagerduty", "severities": ["critical"]},
    {"name": "platform", "type": "slack"},
    {"name": "team-a", "type": "webhook", "tenants": ["team-a"]},
]

EGRESS = [{"internet": True}]

Objects = dict[tuple[str, str], Body]


def made(monitoring: Mapping[str, Any] = {}, **alertmanager: Any) -> Objects:
    """All objects of a stack with an Alertmanager, by kind and name with the namespace."""
    sender = {"receivers": RECEIVERS, "egress": EGRESS, **alertmanager}
    stack = parse({"tenants": TENANTS, "monitoring": {"mode": "install", "alertmanager": sender, **monitoring}})
    return {key: dict(each.body) for key, each in render(stack).items()}


def spec(objects: Objects, kind: str, name: str) -> Body:
    return dict(objects[kind, f"{NAMESPACE}/{name}"]["spec"])


def configuration(objects: Objects) -> Body:
    return dict(yaml.safe_load(objects["ConfigMap", f"{NAMESPACE}/{NAME}"]["data"][CONFIG_FILE]))


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of `alertmanager` and `amtool`."""
    install_missing((ALERTMANAGER,))
    return ALERTMANAGER.folder / "bin"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        (["severity=critical", "namespace=ml-a"], "oncall,platform,team-a"),
        (["severity=warning", "namespace=ml-a"], "platform,team-a"),
        (["severity=warning", "namespace=ml-a-2"], "platform"),
        (["severity=critical"], "oncall,platform"),
    ],
)
def test_each_receiver_gets_its_alerts_whatever_others_get(
    programs: Path, tmp_path: Path, labels: list[str], receivers: str
) -> None:
    file = tmp_path / CONFIG_FILE
    file.write_text(yaml.safe_dump(configuration(made())))
    command: list[str | Path] = [programs / "amtool", "config", "routes", "test", f"--config.file={file}", *labels]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (receivers, "")


FIRING = {
    "KubeRayOperatorDown": "vector(1)",
    "RayGpusIdle": 'label_replace(vector(1), "namespace", "ml-a", "", "")',
}
"""Alerts, with a condition that holds in place of theirs."""


@pytest.mark.thorough
def test_alerts_of_a_real_prometheus_arrive_at_the_address_in_the_secret(programs: Path, tmp_path: Path) -> None:
    """Both have the rendered configuration, except for addresses, folders and times."""
    program = shutil.which("prometheus")
    if program is None:
        lacks("not on the PATH: prometheus; it is in the package prometheus")
    objects, ports = made({"alerts": {name: {"after": "0s"} for name in FIRING}}), free_ports()
    sender, evaluator = (f"127.0.0.1:{next(ports)}" for _ in range(2))
    received: dict[str, list[Body]] = defaultdict(list)

    class Receivers(Answers):
        def do_POST(self) -> None:
            received[self.path].append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.reply(200, b"ok")

    files = objects["ConfigMap", f"{NAMESPACE}/ray-platform"]["data"]
    alerting = yaml.safe_load(files[prometheus.CONFIG_FILE])["alerting"]
    assert alerting == {"alertmanagers": [{"static_configs": [{"targets": [f"{NAME}:{PORT}"]}]}]}
    alerting["alertmanagers"][0]["static_configs"][0]["targets"] = [sender]
    config = {"global": {"evaluation_interval": "1s"}, "alerting": alerting, "rule_files": [RULES_FILE]}
    rules = yaml.safe_load(files[RULES_FILE])
    for group in rules["groups"]:
        group["rules"] = [{**each, "expr": FIRING.get(each.get("alert"), "vector(0) > 0")} for each in group["rules"]]
    (tmp_path / prometheus.CONFIG_FILE).write_text(yaml.safe_dump(config))
    (tmp_path / RULES_FILE).write_text(yaml.safe_dump(rules))
    with serving(Receivers) as url:
        secrets = {"oncall": "a-key\n", "platform": f"{url}/slack\n", "team-a": f"{url}/webhook\n"}
        (tmp_path / "secrets").mkdir()
        for name, value in secrets.items():
            (tmp_path / "secrets" / name).write_text(value)
        mine = yaml.safe_dump(configuration(objects)).replace(SECRETS, str(tmp_path / "secrets"))
        settings = {**yaml.safe_load(mine), "global": {"pagerduty_url": f"{url}/pagerduty"}}
        settings["route"]["group_wait"] = "0s"
        (tmp_path / CONFIG_FILE).write_text(yaml.safe_dump(settings))
        [container] = spec(objects, "StatefulSet", NAME)["template"]["spec"]["containers"]
        own = {"--config.file": tmp_path / CONFIG_FILE, "--storage.path": tmp_path / "silences"}
        given = dict(each.split("=", 1) for each in container["args"])
        arguments = [f"{flag}={own.get(flag, value)}" for flag, value in given.items()]
        places = [f"--config.file={tmp_path}/{prometheus.CONFIG_FILE}", f"--storage.tsdb.path={tmp_path}/data"]
        # The first alert fires before it knows Alertmanager, for which it needs five seconds.
        places.append("--rules.alert.resend-delay=1s")
        with (
            running(programs / NAME, *arguments, f"--web.listen-address={sender}", log=tmp_path / "sender.log"),
            running(program, *places, f"--web.listen-address={evaluator}", log=tmp_path / "evaluator.log"),
        ):
            wanted = {"/pagerduty": 1, "/slack": 2, "/webhook": 1}
            until(lambda: {path: len(each) for path, each in received.items()} == wanted, "alerts arrive", 60, 0.2)
    [page] = received["/pagerduty"]
    assert (page["routing_key"], page["payload"]["severity"]) == ("a-key", "critical")
    assert "KubeRayOperatorDown" in page["payload"]["summary"]
    [posted] = received["/webhook"]
    assert [each["labels"]["alertname"] for each in posted["alerts"]] == ["RayGpusIdle"]
    texts = sorted(each["attachments"][0]["text"] for each in received["/slack"])
    assert [text[:24] for text in texts] == ["RayCluster ml-a/ holds 1", "The KubeRay operator doe"]


def test_a_stack_without_receivers_has_no_alertmanager() -> None:
    stack = parse({"monitoring": {"mode": "install"}})
    objects = {key: dict(each.body) for key, each in render(stack).items()}
    assert not [name for _, name in objects if NAME in name]
    assert "alerting" not in objects["ConfigMap", f"{NAMESPACE}/ray-platform"]["data"][prometheus.CONFIG_FILE]


def test_prometheus_alone_connects_to_it_and_it_connects_to_its_receivers() -> None:
    objects = made()
    own, of_prometheus = ({"matchLabels": {"app.kubernetes.io/component": each}} for each in (NAME, prometheus.NAME))
    policy, sending = (spec(objects, "NetworkPolicy", each) for each in (NAME, "prometheus-alerts"))
    ports = [{"protocol": "TCP", "port": PORT}]
    assert policy["ingress"] == [{"from": [{"podSelector": of_prometheus}], "ports": ports}]
    assert (sending["podSelector"], sending["egress"]) == (
        of_prometheus,
        [{"to": [{"podSelector": own}], "ports": ports}],
    )
    assert spec(objects, "Service", NAME)["selector"] == policy["podSelector"]["matchLabels"] == own["matchLabels"]
    [dns, internet] = policy["egress"]
    assert {each["port"] for each in dns["ports"]} == {53}
    assert internet["to"][0]["ipBlock"]["cidr"] == "0.0.0.0/0"


def test_a_change_of_receivers_recreates_alertmanager_and_not_prometheus() -> None:
    before, after = made(), made(receivers=RECEIVERS[:1])
    for name, same in ((NAME, False), (prometheus.NAME, True)):
        assert (spec(before, "StatefulSet", name) == spec(after, "StatefulSet", name)) is same


def test_its_pod_has_the_secret_and_no_token_and_writes_only_its_volume() -> None:
    pod = spec(made(), "StatefulSet", NAME)["template"]["spec"]
    [container] = pod["containers"]
    assert {"name": "receivers", "secret": {"secretName": "alert-receivers"}} in pod["volumes"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False


def test_cluster_admins_reach_its_pod_to_silence_alerts() -> None:
    stack = parse(
        {
            "access": {"clusterAdmins": ["group:platform"]},
            "monitoring": {"mode": "install", "alertmanager": {"receivers": RECEIVERS[:1], "egress": EGRESS}},
        }
    )
    rules = render(stack)["Role", f"{NAMESPACE}/ray-platform:cluster-admin"].body["rules"]
    assert [each["resourceNames"] for each in rules if each["resources"] == ["pods/portforward"]] == [
        ["alertmanager-0", "prometheus-0"]
    ]


def test_its_objects_violate_no_policy_but_that_images_have_digests() -> None:
    """A digest is in the stack file if the environment wants one, as of each image of the stack."""
    report = Judge(Configuration(), "prod").report([Object(each) for each in made().values()])
    assert {each.rule.id for each in report.findings if each.owner.name == NAME} == {"img-digest"}


def test_the_default_image_is_the_one_that_is_tested() -> None:
    settings = AlertmanagerSettings(receivers=(ReceiverSettings(name="oncall", type="webhook"),))
    assert settings.image == IMAGE.reference
