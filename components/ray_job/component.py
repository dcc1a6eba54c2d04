"""How a RayJob is provisioned."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from components.bodies import by_force, in_namespace
from components.dynamic.reached import Reached, ReachedArgs
from components.kubernetes import create, dependencies
from components.objects import the_object
from components.owned_cluster.component import OwnedClusterArgs, OwnerArgs, prerequisites
from components.ray_job.manifests import RAY_JOB, RUN_ANNOTATION
from components.ray_job.progress import until_reached
from components.ray_job.settings import JOB_LABEL, RayJobSettings
from core.types import seconds


@dataclass(frozen=True)
class RayJobArgs(OwnerArgs[RayJobSettings]):
    queued: bool = False
    """Whether Kueue may suspend it while it waits in a queue."""


def run_once_options(
    parent: pulumi.ComponentResource,
    body: Mapping[str, Any],
    opts: pulumi.ResourceOptions | None,
    applied: Collection[str] = (),
) -> pulumi.ResourceOptions:
    """Options of an object that runs a job once: only another run replaces it, neither drift nor another rendering.

    `applied`: fields of its spec that are changed in place.
    """
    return pulumi.ResourceOptions(
        parent=parent,
        depends_on=dependencies(opts),
        delete_before_replace=True,
        replace_on_changes=[f'metadata.annotations["{RUN_ANNOTATION}"]'],
        # Kueue refuses another queue's label on a RayJob that runs or has ended.
        ignore_changes=["metadata.labels", *(f"spec.{key}" for key in body["spec"] if key not in applied)],
    )


class RayJob(pulumi.ComponentResource):
    """A RayJob, with its own RayCluster or on an existing one.

    The job starts when the resource is created, and again when its settings or its `runId` change: then the RayJob is
    deleted, which stops a running job, and created. KubeRay does not apply other changes to a RayJob, so Pulumi ignores
    them: neither drift nor another rendering starts a job. `suspend` is applied in place.

    A node drain does not evict the head of its cluster, unless the settings allow it.

    Outputs:
        connection: namespace, name and head Service. The Service exists while the job runs.
        status: with `wait_for`, the status in Ray's words once `up` has waited for it, else None. A resource of its own
            fails if the job fails meanwhile, or does not get there in time (`Reached`).
    """

    connection: pulumi.Output[dict[str, str]]
    status: pulumi.Output[str | None]

    def __init__(self, name: str, args: RayJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RayJob", name, None, opts)
        settings, own = args.settings, args.settings.own_cluster
        inside = [replace(each, body=in_namespace(each.body, args.namespace)) for each in args.objects]
        itself = the_object(inside, RAY_JOB)
        beside = [each for each in inside if each is not itself]
        made = create(name, beside, pulumi.ResourceOptions(parent=self))
        if own:
            spec = itself.body["spec"]["rayClusterSpec"]
            owned = OwnedClusterArgs(own, spec, args.namespace, args.cluster, JOB_LABEL)
            opts = prerequisites(name, owned, self, opts, [made[each] for each in itself.after])
        options = run_once_options(self, itself.body, opts, applied={"suspend"})
        # What Kueue has written into a job that waits in its queue stays.
        sent = itself if args.queued else replace(itself, body=by_force(itself.body))
        job = create(name, [sent], options, made=made)[RAY_JOB]
        self.connection = job.metadata.apply(
            lambda metadata: {
                "namespace": metadata["namespace"],
                "job": settings.name,
                "headService": f"{settings.name}-head-svc",
            }
        )
        self.status = pulumi.Output.from_input(None)
        if (stage := settings.wait_for) != "nothing":
            run = f"{itself.body['metadata']['annotations'][RUN_ANNOTATION]} {stage} {settings.suspend}"
            where, limit = args.operator_namespace, seconds(settings.wait_timeout)
            waited = ReachedArgs(
                "RayJob",
                args.namespace,
                settings.name,
                job,
                lambda namespace, show: until_reached(
                    args.cluster, namespace, settings.name, stage, where, limit, show, args.queued
                ),
                run,
                args.cluster.connection,
            )
            self.status = Reached(f"{name}-{stage}", waited, pulumi.ResourceOptions(parent=self)).status
        self.register_outputs({"connection": self.connection, "status": self.status})
