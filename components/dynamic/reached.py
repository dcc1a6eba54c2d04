"""Waits as resources: a row that is created once an object is as its settings ask for, and fails with the reason else.

The wait is a hook of the program's process before the row is created or updated, because Pulumi's Python plugin runs
four operations at a time (pulumi 3.272, dynamic/__main__.py), and waits of minutes would keep all others from running.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pulumi.dynamic import CreateResult, UpdateResult

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection
from components.dynamic import Provider, Resource
from components.kubernetes import KubernetesObject, uid
from components.kubernetes_cluster import cluster_of

Kind = Literal["RayCluster", "RayJob", "RayService", "Job"]

Wait = Callable[[str, Callable[[str], None]], Awaitable[Any]]
"""Waits for an object in a namespace. Its second argument is called with the current state whenever it changes. Raises
an error with the reason if the object does not get there."""


def status_of(kind: Kind, cluster: Cluster, namespace: str, name: str) -> Any:
    """The status of an object that has been waited for, as the outputs of its component have it."""
    # Imported here: each kind needs its own modules, in the plugin alone.
    if kind == "RayCluster":
        from components.ray_cluster.readiness import status_summary
        from components.rollout.pods import Pods

        live = cluster.get("ray.io/v1", "rayclusters", namespace, name)
        return status_summary(live, Pods(cluster, namespace, name).all())
    if kind == "RayJob":
        return ((cluster.get("ray.io/v1", "rayjobs", namespace, name) or {}).get("status") or {}).get("jobStatus")
    if kind == "RayService":
        from components.ray_service.progress import state_of

        return state_of(cluster.get("ray.io/v1", "rayservices", namespace, name) or {})
    from components.external_cluster.progress import reported

    return reported(cluster, namespace, name)


class ReachedProvider(Provider):
    """Creates nothing: the wait is over when it is called."""

    replacing = ("kind", "namespace", "name")
    compared = ("uid", "version")

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(props["name"], _with_status(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(_with_status(_news))


def _with_status(props: dict[str, Any]) -> dict[str, Any]:
    try:
        status = status_of(props["kind"], cluster_of(props), props["namespace"], props["name"])
    except ClusterUnreachableError:
        # It has been reached; the status is for readers of outputs alone.
        status = None
    return {**props, "status": status}


@dataclass(frozen=True)
class ReachedArgs:
    kind: Kind

    namespace: pulumi.Input[str]

    name: str

    made: KubernetesObject
    """The object; another one of its name is waited for again."""

    wait: Wait

    version: pulumi.Input[str]
    """Identifies what was applied: another version is waited for again."""

    connection: Connection = AMBIENT


class Reached(Resource, module="ray-platform", name="Reached"):
    """Exists once an object is as its settings ask for; fails with the reason if it does not get there in time.

    It waits when the object is created, when another version of it is applied, and again after a failure. Resources
    that depend on the object's component depend on this one, so they are not created after a failure.

    Outputs:
        status: that of the object after the wait (`status_of`).
    """

    status: pulumi.Output[Any]

    def __init__(self, name: str, args: ReachedArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # Not the resource itself: lines about it are shown once it exists.
        shown = opts.parent if opts else None

        async def wait(hook: pulumi.ResourceHookArgs) -> None:
            sent = hook.new_inputs
            assert sent is not None
            await args.wait(sent["namespace"], lambda state: pulumi.log.info(state, resource=shown, ephemeral=True))

        hook = pulumi.ResourceHook(f"{name}-wait", wait)
        binding = pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])
        inputs = {
            "kind": args.kind,
            "namespace": args.namespace,
            "name": args.name,
            "uid": uid(args.made),
            "version": args.version,
            **args.connection.inputs(),
        }
        super().__init__(
            ReachedProvider(),
            name,
            {**inputs, "status": None},
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[args.made], hooks=binding)),
        )
