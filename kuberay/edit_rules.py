"""What KubeRay does when a field of a RayCluster is edited: rules by release of the operator. Data.

They are for fields that do not change the number of pods (these: kuberay/pods.py), and for RayClusters without
`upgradeStrategy: Recreate`, which deletes all pods for nearly every edit. The first rule that matches a path applies.
What a RayCluster's `updates` add is in stacks/impact/updates.py.
"""

from .edits import Rule, Steps, Verdict

_CONTROLLER = "kuberay ray-operator/controllers/ray/raycluster_controller.go"
_AUTOSCALER = "ray python/ray/autoscaler/_private/kuberay/autoscaling_config.py"
_VERSIONS = "ray python/ray/_private/utils.py: check_version_info"

_IN_QUIET_TIMES = (
    "when nothing runs, delete all pods of the RayCluster (`kubectl delete pod -l ray.io/cluster=NAME`), and KubeRay "
    "makes them as edited; or make a second RayCluster under another name, move the work, and remove the first"
)
_RECREATE_IDLE_WORKERS = (
    "delete idle workers' pods one after the other, or let the autoscaler end them when they are idle"
)


_1_6 = (
    Rule(
        "managedBy",
        Verdict.REFUSED,
        "the API server refuses the edit",
        "the field is immutable",
        "give the RayCluster another name",
        "kuberay ray-operator/apis/ray/v1/raycluster_types.go",
    ),
    Rule(
        "upgradeStrategy.**",
        Verdict.IN_PLACE,
        "is taken over at once; no pod is touched by this alone",
        "KubeRay reads it at each reconciliation. With Recreate, edits made since the head's pod started count, too: "
        "if there were any, all pods are deleted now",
        "look with `--from live` whether the RayCluster has been edited since its head started",
        f"{_CONTROLLER}: shouldRecreatePodsForUpgrade",
    ),
    Rule(
        "suspend",
        Verdict.IN_PLACE,
        "is taken over at once",
        "KubeRay reads it at each reconciliation",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "enableInTreeAutoscaling",
        Verdict.IGNORED,
        "the autoscaler is added to or removed from the head only when the head's pod is recreated",
        "the autoscaler is a container of the head's pod, and KubeRay changes no pod that runs. Until then nobody adds "
        "workers after it is switched on, and after it is switched off the old autoscaler continues to scale",
        _IN_QUIET_TIMES,
        "kuberay ray-operator/controllers/ray/common/pod.go: DefaultHeadPodTemplate",
        pods="head",
    ),
    Rule(
        "autoscalerOptions.idleTimeoutSeconds",
        Verdict.IN_PLACE,
        "the autoscaler applies the new idle timeout within seconds; workers idle for longer end",
        "it reads the RayCluster in each of its rounds",
        source=_AUTOSCALER,
    ),
    Rule(
        "autoscalerOptions.upscalingMode",
        Verdict.IN_PLACE,
        "the autoscaler applies it within seconds",
        "it reads the RayCluster in each of its rounds",
        source=_AUTOSCALER,
    ),
    Rule(
        "autoscalerOptions.**",
        Verdict.IGNORED,
        "the autoscaler's container stays as it is until the head's pod is recreated",
        "it is a container of the head's pod, and KubeRay changes no pod that runs",
        _IN_QUIET_TIMES,
        "kuberay ray-operator/controllers/ray/common/pod.go: DefaultHeadPodTemplate",
        pods="head",
    ),
    Rule(
        "rayVersion",
        Verdict.STRANDS,
        "the head keeps its Ray version until its pod is recreated; workers that start meanwhile have the new one and "
        "cannot join, so the cluster scales no more and a lost worker is not replaced",
        "KubeRay changes no pod that runs, and Ray refuses a worker of another version than the head's",
        _IN_QUIET_TIMES,
        _VERSIONS,
        pods="all",
    ),
    Rule(
        "authOptions.**",
        Verdict.STRANDS,
        "the head uses the earlier setting until its pod is recreated; workers that start meanwhile have the "
        "new setting and are refused by it, so the cluster scales no more and a lost worker is not replaced",
        "how callers are authenticated is in the environment of each pod, and KubeRay changes no pod that runs",
        _IN_QUIET_TIMES,
        "kuberay ray-operator/controllers/ray/common/pod.go: configureTokenAuth",
        pods="all",
    ),
    Rule(
        "gcsFaultToleranceOptions.**",
        Verdict.IGNORED,
        "the head keeps its tables in the earlier place until its pod is recreated",
        "the address of Redis is in the environment of the head's container, and KubeRay changes no pod that runs. "
        "Workers that run lose the head when it is recreated for the first time: only the state in Redis survives",
        _IN_QUIET_TIMES,
        "kuberay ray-operator/controllers/ray/common/pod.go: configureGCSFaultTolerance",
        pods="head",
    ),
    Rule(
        "headServiceAnnotations.**",
        Verdict.IGNORED,
        "the head's Service stays as it is",
        "KubeRay makes the head's Service once and never changes it",
        "make the same change to the Service with kubectl; or delete it, and KubeRay recreates it: for a moment "
        "clients and new workers do not find the head",
        f"{_CONTROLLER}: reconcileHeadService",
    ),
    Rule(
        "headGroupSpec.serviceType",
        Verdict.IGNORED,
        "the head's Service stays as it is",
        "KubeRay makes the head's Service once and never changes it",
        "delete the Service, and KubeRay recreates it: for a moment clients and new workers do not find the head",
        f"{_CONTROLLER}: reconcileHeadService",
    ),
    Rule(
        "headGroupSpec.headService.**",
        Verdict.IGNORED,
        "the head's Service stays as it is",
        "KubeRay makes the head's Service once and never changes it",
        "delete the Service, and KubeRay recreates it: for a moment clients and new workers do not find the head",
        f"{_CONTROLLER}: reconcileHeadService",
    ),
    Rule(
        "headGroupSpec.enableIngress",
        Verdict.IGNORED,
        "an Ingress that KubeRay has made stays, and is not changed; switched on, it is made now",
        "KubeRay makes the Ingress once and never deletes or changes it",
        "delete the Ingress with kubectl after switching it off",
        f"{_CONTROLLER}: reconcileIngressKubernetes",
    ),
    Rule(
        "headGroupSpec.template.spec.containers.*.ports.**",
        Verdict.IGNORED,
        "the head's Service keeps its ports for good, and the pod keeps its own until it is recreated",
        "KubeRay makes the head's Service once and never changes it",
        "after the head's pod was recreated, delete the Service, and KubeRay makes it with the new ports",
        f"{_CONTROLLER}: reconcileHeadService",
        pods="head",
    ),
    *(
        Rule(
            f"headGroupSpec.template.spec.containers.*.env.{variable}.**",
            Verdict.STRANDS,
            f"the head keeps the {what} that it started with until its pod is recreated; workers that start meanwhile "
            "have the new one and cannot join, so the cluster scales no more and a lost worker is not replaced",
            "it is in the environment of each pod, and KubeRay changes no pod that runs",
            _IN_QUIET_TIMES,
            "ray python/ray/_private/ray_constants.py",
            pods="head",
        )
        for variable, what in (("RAY_USE_TLS", "way to speak TLS"), ("RAY_AUTH_MODE", "way to authenticate"))
    ),
    Rule(
        "headGroupSpec.template.spec.serviceAccountName",
        Verdict.IGNORED,
        "the head runs with its earlier account until its pod is recreated, and KubeRay's RoleBinding for the "
        "autoscaler stays with the old account: the new one may not scale",
        "KubeRay makes account, Role and RoleBinding of the autoscaler once and never changes them",
        "delete the RoleBinding that is named as the RayCluster, and KubeRay makes it for the new account; then, when "
        "nothing runs, delete the head's pod",
        f"{_CONTROLLER}: reconcileAutoscalerRoleBinding",
        scaling=True,
        pods="head",
    ),
    Rule(
        "headGroupSpec.template.**",
        Verdict.IGNORED,
        "the head stays as it is until its pod is recreated",
        "without upgradeStrategy KubeRay changes no pod that runs",
        _IN_QUIET_TIMES,
        f"{_CONTROLLER}: reconcilePods",
        pods="head",
    ),
    Rule(
        "headGroupSpec.**",
        Verdict.IGNORED,
        "the head stays as it is until its pod is recreated",
        "what Ray is started with is in the head's pod, and KubeRay changes no pod that runs",
        _IN_QUIET_TIMES,
        f"{_CONTROLLER}: reconcilePods",
        pods="head",
    ),
    Rule(
        "workerGroupSpecs.*.replicas",
        Verdict.NOTHING,
        "the autoscaler decides the number of workers: its value stays",
        "an update reads what the autoscaler has set, and sends it back",
        source="components/ray_cluster/scaled.py",
        scaling=True,
    ),
    Rule(
        "workerGroupSpecs.*.replicas",
        Verdict.IN_PLACE,
        "KubeRay creates or deletes pods until their number is the configured one",
        "it compares their number at each reconciliation",
        source=f"{_CONTROLLER}: reconcilePods",
        scaling=False,
    ),
    Rule(
        "workerGroupSpecs.*.minReplicas",
        Verdict.IN_PLACE,
        "holds at once: fewer workers than that are filled up, and idle ones beyond it may end",
        "KubeRay and the autoscaler read it in each of their rounds",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "workerGroupSpecs.*.maxReplicas",
        Verdict.IN_PLACE,
        "holds at once for new workers",
        "KubeRay and the autoscaler read it in each of their rounds",
        source=_AUTOSCALER,
    ),
    Rule(
        "workerGroupSpecs.*.idleTimeoutSeconds",
        Verdict.IN_PLACE,
        "the autoscaler applies the new idle timeout of {groups} within seconds; workers idle for longer end",
        "it reads the RayCluster in each of its rounds",
        source=_AUTOSCALER,
    ),
    Rule(
        "workerGroupSpecs.*.scaleStrategy.**",
        Verdict.NOTHING,
        "the autoscaler decides which workers are removed: its value stays",
        "an update reads what the autoscaler has set, and sends it back",
        source="components/ray_cluster/scaled.py",
    ),
    Rule(
        "workerGroupSpecs.*.suspend",
        Verdict.IN_PLACE,
        "is taken over at once",
        "KubeRay reads it at each reconciliation",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "workerGroupSpecs.*.numOfHosts",
        Verdict.IN_PLACE,
        "pods of {groups} are counted again",
        "a worker of several hosts is that many pods, which are created and deleted together",
        source=f"{_CONTROLLER}: reconcileMultiHostWorkerGroup",
    ),
    Rule(
        "workerGroupSpecs.*.**",
        Verdict.NEW_PODS,
        "workers of {groups} that run stay as they are; those that start from now on are as edited",
        "without upgradeStrategy KubeRay changes no pod that runs",
        _RECREATE_IDLE_WORKERS,
        f"{_CONTROLLER}: reconcilePods",
        pods="workers",
    ),
    Rule(
        "workerGroupSpecs",
        Verdict.NOTHING,
        "another order of the worker groups makes no difference",
        "KubeRay identifies them by their names",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "**",
        Verdict.IGNORED,
        "pods that run stay as they are; those that are recreated are as edited",
        "without upgradeStrategy KubeRay changes no pod that runs",
        _IN_QUIET_TIMES,
        f"{_CONTROLLER}: reconcilePods",
    ),
)

RULES = {"1.6": _1_6}
"""By minor version of the operator, newest first."""


def rule_for(path: Steps, scales: bool, release: str = "1.6") -> Rule:
    """The rule for a path below a RayCluster's spec. For a newer release: the rule of the newest known release."""
    rules = RULES.get(release) or next(iter(RULES.values()))
    return next(rule for rule in rules if rule.matches(path, scales))
