"""All rules that the API server can enforce.

Not here are rules of `policies/` that look at several objects together, at objects of the whole cluster or at how
Pulumi makes them, at what administrators alone make (NetworkPolicies, Roles, quotas), and those that are advice.
"""

from . import jobs, kuberay, network, pods, ray

RULES = (*pods.RULES, *ray.RULES, *kuberay.RULES, *jobs.RULES, *network.RULES)

BY_ID = {rule.id: rule for rule in RULES}
