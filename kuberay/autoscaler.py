"""The autoscaler: its version, its requirements on pods, and suspended groups (validation.go)."""

from core.problems import Path

from .rules import Body, Cluster, Found, problem

V2_VARIABLE = "RAY_enable_autoscaler_v2"

_SETS_V2 = ("1", "true")


def check(cluster: Cluster) -> Found:
    """The rules of ValidateRayClusterSpec on the autoscaler's options, the head and all workers."""
    options = cluster.spec.get("autoscalerOptions", {})
    idle = options.get("idleTimeoutSeconds", 0)
    if idle < 0:
        path = (*cluster.path, "autoscalerOptions", "idleTimeoutSeconds")
        yield problem("autoscaler-idle-timeout", path, idle, f"idleTimeoutSeconds is {idle}: give 0 or more")
    if variable := cluster.head_env(V2_VARIABLE):
        path, value = variable
        if not cluster.autoscaling and value in _SETS_V2:
            message = (
                f"{V2_VARIABLE} is set but there is no autoscaling: set enableInTreeAutoscaling to true, or remove it"
            )
            yield problem("autoscaler-version-env", path, value, message)
        if cluster.autoscaling and "version" in options:
            message = (
                f"autoscalerOptions.version and the head's {V2_VARIABLE} both say the version: remove the variable"
            )
            yield problem("autoscaler-version-env", path, value, message)
    if cluster.autoscaling and cluster.autoscaler_v2:
        for path, group in cluster.groups:
            policy = group["template"].get("spec", {}).get("restartPolicy", "")
            if policy not in ("", "Never"):
                message = (
                    f"restartPolicy is {policy!r}, but autoscaler v2 replaces pods itself: set it to Never or remove it"
                )
                yield problem(
                    "autoscaler-restart-policy", (*path, "template", "spec", "restartPolicy"), policy, message
                )


def worker_group(cluster: Cluster, path: Path, group: Body) -> Found:
    """The rules on one worker group: its idle timeout, and whether it may be suspended."""
    idle = group.get("idleTimeoutSeconds")
    if idle is not None and idle < 0:
        message = f"idleTimeoutSeconds is {idle}: give 0 or more"
        yield problem("group-idle-timeout", (*path, "idleTimeoutSeconds"), idle, message)
    elif idle is not None and not _is_v2(cluster):
        message = "a group has an idle time of its own with autoscaler v2 only: set autoscalerOptions.version to v2"
        yield problem("group-idle-timeout", (*path, "idleTimeoutSeconds"), idle, message)
    if group.get("suspend"):
        if not cluster.operator.enabled("RayJobDeletionPolicy"):
            message = (
                "a group can be suspended with the feature gate RayJobDeletionPolicy only: enable it, or remove suspend"
            )
            yield problem("group-suspend", (*path, "suspend"), True, message)
        elif cluster.autoscaling:
            message = (
                "a group cannot be suspended while the autoscaler is on: remove suspend, or enableInTreeAutoscaling"
            )
            yield problem("group-suspend", (*path, "suspend"), True, message)


def _is_v2(cluster: Cluster) -> bool:
    """validateWorkerGroupIdleTimeout: the version, or the variable of older operators."""
    variable = cluster.head_env(V2_VARIABLE)
    return cluster.autoscaler_v2 or (variable is not None and variable[1] in _SETS_V2)
