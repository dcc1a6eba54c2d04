"""Many small objects, each after the one before it: an update that takes a while."""

import pulumi
import pulumi_kubernetes as kubernetes

config = pulumi.Config()
on_cluster = pulumi.ResourceOptions(provider=kubernetes.Provider("cluster", cluster_identifier="test"))

by_this_stack = {"pulumi.com/patchFieldManager": "store"}

previous: pulumi.Resource = kubernetes.core.v1.Namespace(
    "namespace", metadata={"name": config.require("namespace"), "annotations": by_this_stack}, opts=on_cluster
)
for number in range(config.require_int("shelves")):
    previous = kubernetes.core.v1.ConfigMap(
        f"shelf-{number}",
        metadata={
            "namespace": config.require("namespace"),
            "name": f"shelf-{number}",
            "annotations": by_this_stack,
        },
        data={"height": config.get("height") or "1"},
        opts=pulumi.ResourceOptions.merge(on_cluster, pulumi.ResourceOptions(depends_on=[previous])),
    )
