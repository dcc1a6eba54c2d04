"""What an update of a RayCluster waits for, and how one is let go."""

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
    """Empties worker groups that leave before an update, and refuses one that would set back what the autoscaler has
    done since the program has read it. What it does in the moment of the update is given back to it."""
    looked_at: list[str] = []
    """The version of the last look."""

    def check(hook: pulumi.ResourceHookArgs) -> None:
        sent = hook.new_inputs
        assert sent is not None
        namespace, cluster = sent["metadata"]["namespace"], sent["metadata"]["name"]
        # Before groups are emptied for an update that could not be sent; and after, because that takes its time.
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
    """How a RayCluster is deleted or replaced. One that is kept in Redis takes its time, within KubeRay's limit.

    One that is kept there no more is made anew: KubeRay's finalizer, once it is there, is only ever removed from a
    RayCluster that still has the options (raycluster_controller.go: rayClusterReconcile), so that it could not be
    deleted any more.

    So is one whose labels its scheduler heeds only at first.
    """
    anew = [f'metadata.labels["{label}"]' for label in LABELS_OF_A_NEW_CLUSTER]
    if OPTIONS in body["spec"]:
        limit = deletion_seconds(body["metadata"]["annotations"])
        timeouts = pulumi.CustomTimeouts(delete=f"{limit}s")
        return pulumi.ResourceOptions(custom_timeouts=timeouts, replace_on_changes=anew, delete_before_replace=True)
    return pulumi.ResourceOptions(replace_on_changes=[f"spec.{OPTIONS}", *anew], delete_before_replace=True)
