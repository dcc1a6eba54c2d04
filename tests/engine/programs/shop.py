"""A namespace with settings, a secret and a few pods: enough for each step in the life of a resource."""

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

config = pulumi.Config()
on_cluster = pulumi.ResourceOptions(provider=kubernetes.Provider("cluster", cluster_identifier="test"))
namespace = kubernetes.core.v1.Namespace("namespace", metadata={"name": config.require("namespace")}, opts=on_cluster)


def inside(name: str) -> ObjectMetaArgs:
    """The metadata of an object in the namespace."""
    return ObjectMetaArgs(namespace=namespace.metadata.name, name=name)


settings = kubernetes.core.v1.ConfigMap(
    "settings",
    metadata=inside(config.get("settings") or "settings"),
    data={"greeting": config.require("greeting")},
    opts=on_cluster,
)
kubernetes.core.v1.Secret(
    "credentials",
    metadata=inside("credentials"),
    string_data={"password": config.require_secret("password")},
    opts=on_cluster,
)
kubernetes.apps.v1.Deployment(
    "web",
    metadata=inside("web"),
    spec={
        "replicas": config.get_int("replicas") or 1,
        "selector": {"match_labels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
        },
    },
    opts=on_cluster,
)
pulumi.export("settings", settings.metadata.name)
