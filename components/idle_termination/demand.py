"""The usage of a quota by the pod that suspends idle RayClusters. Pure functions on rendered bodies."""

from decimal import Decimal

from components.tenant.demand import Body, Demand, defaults, group_of
from components.tenant.settings import LimitSettings


def demand_of_program(body: Body, limits: LimitSettings | None) -> Demand:
    """The usage of its Deployment, one pod at a time; paths are in the body of the Deployment."""
    name = body["metadata"]["name"]
    pod = group_of(("spec",), name, body["spec"], defaults(limits))
    return Demand(name, (pod,), {"count/deployments.apps": Decimal(1), "count/replicasets.apps": Decimal(1)})
