"""People of a tenant read the logs that a real collector has sent to a real VictoriaLogs, through a real API server and
vmauth. Neither they nor the tenant's pods reach the logs of others."""

import http.client
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from components.cluster import Connection
from components.kubernetes_cluster import KubernetesCluster
from components.logs.store import NAME, PORT, account, sent_to
from core.body import Body
from local.control_plane import free_ports
from local.rehearsal import Rehearsal
from local.tools import VICTORIA_LOGS
from stacks.commands.status.stored import stored
from stacks.load import parse
from testbed.log_collector import otelcol, written
from testbed.pods.steps import until
from testbed.tenant_proxies import PEOPLE, TENANTS, Proxied, container, proxied, rendered, running

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(300)]

NAMESPACE = "tenant-logs"

STACK = parse({"logs": {"mode": "install", "namespace": NAMESPACE}, "tenants": TENANTS})

ACCOUNTS = {tenant: {name: str(value) for name, value in account(tenant).items()} for tenant in PEOPLE}

INSERT, QUERY = "/insert/opentelemetry/v1/logs", "/select/logsql/query?query=*"

Headers = Sequence[tuple[str, str]]

FILE = "worker-0123456789abcdef-02000000-77.out"


@pytest.fixture(scope="module")
def proxies(cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """The proxies before a store that has a line of each tenant: of team-a by the collector of its pods."""
    folder = tmp_path_factory.mktemp("logs")
    store = f"127.0.0.1:{next(free_ports())}"

    def command(proxy: Body, address: str) -> list[str | Path]:
        own = {"-auth.config": folder / "auth.yml", "-httpListenAddr": address}
        own["-httpInternalListenAddr"] = f"127.0.0.1:{next(free_ports())}"
        assert {each.partition("=")[0] for each in proxy["args"]} == set(own)
        return [VICTORIA_LOGS.program("vmauth"), *(f"{name}={value}" for name, value in own.items())]

    [config_map] = rendered(STACK, NAMESPACE, "ConfigMap")
    [(name, text)] = config_map["data"].items()
    (folder / name).write_text(text.replace(f"{NAME}:{PORT}", store))
    own = {"-httpListenAddr": store, "-storageDataPath": folder / "data"}
    [stateful_set] = rendered(STACK, NAMESPACE, "StatefulSet")
    flags = [each for each in container(stateful_set)["args"] if each.partition("=")[0] not in own]
    flags += [f"{name}={value}" for name, value in own.items()]
    with (
        running(VICTORIA_LOGS.program(NAME), *flags, log=folder / "log"),
        proxied(cluster, STACK, NAMESPACE, command, folder) as made,
    ):
        until(lambda: write(made, "team-b", "a line of team-b") == 200, "team-b has written", 60, 0.2)
        collect(made, folder, "a line of team-a")
        yield made


def collect(proxies: Proxied, folder: Path, line: str) -> None:
    """A line of a file of Ray, which the collector of team-a reads and sends to its proxy."""
    assert STACK.logs is not None
    settings = sent_to(STACK.logs, NAMESPACE, "team-a")
    there = settings.endpoint.partition("/insert")[2]
    logs = folder / "ray" / "session_2026-11-30_00-00-00_000000_1" / "logs"
    logs.mkdir(parents=True)
    (logs / FILE).write_text(f"{line}\n")
    config = written(folder, {"endpoint": f"http://{proxies.addresses['logs-team-a']}/insert{there}"})
    collector = otelcol(f"--config={config}", log=folder / "otelcol.log")
    try:
        until(lambda: lines(proxies, "team-a"), "the line of the collector is read back", 60, 0.2)
    finally:
        collector.terminate()
        collector.wait()


def send(proxies: Proxied, tenant: str, method: str, path: str, headers: Headers, body: bytes = b"") -> tuple[int, str]:
    """Status and answer of a tenant's proxy to a request as its pods may send it, byte by byte."""
    connection = http.client.HTTPConnection(proxies.addresses[f"logs-{tenant}"], timeout=30)
    try:
        connection.putrequest(method, path)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


def write(proxies: Proxied, tenant: str, line: str, headers: Headers = (), args: str = "") -> int:
    """Writes a record by a tenant's proxy; the status."""
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.body.string_value = line
    protobuf = [("Content-Type", "application/x-protobuf"), *headers]
    return send(proxies, tenant, "POST", INSERT + args, protobuf, request.SerializeToString())[0]


def lines(proxies: Proxied, tenant: str) -> set[str]:
    """What the people of a tenant read, through the API server."""
    done = proxies.ask(PEOPLE[tenant], f"logs-{tenant}", QUERY)
    return {json.loads(each)["_msg"] for each in done.stdout.splitlines()} if done.returncode == 0 else set()


def test_people_read_what_the_pods_of_their_tenant_have_written(proxies: Proxied) -> None:
    by_name = quote(f'"log.file.name":={json.dumps(FILE)}')
    [record] = map(json.loads, proxies.ask("alice", "logs-team-a", QUERY.replace("*", by_name)).stdout.splitlines())
    assert record["_msg"] == "a line of team-a"
    assert (record["ray.tenant"], record["ray.job_id"]) == ("team-a", "02000000")
    assert lines(proxies, "team-b") == {"a line of team-b"}


OF_THE_COLLECTOR = [f"[pod_name/{FILE}] a line of team-a"]


@pytest.mark.parametrize(
    ("word", "pod", "file", "most", "found"),
    [
        ("ray_cluster", None, None, 9, OF_THE_COLLECTOR),
        ("team-a/ray_cluster", "pod_name", "worker-*.out", 1, OF_THE_COLLECTOR),
        ("ray_cluster", None, None, 0, []),
        ("ray_cluster", None, "raylet.*", 9, []),
        ("ray_cluster", "head", None, 9, []),
        ("ray_cluster", "another", None, 9, []),
        ("ray", None, None, 9, []),
        ('.*" or *', None, None, 9, []),
        ("team-b/ray_cluster", None, None, 9, []),
    ],
)
def test_the_command_shows_lines_by_name_pod_and_file(
    proxies: Proxied, cluster: Rehearsal, word: str, pod: str | None, file: str | None, most: int, found: list[str]
) -> None:
    live = KubernetesCluster(Connection(kubeconfig=cluster.kubeconfig.read_text()))
    assert list(stored(live, STACK, word, pod=pod, file=file, most=most)) == found


@pytest.mark.parametrize(("user", "service"), [("alice", "team-b"), ("bob", "team-a"), ("eve", "team-a")])
def test_the_api_server_refuses_the_proxies_of_others(proxies: Proxied, user: str, service: str) -> None:
    refused = proxies.ask(user, f"logs-{service}", QUERY).stderr
    assert f'cannot get resource "services/proxy" in API group "" in the namespace "{NAMESPACE}"' in refused


def test_people_write_nothing(proxies: Proxied, tmp_path: Path) -> None:
    (tmp_path / "body").write_text("{}")
    path = proxies.path("logs-team-a") + INSERT
    done = proxies.kubectl.tries("create", "--raw", path, "-f", str(tmp_path / "body"), "--as=alice")
    assert 'cannot create resource "services/proxy"' in done.stderr


def forged() -> Iterator[Headers]:
    """Headers by which team-a would name team-b: in other spellings, twice, as ones of one connection, beside
    credentials, and with texts that a careless reader takes for a number."""
    of_b = ACCOUNTS["team-b"]
    for spelled in (str, str.lower, str.upper, lambda name: name.replace("ID", "-ID"), lambda name: f"X-{name}"):
        yield [(spelled(name), value) for name, value in of_b.items()]
    ours, theirs = ([(name, of[name]) for name in of_b] for of in (ACCOUNTS["team-a"], of_b))
    yield [*theirs, *ours]
    yield [*ours, *theirs]
    for listed in ("AccountID, ProjectID", "close, AccountID", "AccountID", "X-Forwarded-For", "keep-alive, projectid"):
        yield [*theirs, ("Connection", listed)]
    for value in ("0", "", "-1", "4294967296", "0x0", "1e3", f" {of_b['AccountID']} ", f"{of_b['AccountID']},0"):
        yield [("AccountID", value), ("ProjectID", value)]
    basic = "Basic dGVhbS1iOg=="
    for name, value in (
        ("Authorization", "Bearer team-b"),
        ("Authorization", basic),
        ("Authorization", "Token team-b"),
        ("Proxy-Authorization", basic),
        ("X-Scope-OrgID", f"{of_b['AccountID']}:{of_b['ProjectID']}"),
        ("TenantID", f"{of_b['AccountID']}:{of_b['ProjectID']}"),
        ("VL-Extra-Fields", f"AccountID={of_b['AccountID']}"),
        ("VL-Stream-Fields", "AccountID,ProjectID"),
        ("Host", "logs-team-b"),
        ("X-Forwarded-Host", "logs-team-b"),
        ("X-Original-URL", "/select/tenant_ids"),
        ("X-Rewrite-Url", "/select/tenant_ids"),
        ("X-HTTP-Method-Override", "DELETE"),
    ):
        yield [*theirs, (name, value)]
    yield [*theirs, ("TE", "trailers"), ("Trailer", "AccountID, ProjectID")]


def arguments() -> Iterator[str]:
    """Arguments of a query that would name team-b."""
    of_b = ACCOUNTS["team-b"]
    both = f"{of_b['AccountID']}:{of_b['ProjectID']}"
    yield "&".join(f"{name}={value}" for name, value in of_b.items())
    for name in ("tenant", "tenant_id", "tenantID", "tenant_ids", "accountID", "account_id"):
        yield f"{name}={both}"
    yield f"extra_fields=AccountID={of_b['AccountID']}"
    yield f"_stream_fields=AccountID&url_prefix=http://{NAME}:{PORT}&request_path=/select/tenant_ids"


QUERIES = (
    '_stream:{ray.tenant="team-b"} or *',
    "* | union (*)",
    '_msg:in("a line of team-b")',
    "* | join by (_msg) (*)",
    "options(global_filter=*) *",
    "options(ignore_global_time_filter=true,allow_partial_response=true) *",
    "{AccountID!=1} or !{AccountID=1}",
    "* | stats by (_stream) count()",
)


def test_no_header_or_argument_leads_to_logs_of_others(proxies: Proxied) -> None:
    queries = [f"/select/logsql/query?query={quote(each)}" for each in QUERIES]
    values = f"/select/logsql/field_values?query=*&field=_msg&{next(arguments())}"
    paths = [*queries, values, *(f"{QUERY}&{each}" for each in arguments())]
    attacks = [*itertools.product(paths, [[]]), *itertools.product([QUERY, values], forged())]
    assert len(attacks) > 80
    answers = [(path, headers, *send(proxies, "team-a", "GET", path, headers)) for path, headers in attacks]
    assert [each for each in answers if "team-b" in each[3].replace(each[0], "")] == []
    assert sum(status == 200 and "team-a" in answer for _, _, status, answer in answers) > 50


CLOSED = (
    "/", "/metrics", "/flags", "/health", "/-/reload", "/debug/pprof/heap", "/debug/pprof/cmdline", "/ping",
    "/select/tenant_ids", "/select/vmui/", "/select/logsql/tail?query=*", "/select/logsql/", "/select/buildinfo",
    "/select/logsql/../tenant_ids", "/select/logsql/%2e%2e/tenant_ids", "/select/logsql/query/../../tenant_ids",
    "/select/logsql/%2E%2E%2Ftenant_ids", "//select//tenant_ids", "/select/logsql/query/%2e%2e/%2e%2e/tenant_ids",
    "/select/logsql/query%2f..%2f..%2ftenant_ids", "/select/logsql/query%0a", "/select/logsql/query;/../tenant_ids",
    "/select/logsql/query%3f/../../tenant_ids", "/select/logsql/query#/../../tenant_ids", "/SELECT/tenant_ids",
    "/internal/select/query", "/internal/insert", "/internal/force_merge", "/internal/force_flush",
    "/internal/partition/list", "/internal/log_new_streams", "/delete/run_task?filter=*", "/delete/active_tasks",
    "/select/logsql/../../delete/run_task?filter=*", "/insert/opentelemetry/v1/logs/../../../../delete/run_task",
    "/insert/jsonline", "/insert/native", "/insert/loki/api/v1/push", "/insert/elasticsearch/_bulk", "/insert/ready",
    "/insert/opentelemetry/v1/logs/../../native/multitenant", "/insert/native/multitenant", "/insert/splunk/services",
    "/insert/opentelemetry/v1/../../../metrics", "http://victoria-logs:9428/select/tenant_ids", "*",
)  # fmt: skip
"""Paths of VictoriaLogs and of vmauth itself, also behind ones that are open."""


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
def test_no_other_path_is_answered(proxies: Proxied, method: str) -> None:
    theirs = list(ACCOUNTS["team-b"].items())
    refused = ("missing route", "Bad Request")
    answers = {path: send(proxies, "team-a", method, path, theirs) for path in CLOSED}
    assert {path: each for path, each in answers.items() if not any(text in each[1] for text in refused)} == {}


def test_what_a_tenant_writes_is_its_own_whatever_it_says(proxies: Proxied) -> None:
    attacks = [*itertools.product([""], forged()), *((f"?{each}", []) for each in arguments())]
    written = {
        line
        for number, (args, headers) in enumerate(attacks)
        if write(proxies, "team-a", line := f"forged {number}", headers, args) == 200
    }
    assert len(written) > 40
    until(lambda: lines(proxies, "team-a") >= written, "all lines are read back", 30, 0.2)
    assert lines(proxies, "team-b") == {"a line of team-b"}
