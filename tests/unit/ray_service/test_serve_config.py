"""The Serve config of a stack file: Ray's keys, and what Ray would refuse."""

import ast
import importlib.util
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from components.ray_service import serve_config
from components.ray_service.rules import problems_of_serve_config
from components.ray_service.serve_config import ServeConfigSettings, ServeModel
from testbed.serve_configs import ACCEPTED, REFUSED, REFUSED_LATER, deployment

MODELS: dict[str, tuple[type[ServeModel], str, set[str]]] = {
    "ServeDeploySchema": (serve_config.ServeConfigSettings, "schema", set()),
    # Ray refuses host and port of an application, and so do we.
    "ServeApplicationSchema": (serve_config.ApplicationSettings, "schema", {"host", "port"}),
    "DeploymentSchema": (serve_config.DeploymentSettings, "schema", set()),
    "RayActorOptionsSchema": (serve_config.ActorOptionsSettings, "schema", set()),
    "HTTPOptionsSchema": (serve_config.HttpOptionsSettings, "schema", set()),
    "gRPCOptionsSchema": (serve_config.GrpcOptionsSettings, "schema", set()),
    "LoggingConfig": (serve_config.ServeLoggingSettings, "schema", set()),
    "TracingConfig": (serve_config.TracingSettings, "schema", set()),
    "AutoscalingConfig": (serve_config.ServeAutoscalingSettings, "config", set()),
}
"""Ray's models: ours, Ray's module, and the keys that ours do not have."""


def keys_of_ray(module: str, model: str) -> set[str]:
    """The fields of a model in the source of the installed Ray. Its import needs the packages of ray[serve]."""
    found = importlib.util.find_spec("ray")
    assert found is not None
    assert found.origin is not None
    source = (Path(found.origin).parent / "serve" / f"{module}.py").read_text()
    body = next(each for each in ast.parse(source).body if isinstance(each, ast.ClassDef) and each.name == model).body
    names = [each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("model", MODELS)
def test_every_key_of_ray_is_known_and_no_other(model: str) -> None:
    ours, module, without = MODELS[model]
    assert set(ours.model_fields) == keys_of_ray(module, model) - without


def problems(config: dict[str, Any]) -> list[str]:
    """Where a config is refused, by the model or by the rules."""
    try:
        made = TypeAdapter(ServeConfigSettings).validate_python(config)
    except ValidationError as error:
        return [str(each["loc"]) for each in error.errors()]
    return [str(each.path) for each in problems_of_serve_config(made)]


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_ray_accepts_is_accepted(name: str) -> None:
    assert problems(ACCEPTED[name]) == []


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_LATER])
def test_what_ray_refuses_is_refused(name: str) -> None:
    assert problems((REFUSED | REFUSED_LATER)[name])


def test_every_attribute_of_logs_is_known_and_no_other() -> None:
    from ray._common.logging_constants import LOGRECORD_STANDARD_ATTRS

    assert {*get_args(serve_config.LogAttribute)} == LOGRECORD_STANDARD_ATTRS


@given(label=st.text("aB1-_. ", max_size=4), selected=st.text("aB1-_.!in(), ", max_size=8))
def test_labels_that_ray_accepts_are_accepted_and_no_others(label: str, selected: str) -> None:
    from ray._private.label_utils import validate_label_selector

    selector = {label: selected}
    config = deployment(ray_actor_options={"label_selector": selector})
    assert bool(problems(config)) == bool(validate_label_selector(selector))


@pytest.mark.parametrize(
    ("key", "meant"),
    [("num_replica", "num_replicas"), ("numReplicas", "num_replicas"), ("max_concurrent_requests", None)],
)
def test_a_misspelt_key_is_refused_and_one_of_a_later_ray_is_passed_on(key: str, meant: str | None) -> None:
    config = {"applications": [{"import_path": "chat:app", "deployments": [{"name": "Chat", key: 2}]}]}
    if meant is None:
        made = TypeAdapter(ServeConfigSettings).validate_python(config)
        assert made.model_dump(mode="json", exclude_unset=True) == config
        return
    with pytest.raises(ValidationError, match=f"did you mean '{meant}'"):
        TypeAdapter(ServeConfigSettings).validate_python(config)
