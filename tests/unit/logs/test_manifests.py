"""The collector in the pods of Ray, its ConfigMap, masked secrets, and logs of tenants' own stacks.
tests/engine/test_logs.py has the collector itself mask the same secrets."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.logs.collector import MASK, REDACTIONS, Redaction, config_map, redactions
from components.logs.manifests import CA_FILE, CONFIG_FILE, CONFIG_MAP, NAME
from components.logs.settings import IMAGE, LogsSettings
from components.tenant.demand import demand
from core.body import Body
from core.quantities import amount
from kuberay.running import LOGS
from local import tools
from local.images import LOG_COLLECTOR
from stacks.commands.impact.kinds import LOG_COLLECTORS, kind_of
from stacks.load import load, parse
from stacks.objects.platform_outputs import PlatformMismatchError, check, exported
from stacks.objects.ray_clusters import rendered
from stacks.objects.stack import render
from stacks.settings import StackSettings
from testbed.logged_secrets import KEYS, ONE_LINE, WITHOUT, Logged

GOOD = Path(__file__).parents[3] / "tests" / "stack_files" / "good" / "logs.yaml"

LOKI: Body = {"endpoint": "http://loki.loki.svc:3100", "egress": [{"namespace": "loki", "ports": [3100]}]}

CLUSTER: Body = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}


def stack(logs: Body | None = LOKI, **cluster: Any) -> StackSettings:
    tenant = {
        "name": "team-a",
        "clusters": [{**CLUSTER, "workerGroups": [{"groupName": "w", "cpu": 1, "memory": "2Gi"}], **cluster}],
    }
    return parse({"tenants": [tenant], **({"logs": logs} if logs else {})})


def pods(settings: StackSettings) -> list[Body]:
    """The pods of head and workers of the first RayCluster."""
    tenant = settings.tenants[0]
    spec = rendered(settings, tenant, tenant.clusters[0])["spec"]
    return [group["template"]["spec"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def collector(pod: Body) -> Body:
    """The collector of a pod."""
    [found] = [each for each in pod["initContainers"] if each["name"] == NAME]
    return dict(found)


def config(**logs: Any) -> Body:
    text = config_map(LogsSettings.model_validate({**LOKI, **logs}), "team-a")["data"][CONFIG_FILE]
    return dict(yaml.safe_load(text))


def test_the_collector_reads_a_tenant_whose_name_looks_like_a_number_as_text() -> None:
    text = config_map(LogsSettings.model_validate(LOKI), "7e10")["data"][CONFIG_FILE]
    assert "ray.tenant: '7e10'" in text


def test_without_the_key_no_object_and_no_pod_has_any_of_it() -> None:
    plain = stack(None)
    assert not [key for key in render(plain) if "log-collector" in key[1]]
    for pod in pods(plain):
        assert "initContainers" not in pod
        assert LOGS not in [each["name"] for each in pod.get("volumes", ())]


def test_head_and_workers_share_their_files_with_a_collector_that_ends_after_them() -> None:
    for pod in pods(stack()):
        ray, beside = pod["containers"][0], collector(pod)
        assert {"name": LOGS, "emptyDir": {}} in pod["volumes"]
        assert {"name": LOGS, "mountPath": "/tmp/ray"} in ray["volumeMounts"]  # noqa: S108
        assert {"name": LOGS, "mountPath": "/tmp/ray", "readOnly": True} in beside["volumeMounts"]  # noqa: S108
        assert beside["restartPolicy"] == "Always"
        assert {each["name"] for each in beside["volumeMounts"]} <= {each["name"] for each in pod["volumes"]}


@pytest.mark.parametrize(("user", "expected"), [(1000, 1000), (5, 5), ("image", None)])
def test_it_reads_as_the_user_of_ray(user: int | str, expected: int | None) -> None:
    for pod in pods(stack(runAsUser=user)):
        assert collector(pod)["securityContext"].get("runAsUser") == expected


def test_its_resources_count_in_the_tenants_quota() -> None:
    more = {**LOKI, "resources": {"cpu": "300m", "memory": "1Gi"}}
    without, with_logs = (
        demand(rendered(each, each.tenants[0], each.tenants[0].clusters[0]), None)
        for each in (stack(None), stack(more))
    )
    for before, after in zip(without.groups, with_logs.groups, strict=True):
        assert after.usage["requests.cpu"] - before.usage.get("requests.cpu", 0) == amount("300m")
        assert after.usage["limits.memory"] - before.usage.get("limits.memory", 0) == amount("1Gi")


def test_credentials_are_variables_from_secrets_and_in_no_text() -> None:
    settings = load(GOOD)
    beside = collector(pods(settings)[0])
    [header] = [each for each in beside["env"] if each["name"] == "HEADER_AUTHORIZATION"]
    assert header["valueFrom"] == {"secretKeyRef": {"name": "ray-logs", "key": "authorization"}}
    found = render(settings)["ConfigMap", f"team-a/{CONFIG_MAP}"].body
    exporter = yaml.safe_load(found["data"][CONFIG_FILE])["exporters"]["otlp_http"]
    assert exporter["headers"] == {"X-Scope-OrgID": "ray", "Authorization": "${env:HEADER_AUTHORIZATION}"}
    assert exporter["tls"] == {"ca_file": CA_FILE}


def test_only_the_named_tenants_have_collectors_and_their_pods_alone_may_connect() -> None:
    objects = render(load(GOOD))
    of_logs = {key for key in objects if "log-collector" in key[1]}
    assert of_logs == {("ConfigMap", f"team-a/{CONFIG_MAP}"), ("NetworkPolicy", "team-a/log-collectors")}
    policy = objects["NetworkPolicy", "team-a/log-collectors"].body["spec"]
    assert policy["podSelector"] == {"matchExpressions": [{"key": "ray.io/node-type", "operator": "Exists"}]}
    assert policy["egress"][0]["to"] == [{"ipBlock": {"cidr": "10.20.0.7/32"}}]


def test_jobs_and_the_gateway_of_redis_have_it_beside_them() -> None:
    settings = load(GOOD)
    names = [each["name"] for each in pods(settings)[0]["initContainers"]]
    assert names == ["redis-gateway", NAME]
    job = render(settings)["RayJob", "team-a/nightly"].body["spec"]["rayClusterSpec"]["headGroupSpec"]
    assert collector(job["template"]["spec"])["image"].startswith("registry.example.com/")


def test_a_variable_of_a_group_applies_over_that_of_logs() -> None:
    loaders = pods(load(GOOD))[-1]["containers"][0]["env"]
    assert [each["value"] for each in loaders if each["name"] == "RAY_ROTATION_MAX_BYTES"] == ["1000000"]
    head = {each["name"]: each.get("value") for each in pods(load(GOOD))[0]["containers"][0]["env"]}
    assert head["RAY_ROTATION_MAX_BYTES"] == str(16 << 20)
    assert head["RAY_ROTATION_BACKUP_COUNT"] == "3"
    assert head["RAY_enable_export_api_write"] == "1"


def test_the_exporter_adds_its_path() -> None:
    endpoint = LOKI["endpoint"]
    assert config(exporter="loki")["exporters"]["otlp_http"]["endpoint"] == f"{endpoint}/otlp"
    assert config()["exporters"]["otlp_http"]["endpoint"] == endpoint
    assert config(exporter="elasticsearch")["exporters"]["elasticsearch"]["endpoint"] == endpoint


def test_the_default_image_is_of_the_version_that_is_tested() -> None:
    assert LOG_COLLECTOR.reference == IMAGE
    assert IMAGE.endswith(f":{tools.OTEL_COLLECTOR.version.removeprefix('v')}")


PLATFORM = "acme/ray-platform/prod"


def outputs(**keys: Any) -> dict[str, Any]:
    """The outputs of the platform's stack."""
    stack = parse({"tenants": [{"name": "team-a", "clusterNames": ["adhoc"]}], **keys})
    return {"operator": {"version": "1.6.2", "namespace": "ray-system"}, **exported(stack)}


