"""A pod in the node's network, which is known only in an update, with a secret in its image's name."""

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

given = kubernetes.core.v1.ConfigMap(
    "given", metadata=ObjectMetaArgs(name="given", namespace="default"), data={"a": "b"}
)
kubernetes.core.v1.Pod(
    "pod",
    metadata=ObjectMetaArgs(name="it", namespace="default"),
    spec=kubernetes.core.v1.PodSpecArgs(
        host_network=given.id.apply(lambda identifier: identifier != ""),
        containers=[
            kubernetes.core.v1.ContainerArgs(name="main", image=pulumi.Output.secret("registry.example.com/hunter2")),
        ],
    ),
)
# The SDK's own class marks the data of a Secret; this one knows no kinds.
pulumi.CustomResource(
    "kubernetes:core/v1:Secret",
    "plain",
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "plain", "namespace": "default"},
        "stringData": {"password": "correct-horse"},
    },
)
