"""What KubeRay does when a field of a RayCluster is edited: rules by release of the operator. Data.

The rules apply to fields that do not change the number of pods (kuberay/pods.py has those that do), and to RayClusters
without `upgradeStrategy: Recreate`, which deletes all pods for nearly every edit. The first rule that matches a path
applies. stacks/commands/impact/ray_pods.py adds the effects of a RayCluster's `updates`.
"""

from kuberay.edits import Rule, Steps, Verdict

_CONTROLLER = "kuberay ray-operator/controllers/ray/raycluster_controller.go"
_AUTOSCALER = "ray python/ray/autoscaler/_private/kuberay/autoscaling_config.py"
_VERSIONS = "ray python/ray/_private/utils.py: check_version_info"

_WHEN_IDLE = (
    "when nothing runs, delete all pods of the RayCluster (`kubectl delete pod -n NAMESPACE -l ray.io/cluster=NAME`): "
    "KubeRay recreates them with the edit; or create a second RayCluster with a different name, move the work, and "
    "remove the first"
)
_RECREATE_WORKERS = "delete the pods of idle workers one after the other, or let the autoscaler end idle workers"


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
        "applies at once; this alone does not affect pods",
        "KubeRay reads it at each reconciliation. With Recreate, KubeRay deletes all pods now if the RayCluster was "
        "edited since the head's pod started",
        "check with `--from live` whether the RayCluster was edited since its head started",
        f"{_CONTROLLER}: shouldRecreatePodsForUpgrade",
    ),
    Rule(
        "suspend",
        Verdict.IN_PLACE,
        "applies at once",
        "KubeRay reads it at each reconciliation",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "enableInTreeAutoscaling",
        Verdict.IGNORED,
        "KubeRay adds the autoscaler to the head, or removes it, only when the head's pod is recreated",
        "the autoscaler is a container of the head's pod, and KubeRay does not change running pods. Until then nothing "
        "adds workers if it is switched on, and the old autoscaler continues to scale if it is switched off",
        _WHEN_IDLE,
        "kuberay ray-operator/controllers/ray/common/pod.go: DefaultHeadPodTemplate",
        pods="head",
    ),
    Rule(
        "autoscalerOptions.idleTimeoutSeconds",
        Verdict.IN_PLACE,
        "the autoscaler applies the new idle timeout within seconds; workers that are idle for longer end",
        "it reads the RayCluster in each iteration",
        source=_AUTOSCALER,
    ),
    Rule(
        "autoscalerOptions.upscalingMode",
        Verdict.IN_PLACE,
        "the autoscaler applies it within seconds",
        "it reads the RayCluster in each iteration",
        source=_AUTOSCALER,
    ),
    Rule(
        "autoscalerOptions.**",
        Verdict.IGNORED,
        "the autoscaler's container does not change until the head's pod is recreated",
        "it is a container of the head's pod, and KubeRay does not change running pods",
        _WHEN_IDLE,
        "kuberay ray-operator/controllers/ray/common/pod.go: DefaultHeadPodTemplate",
        pods="head",
    ),
    Rule(
        "rayVersion",
        Verdict.STRANDS,
        "the head keeps its Ray version until its pod is recreated; workers that start before have the new version and "
        "cannot join, so the cluster no longer scales, and a lost worker is not replaced",
        "KubeRay does not change running pods, and Ray refuses a worker with another version than the head's",
        _WHEN_IDLE,
        _VERSIONS,
        pods="all",
    ),
    Rule(
        "authOptions.**",
        Verdict.STRANDS,
        "the head keeps the old setting until its pod is recreated; workers that start before have the new setting, "
        "and the head refuses them, so the cluster no longer scales, and a lost worker is not replaced",
        "each pod has the setting in its environment, and KubeRay does not change running pods",
        _WHEN_IDLE,
        "kuberay ray-operator/controllers/ray/common/pod.go: configureTokenAuth",
        pods="all",
    ),
    Rule(
        "gcsFaultToleranceOptions.**",
        Verdict.IGNORED,
        "the head stores its tables in the old place until its pod is recreated",
        "the address of Redis is in the environment of the head's container, and KubeRay does not change running pods. "
        "Running workers lose the head when it is recreated for the first time: it restores only the tables that "
        "Redis has",
        _WHEN_IDLE,
        "kuberay ray-operator/controllers/ray/common/pod.go: configureGCSFaultTolerance",
        pods="head",
    ),
    Rule(
        "headServiceAnnotations.**",
        Verdict.IGNORED,
        "the head's Service does not change",
        "KubeRay creates the head's Service once and never changes it",
        "make the same change to the Service with kubectl; or delete the Service, and KubeRay recreates it: for a "
        "moment clients and new workers do not find the head",
        f"{_CONTROLLER}: reconcileHeadService",
    ),
    *(
        Rule(
            path,
            Verdict.IGNORED,
            "the head's Service does not change",
            "KubeRay creates the head's Service once and never changes it",
            "delete the Service, and KubeRay recreates it: for a moment clients and new workers do not find the head",
            f"{_CONTROLLER}: reconcileHeadService",
        )
        for path in ("headGroupSpec.serviceType", "headGroupSpec.headService.**")
    ),
    Rule(
        "headGroupSpec.enableIngress",
        Verdict.IGNORED,
        "if it is switched on, KubeRay creates the Ingress now; an Ingress that KubeRay has created does not change",
        "KubeRay creates the Ingress once and never deletes or changes it",
        "delete the Ingress with kubectl after switching it off",
        f"{_CONTROLLER}: reconcileIngressKubernetes",
    ),
    Rule(
        "headGroupSpec.template.spec.containers.*.ports.**",
        Verdict.IGNORED,
        "the head's Service keeps its ports for good; the head's pod keeps its ports until it is recreated",
        "KubeRay creates the head's Service once and never changes it",
        "after the head's pod was recreated, delete the Service: KubeRay recreates it with the new ports",
        f"{_CONTROLLER}: reconcileHeadService",
        pods="head",
    ),
    *(
        Rule(
            f"headGroupSpec.template.spec.containers.*.env.{variable}.**",
            Verdict.STRANDS,
            f"the head keeps {what} that it started with until its pod is recreated; workers that start before have "
            "the new one and cannot join, so the cluster no longer scales, and a lost worker is not replaced",
            "it is in the environment of each pod, and KubeRay does not change running pods",
            _WHEN_IDLE,
            "ray python/ray/_private/ray_constants.py",
            pods="head",
        )
        for variable, what in (("RAY_USE_TLS", "the TLS setting"), ("RAY_AUTH_MODE", "the authentication mode"))
    ),
    Rule(
        "headGroupSpec.template.spec.serviceAccountName",
        Verdict.IGNORED,
        "the head keeps its account until its pod is recreated, and KubeRay's RoleBinding for the autoscaler keeps the "
        "old account: the new account may not scale",
        "KubeRay creates the autoscaler's account, Role and RoleBinding once and never changes them",
        "delete the RoleBinding with the RayCluster's name: KubeRay recreates it for the new account; then, when "
        "nothing runs, delete the head's pod",
        f"{_CONTROLLER}: reconcileAutoscalerRoleBinding",
        scaling=True,
        pods="head",
    ),
    Rule(
        "headGroupSpec.template.**",
        Verdict.IGNORED,
        "the head does not change until its pod is recreated",
        "KubeRay does not change running pods",
        _WHEN_IDLE,
        f"{_CONTROLLER}: reconcilePods",
        pods="head",
    ),
    Rule(
        "headGroupSpec.**",
        Verdict.IGNORED,
        "the head does not change until its pod is recreated",
        "Ray's start parameters are in the head's pod, and KubeRay does not change running pods",
        _WHEN_IDLE,
        f"{_CONTROLLER}: reconcilePods",
        pods="head",
    ),
    Rule(
        "workerGroupSpecs.*.replicas",
        Verdict.NOTHING,
        "the autoscaler owns the number of workers: its value stays",
        "an update reads the autoscaler's value and sends it back",
        source="components/ray_cluster/request.py",
        scaling=True,
    ),
    Rule(
        "workerGroupSpecs.*.replicas",
        Verdict.IN_PLACE,
        "KubeRay creates or deletes pods until their number fits",
        "KubeRay compares the numbers at each reconciliation",
        source=f"{_CONTROLLER}: reconcilePods",
        scaling=False,
    ),
    Rule(
        "workerGroupSpecs.*.minReplicas",
        Verdict.IN_PLACE,
        "applies at once: if fewer workers run, the missing ones are created; idle workers beyond it may end",
        "KubeRay and the autoscaler read it in each iteration",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "workerGroupSpecs.*.maxReplicas",
        Verdict.IN_PLACE,
        "applies to new workers at once",
        "KubeRay and the autoscaler read it in each iteration",
        source=_AUTOSCALER,
    ),
    Rule(
        "workerGroupSpecs.*.idleTimeoutSeconds",
        Verdict.IN_PLACE,
        "the autoscaler applies the new idle timeout of {groups} within seconds; workers that are idle for longer end",
        "it reads the RayCluster in each iteration",
        source=_AUTOSCALER,
    ),
    Rule(
        "workerGroupSpecs.*.scaleStrategy.**",
        Verdict.NOTHING,
        "the autoscaler owns the list of workers to delete: its value stays",
        "an update reads the autoscaler's value and sends it back",
        source="components/ray_cluster/request.py",
    ),
    Rule(
        "workerGroupSpecs.*.suspend",
        Verdict.IN_PLACE,
        "applies at once",
        "KubeRay reads it at each reconciliation",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "workerGroupSpecs.*.numOfHosts",
        Verdict.IN_PLACE,
        "KubeRay counts the pods of {groups} by the new number",
        "a worker with several hosts has that many pods, which are created and deleted together",
        source=f"{_CONTROLLER}: reconcileMultiHostWorkerGroup",
    ),
    Rule(
        "workerGroupSpecs.*.**",
        Verdict.NEW_PODS,
        "running workers of {groups} do not change; new workers have the edit",
        "KubeRay does not change running pods",
        _RECREATE_WORKERS,
        f"{_CONTROLLER}: reconcilePods",
        pods="workers",
    ),
    Rule(
        "workerGroupSpecs",
        Verdict.NOTHING,
        "another order of the worker groups makes no difference",
        "KubeRay identifies the groups by their names",
        source=f"{_CONTROLLER}: reconcilePods",
    ),
    Rule(
        "**",
        Verdict.IGNORED,
        "running pods do not change; recreated pods have the edit",
        "KubeRay does not change running pods",
        _WHEN_IDLE,
        f"{_CONTROLLER}: reconcilePods",
    ),
)

RULES = {"1.6": _1_6}
"""By minor version of the operator, newest first."""


def rule_for(path: Steps, scales: bool, release: str = "1.6") -> Rule:
    """The rule for a path below a RayCluster's spec. For a newer release: the rule of the newest known release."""
    rules = RULES.get(release) or next(iter(RULES.values()))
    return next(rule for rule in rules if rule.matches(path, scales))
