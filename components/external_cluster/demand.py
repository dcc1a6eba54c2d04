"""The usage of a quota by a Job that connects to an external cluster. Pure functions on rendered bodies."""

from decimal import Decimal

from components.ray_job.demand import SUBMITTER
from components.tenant.demand import Body, Demand, defaults, group_of
from components.tenant.settings import LimitSettings


def demand_of_submission(body: Body, limits: LimitSettings | None) -> Demand:
    """The usage of its pod; paths are in the body of the Job."""
    pod = group_of(("spec",), f"the {SUBMITTER}", body["spec"], defaults(limits))
    return Demand(body["metadata"]["name"], (pod,), {"count/jobs.batch": Decimal(1)}, scales=False)
