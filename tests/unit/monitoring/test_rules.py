"""Prometheus' own promtool judges the rules: each alert fires when it should, does not when it should not, and ends."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.monitoring.dashboards import BOARDS
from components.monitoring.manifests import RUNBOOKS, rules_file, scrape_file
from components.monitoring.rules import ALERTS
from components.monitoring.settings import MonitoringSettings
from components.monitoring.targets import Monitored
from testbed.machine import lacks
from testbed.ray_dashboards import MADE, queries
from tests.unit.monitoring import cases_of_platform, cases_of_ray
from tests.unit.monitoring.case import PODS, Case, Series, over

pytestmark = pytest.mark.thorough

CASES = (*cases_of_ray.CASES, *cases_of_platform.CASES)

EVERYTHING = Monitored(
    operator="ray-system",
    watched=(),
    gateway=True,
    redis=("ray-system",),
    quorum=True,
    volcano="volcano-system",
    kueue="kueue-system",
    issuers=True,
    kubernetes=True,
    cml={("one", "lab"): 3},
    prices={2.5: ("a100-1g", "a100-8g"), 1.0: ("l4-1g",)},
)

ORDER = ["ray-platform-records", "ray-platform-alerts"]
"""Of the groups; otherwise promtool takes any, and an alert sees the records of now or of the minute before."""

HELD = f'ray_resources{{{PODS},ray_io_group="%s",Name="GPU",State="%s"}}'


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        lacks("not on the PATH: promtool; it is in the package prometheus")
    return found


def run(promtool: str, *arguments: str) -> None:
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert {case.alert for case in CASES} == set(ALERTS)


def test_each_alert_fires_ends_and_stays_quiet(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules_file(MonitoringSettings(), EVERYTHING))
    files = []
    for unit in ("m", "h"):
        tests = [test for case in CASES if case.unit == unit for test in courses(case)]
        given = {
            "rule_files": ["rules.yaml"],
            "evaluation_interval": f"1{unit}",
            "group_eval_order": ORDER,
            "tests": tests,
        }
        files.append(tmp_path / f"tests-{unit}.yaml")
        files[-1].write_text(yaml.safe_dump(given, width=1000))
    run(promtool, "test", "rules", *map(str, files))


def courses(case: Case) -> Iterator[dict[str, Any]]:
    """The tests of a case: when it begins and ends, and a time of its quiet series that would be enough for it."""
    alert = ALERTS[case.alert]
    expected = {
        "exp_labels": {**case.labels, "severity": alert.severity},
        "exp_annotations": {"summary": case.summary, "runbook": f"{RUNBOOKS}#{case.alert.lower()}"},
    }
    fires = {case.begins - 1: False, case.begins: True, case.ends - 1: True, case.ends: False}
    yield course(case, case.series, {at: [expected] if firing else [] for at, firing in fires.items()})
    yield course(case, case.quiet, {at: [] for at in range(case.begins + 10)})


def course(case: Case, series: Series, expected: dict[int, list[Any]]) -> dict[str, Any]:
    return {
        "interval": f"1{case.unit}",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{at}{case.unit}", "alertname": case.alert, "exp_alerts": alerts}
            for at, alerts in expected.items()
        ],
    }


def test_gpu_hours_and_their_cost_are_recorded(promtool: str, tmp_path: Path) -> None:
    """Two hours: eight GPUs for 2.50 of which six are used, and one for 1.00 that is idle."""
    series = {
        HELD % ("a100-8g", "AVAILABLE"): over((2, 120)),
        HELD % ("a100-8g", "USED"): over((6, 120)),
        HELD % ("l4-1g", "AVAILABLE"): over((1, 120)),
        HELD % ("l4-1g", "USED"): over((0, 120)),
    }
    recorded = {"gpu_hours_held:1d": 18, "gpu_hours_used:1d": 12, "gpu_hours_wasted:1d": 6, "cost_per_hour": 21}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"ray_platform:{name}",
                "eval_time": "119m",
                "exp_samples": [{"labels": f'ray_platform:{name}{{namespace="team-a"}}', "value": value}],
            }
            for name, value in {**recorded, "cost:1d": 42}.items()
        ],
    }
    (tmp_path / "rules.yaml").write_text(rules_file(MonitoringSettings(), EVERYTHING))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}, width=1000))
    run(promtool, "test", "rules", str(tmp_path / "tests.yaml"))


def test_the_queries_of_the_dashboards_are_valid(promtool: str, tmp_path: Path) -> None:
    of_ray = (query for name in MADE for query in queries(name))
    asked = dict.fromkeys([*(panel.query for board in BOARDS.values() for panel in board.panels), *of_ray])
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(asked)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    run(promtool, "check", "rules", str(tmp_path / "rules.yaml"))


def test_the_scrape_file_is_a_configuration_of_prometheus(promtool: str, tmp_path: Path) -> None:
    """But for the search in Kubernetes, which Debian's Prometheus is built without, and for the file of the token,
    which only Prometheus' own pod has."""
    config = yaml.safe_load(scrape_file(MonitoringSettings(), EVERYTHING))
    for scrape in config["scrape_configs"]:
        del scrape["kubernetes_sd_configs"]
    (tmp_path / "scrape.yaml").write_text(yaml.safe_dump(config))
    run(promtool, "check", "config", "--syntax-only", str(tmp_path / "scrape.yaml"))
