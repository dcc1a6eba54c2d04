"""How job templates are provisioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components.bodies import in_namespace
from components.cluster import Cluster
from components.job_template.settings import JobTemplateSettings
from components.kubernetes import KubernetesObject
from components.kubernetes_cluster import KubernetesCluster
from components.owned_cluster.component import OwnedClusterArgs, before_owned
from components.ray_cluster.manifests import Body


@dataclass(frozen=True)
class JobTemplatesArgs:
    """Arguments of JobTemplates."""

    objects: Mapping[str, Body]
    """The templates and the PodDisruptionBudgets of their runs' heads, by the names of the resources."""

    namespace: pulumi.Input[str]

    templates: Sequence[JobTemplateSettings] = ()
    """The settings of the templates; each one's object has its name in `objects`."""

    cluster: Cluster = field(default_factory=KubernetesCluster)


class JobTemplates(pulumi.ComponentResource):
    """The job templates of a tenant. They depend on the operator (`depends_on`), which installs their kind."""

    def __init__(self, name: str, args: JobTemplatesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:JobTemplates", name, None, opts)
        after: dict[str, pulumi.ResourceOptions] = {}
        for each in args.templates:
            if own := each.job.own_cluster:
                spec = args.objects[each.name]["spec"]["jobTemplate"]["rayClusterSpec"]
                owned = OwnedClusterArgs(own, spec, args.namespace, args.cluster, label=None)
                after[each.name] = before_owned(f"{name}-{each.name}", owned, self, opts)
        for part, body in args.objects.items():
            options = after.get(part, opts)
            below = pulumi.ResourceOptions(parent=self, depends_on=options.depends_on if options else None)
            KubernetesObject(f"{name}-{part}", in_namespace(body, args.namespace), below)
        self.register_outputs({})