def own(**keys: Any) -> Any:
    """A tenant's own stack."""
    tenants = [{"name": "team-a", "clusters": [{**CLUSTER, "name": "adhoc"}]}]
    return parse({"platform": {"stack": PLATFORM}, "tenants": tenants, **keys})


def test_a_tenants_own_stack_has_logs_where_the_platform_has() -> None:
    check(own(logs=LOKI), PLATFORM, outputs(logs=LOKI))
    check(own(), PLATFORM, outputs())
    with pytest.raises(PlatformMismatchError, match="has no logs for tenant 'team-a': remove logs, or set it there"):
        check(own(logs=LOKI), PLATFORM, outputs())
    with pytest.raises(PlatformMismatchError, match="has logs for tenant 'team-a': set logs as it is there"):
        check(own(), PLATFORM, outputs(logs=LOKI))
    assert "logs" not in outputs()["tenants"]["team-a"]


def test_a_tenants_own_stack_sends_logs_to_the_store_of_the_platform() -> None:
    store = {"mode": "install", "namespace": "logs"}
    check(own(logs=store), PLATFORM, outputs(logs=store))
    with pytest.raises(PlatformMismatchError, match="its log store in namespace logs: set logs"):
        check(own(logs=LOKI), PLATFORM, outputs(logs=store))
    with pytest.raises(PlatformMismatchError, match="has no log store: set logs"):
        check(own(logs=store), PLATFORM, outputs(logs=LOKI))


def test_impact_does_not_take_the_configuration_for_one_of_redis() -> None:
    assert kind_of(config_map(LogsSettings.model_validate(LOKI), "team-a")) is LOG_COLLECTORS


def masked(text: str, *further: str) -> str:
    for each in redactions(further):
        if each.has and not any(part in text.upper().lower() for part in each.has):
            continue
        text = re.sub(each.pattern, each.replacement_of_python, text)
    return text


@pytest.mark.parametrize("logged", ONE_LINE, ids=lambda logged: logged.masked)
def test_a_secret_is_masked_and_the_rest_stays(logged: Logged) -> None:
    assert logged.secret in logged.text
    assert masked(logged.text) == logged.masked


@pytest.mark.parametrize("key", KEYS, ids=["RSA", "elliptic curve", "OpenSSH"])
def test_a_private_key_is_masked_as_a_whole(key: str) -> None:
    assert masked(f"before\n{key}\nafter") == f"before\n{MASK}\nafter"
    begin, *lines, _ = KEYS[0].splitlines()
    assert masked("\n".join([begin, *lines[:5]])) == MASK


@pytest.mark.parametrize("text", WITHOUT)
def test_other_texts_stay(text: str) -> None:
    assert masked(text) == text


def test_expressions_of_the_stack_file_are_masked() -> None:
    assert masked("of EMP-123456", r"EMP-\d+") == f"of {MASK}"


@pytest.mark.parametrize("redaction", [each for each in REDACTIONS if each.has], ids=lambda each: each.name)
def test_each_match_has_one_of_the_texts_without_which_the_pattern_is_not_tried(redaction: Redaction) -> None:
    @given(st.from_regex(redaction.pattern))
    def judge(text: str) -> None:
        assert any(part in text.upper().lower() for part in redaction.has)

    judge()
