"""A RayCronJob: its schedule, and the template of its RayJobs (validation.go: ValidateRayCronJobSpec)."""

from core.body import Body
from kuberay import ray_job
from kuberay.cron import schedule_fault
from kuberay.releases import OperatorContext
from kuberay.rules import Found, problem


def check(body: Body, operator: OperatorContext) -> Found:
    """All rules on a RayCronJob."""
    spec = body["spec"]
    if not operator.enabled("RayCronJob"):
        message = "the operator serves no RayCronJob without its feature gate RayCronJob: enable it"
        yield problem("cron-feature-gate", ("kind",), body["kind"], message)
    if fault := schedule_fault(spec["schedule"]):
        message = f"{spec['schedule']!r} is not a valid schedule, {fault}: write for example '0 3 * * *' or '@daily'"
        yield problem("cron-schedule", ("spec", "schedule"), spec["schedule"], message)
    # The jobs do not inherit its annotations.
    yield from ray_job.check(spec["jobTemplate"], ("spec", "jobTemplate"), {}, operator)
