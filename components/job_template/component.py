"""Job templates, and the authorities of their runs' RayClusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from components.cluster import Cluster
from components.job_template.manifests import resource_names
from components.job_template.settings import JobTemplateSettings
from components.kubernetes import below, create
from components.kubernetes_cluster import KubernetesCluster
from components.objects import Object
from components.owned_cluster.component import OwnedClusterArgs, prerequisites


@dataclass(frozen=True)
class JobTemplatesArgs:
    objects: Sequence[Object]
    """The templates, their schedules, and what is beside the RayClusters of their runs."""

    namespace: pulumi.Input[str]

    templates: Sequence[JobTemplateSettings] = ()
    """The settings of the templates; each one's object has its name."""

    cluster: Cluster = field(default_factory=KubernetesCluster)

    namespaces: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Namespaces that the program creates, by name: objects in them wait for them."""


class JobTemplates(pulumi.ComponentResource):
    """The job templates of a tenant. They depend on the operator (`depends_on`), which installs their kind."""

    def __init__(self, name: str, args: JobTemplatesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:JobTemplates", name, None, opts)
        after: dict[str, pulumi.ResourceOptions] = {}
        for each in args.templates:
            if own := each.job.own_cluster:
                body = next(one.body for one in args.objects if one.name == each.name)
                spec = body["spec"]["jobTemplate"]["rayClusterSpec"]
                owned = OwnedClusterArgs(own, spec, args.namespace, args.cluster, label=None)
                waits = prerequisites(f"{name}-{each.name}", owned, self, opts)
                waiting = pulumi.ResourceOptions(parent=self, depends_on=waits.depends_on)
                after |= dict.fromkeys(resource_names(each), waiting)
        made: dict[str, pulumi.Resource] = {}
        for one in args.objects:
            made |= create(name, [one], after.get(one.name, below(self, opts)), args.namespaces, made)
