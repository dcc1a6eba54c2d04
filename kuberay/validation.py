"""Validates one manifest: first as the API server does, then as the operator does."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from core.body import Body
from core.problems import Path, Problem
from kuberay import features, formats, ray_cluster, ray_job, ray_service, schema
from kuberay.releases import EACH, GONE, SINCE, OperatorContext, Steps, newer_field
from kuberay.rules import Cluster, Found, problem
from kuberay.schema import shown

API_VERSION = "ray.io/v1"

SHAPE = {"wrong-type", "required-field"}
"""With a problem of these rules the rules of the operator cannot be evaluated."""


def validate(body: Mapping[str, Any], operator: OperatorContext) -> list[Problem]:
    """All problems that an API server and the operator find in a RayCluster, RayJob, RayService or RayCronJob.

    The list is empty for a valid manifest. A value of a wrong type or a missing one hides problems of the operator.
    """
    kind, version = body.get("kind"), body.get("apiVersion")
    if kind not in schema.KINDS:
        message = f"{shown(kind)} is not a kind of KubeRay: use one of {', '.join(schema.KINDS)}"
        return [problem("unknown-kind", ("kind",), kind, message)]
    if version != API_VERSION:
        message = f"{shown(version)} is not served: set apiVersion to {API_VERSION}"
        return [problem("unknown-kind", ("apiVersion",), version, message)]
    stored, problems = schema.stored(body, operator)
    misshapen = [each for each in problems if each.rule in SHAPE]
    if not any(each.path[:1] in ((), ("metadata",)) for each in misshapen):
        problems += formats.check_metadata(stored)
    if misshapen:
        return problems
    problems += _check_newer_fields(stored, operator)
    faulty = {each.path for each in problems}
    return problems + [each for each in _operator_problems(stored, operator) if each.path not in faulty]


def _operator_problems(body: Body, operator: OperatorContext) -> Found:
    kind, spec = body["kind"], body["spec"]
    annotations = body["metadata"].get("annotations", {})
    job: tuple[Body, Path] | None = None
    if kind == "RayCluster":
        yield from ray_cluster.standalone(body, Cluster(spec, ("spec",), annotations, operator))
    elif kind == "RayService":
        path = ("spec", "rayClusterConfig")
        yield from ray_service.check(body, Cluster(spec["rayClusterConfig"], path, annotations, operator))
    elif kind == "RayJob":
        job = spec, ("spec",)
        yield from ray_job.check(spec, ("spec",), annotations, operator)
    else:
        job = spec["jobTemplate"], ("spec", "jobTemplate")
        yield from ray_job.check_cron_job(body, operator)
    yield from features.check_batch_scheduler(body, job, operator.batch_scheduler)


def _check_newer_fields(body: Body, operator: OperatorContext) -> Found:
    """Finds fields of a manifest that the CRDs of the operator do not have, or no longer have."""
    for release, kinds in SINCE.items():
        for steps in kinds.get(body["kind"], ()):
            gone = GONE.get(steps[-1]) if steps else None
            if gone and operator.since(gone):
                for path, value in _at(body, steps):
                    message = f"KubeRay {gone} no longer has {path[-1]}, and the API server drops it: remove it"
                    yield problem("removed-field", path, value, message)
            for path, value in () if operator.since(release) else _at(body, steps):
                name, value = (path[-1], value) if path else (body["kind"], body["kind"])
                message = newer_field(str(name), release, operator)
                yield replace(problem("newer-field", path or ("kind",), value, message), release=release)


def _at(value: Any, steps: Steps, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The existing values at a path with wildcards, each with its path."""
    if not steps:
        yield path, value
    elif steps[0] == EACH:
        for index, item in enumerate(value):
            yield from _at(item, steps[1:], (*path, index))
    elif steps[0] in value:
        yield from _at(value[steps[0]], steps[1:], (*path, steps[0]))
