"""A pod whose network is the node's, which only an update can tell, with a secret in its image's name."""

import pulumi
import pulumi_kubernetes as kubernetes

HERE = {"namespace": "default"}

given = kubernetes.core.v1.ConfigMap("given", metadata={"name": "given", **HERE}, data={"a": "b"})
kubernetes.core.v1.Pod(
    "pod",
    metadata={"name": "it", **HERE},
    spec=kubernetes.core.v1.PodSpecArgs(
        host_network=given.metadata.uid.apply(lambda uid: uid != ""),
        containers=[
            kubernetes.core.v1.ContainerArgs(name="main", image=pulumi.Output.secret("registry.example.com/hunter2")),
        ],
    ),
)
# The SDK's own class marks what a Secret holds; this one knows no kinds.
pulumi.CustomResource(
    "kubernetes:core/v1:Secret",
    "plain",
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "plain", **HERE},
        "stringData": {"password": "correct-horse"},
    },
)
