"""The hooks before and after an update of a RayCluster, and the options of its deletion and replacement."""

import pulumi

from core.types import seconds

from ..cluster import ClusterUnreachableError
from ..rollout.pods import Pods
from ..rollout.retirement import Groups, NotRetiredError, retire
from ..rollout.settings import UpdatesSettings
from .autoscaler_race import restore
from .fault_tolerance import OPTIONS, deletion_seconds
from .pods import Body
from .scaled import unscaled_since
from .scheduling import LABELS_OF_A_NEW_CLUSTER


def keeping_workers(name: str, context: str | None, updates: UpdatesSettings) -> pulumi.ResourceHookBinding:
    """Hooks that keep the autoscaler's numbers of workers.

    Before an update: empties worker groups that the update removes. Refuses the update if the autoscaler has scaled the
    cluster since the program read it. After the update: restores autoscaler writes that the update overwrote.
    """
    looked_at: list[str] = []
    """The resourceVersion of the last read."""

    def check(hook: pulumi.ResourceHookArgs) -> None:
        sent = hook.new_inputs
        assert sent is not None
        namespace, cluster = sent["metadata"]["namespace"], sent["metadata"]["name"]
        # Checked before groups are emptied, which a refused update must not do; and again after, because it takes time.
        unscaled_since(sent, context)
        try:
            retire(
                Groups(context, namespace, cluster),
                Pods(context, namespace, cluster),
                [group["groupName"] for group in sent["spec"].get("workerGroupSpecs") or ()],
                updates.strategy,
                seconds(updates.limit),
                pulumi.log.info,
            )
        except (NotRetiredError, ClusterUnreachableError) as error:
            raise NotRetiredError(f"RayCluster {namespace}/{cluster}: {error}") from None
        if version := unscaled_since(sent, context):
            looked_at.append(version)

    def repair(hook: pulumi.ResourceHookArgs) -> None:
        sent = hook.new_inputs
        assert sent is not None
        try:
            for version in looked_at:
                if groups := restore(sent, version, context):
                    pulumi.log.info(f"the autoscaler of {name} scaled {', '.join(groups)} just then: set anew")
        except ClusterUnreachableError as error:
            pulumi.log.warn(f"what the autoscaler of {name} did just then may have been set back: {error}")

    return pulumi.ResourceHookBinding(
        before_update=[pulumi.ResourceHook(f"{name}-unscaled", check)],
        after_update=[pulumi.ResourceHook(f"{name}-overtaken", repair)],
    )


def letting_go(body: Body) -> pulumi.ResourceOptions:
    """How a RayCluster is deleted or replaced. With fault tolerance the deletion timeout is KubeRay's limit.

    Switching fault tolerance off replaces the RayCluster. KubeRay removes its finalizer only from a RayCluster that
    still has the options (raycluster_controller.go: rayClusterReconcile). Without a replacement the RayCluster could
    never be deleted.

    A change of a label that the scheduler reads only at creation also replaces the RayCluster.
    """
    replacing = [f'metadata.labels["{label}"]' for label in LABELS_OF_A_NEW_CLUSTER]
    if OPTIONS in body["spec"]:
        limit = deletion_seconds(body["metadata"]["annotations"])
        timeouts = pulumi.CustomTimeouts(delete=f"{limit}s")
        return pulumi.ResourceOptions(
            custom_timeouts=timeouts, replace_on_changes=replacing, delete_before_replace=True
        )
    return pulumi.ResourceOptions(replace_on_changes=[f"spec.{OPTIONS}", *replacing], delete_before_replace=True)
