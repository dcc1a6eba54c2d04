"""The usage of a quota by the pods of a CronJob. Pure functions on rendered bodies."""

from decimal import Decimal

from components.tenant.demand import Body, Demand, defaults, group_of
from components.tenant.settings import LimitSettings


def demand_of_cron_job(body: Body, limits: LimitSettings | None) -> Demand:
    """The usage of a CronJob while its pod runs; paths are in its body."""
    name, job = body["metadata"]["name"], body["spec"]["jobTemplate"]["spec"]
    pod = group_of(("spec", "jobTemplate", "spec"), name, job, defaults(limits))
    return Demand(name, (pod,), {"count/cronjobs.batch": Decimal(1), "count/jobs.batch": Decimal(1)})
