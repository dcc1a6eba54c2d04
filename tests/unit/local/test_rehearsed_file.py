"""What a rehearsal changes in a stack file."""

from typing import Any

import pytest

from local.placement import Kind
from local.rehearsed_file import adapt

OPERATOR = {"ray-platform:operator": {"install": "existing"}}


def adapted(nodes: Kind = "simulated", **config: Any) -> dict[str, Any]:
    made = {**OPERATOR, **{f"ray-platform:{key}": value for key, value in config.items()}}
    adapt(made, nodes)
    return {key.partition(":")[2]: value for key, value in made.items()}


def test_the_context_is_removed() -> None:
    assert adapted(kubernetes={"context": "prod"})["kubernetes"] == {}


def test_no_update_waits_for_a_job_or_a_service_where_no_process_runs() -> None:
    def tenants() -> list[dict[str, Any]]:
        jobs = [{"name": "count", "waitFor": "succeeded", "waitTimeout": "2h"}]
        return [{"name": "team-a", "jobs": jobs, "services": [{"name": "chat", "waitFor": "ready"}]}]

    [tenant] = adapted(tenants=tenants())["tenants"]
    assert (tenant["jobs"], tenant["services"]) == ([{"name": "count"}], [{"name": "chat"}])
    assert adapted("real", tenants=tenants())["tenants"] == tenants()


@pytest.mark.parametrize("tenants", ["team-a", ["team-a"], [{"jobs": "count"}], [{"jobs": ["count"]}]])
def test_values_of_a_wrong_type_stay_for_the_program_to_refuse(tenants: Any) -> None:
    assert adapted(tenants=tenants)["tenants"] == tenants
