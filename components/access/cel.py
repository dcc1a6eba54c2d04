"""What the admission policies of this package have in common, in CEL. Pure functions."""

from collections.abc import Sequence
from typing import Any

from components.access.personas import RAY_GROUP

Body = dict[str, Any]

RAY_CLUSTERS = f"authorizer.group('{RAY_GROUP}').resource('rayclusters')"
MAY_NOT_MAKE_ANY = {
    "name": "may-not-make-rayclusters",
    "expression": f"!{RAY_CLUSTERS}.namespace(request.namespace).check('create').allowed()",
}
OF_THE_NAMESPACE = {
    "name": "account-of-the-namespace",
    "expression": "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')",
}


def policy(on: tuple[str, str], conditions: Sequence[Body], validations: Sequence[Body]) -> Body:
    """The spec of a policy. `on`: plural name of a KubeRay kind, and operation."""
    resource, operation = on
    rules = [{"apiGroups": [RAY_GROUP], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}]
    return {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": list(conditions),
        "validations": list(validations),
    }


def same_but(now: str, before: str, free: str) -> tuple[str, str]:
    """CEL: two mappings are equal except for the keys in the list `free`."""
    return (
        f"{now}.all(key, key in {free} || key in {before} && {now}[key] == {before}[key])",
        f"{before}.all(key, key in {free} || key in {now})",
    )
