"""How the CustomResourceDefinitions of a program are provisioned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from ..dynamic import Resource
from ..kubernetes import field_manager
from .definitions import Definition
from .differences import differences
from .guard import CrdGuardProvider
from .provider import DefinitionsProvider


@dataclass(frozen=True)
class DefinitionsArgs:
    """Arguments of CustomResourceDefinitions."""

    owner: str
    """The program that they belong to, in messages: `KubeRay`."""

    release: str
    """Its version."""

    definitions: Sequence[Definition]

    guard: CrdGuardProvider
    """Blocks their deletion while objects of their kinds exist."""

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""

    webhook: Mapping[str, pulumi.Input[str]] | None = None
    """`namespace` and `caBundle` of the conversion webhook, if there is one."""


class CustomResourceDefinitions(Resource, module="ray-platform", name="CustomResourceDefinitions"):
    """The definitions of one program as one resource. The state has their digests; the cluster has the content.

    Creation and update use server-side apply and return once the API server has established the definitions. A refresh
    reports who changed one, and the next update corrects it. Deletion fails while objects of their kinds exist. A
    preview reports which fields an update adds, removes and changes.

    Raises ClusterUnreachableError if definitions in the cluster cannot be read.
    """

    def __init__(self, name: str, args: DefinitionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        manager = field_manager()
        inputs = {
            "owner": args.owner,
            "release": args.release,
            "definitions": {each.name: each.digest for each in args.definitions},
            "context": args.context,
            "fieldManager": manager,
            "webhook": args.webhook,
        }
        super().__init__(DefinitionsProvider(args.guard), name, inputs, opts)
        for line in differences(args.context, args.definitions, manager):
            pulumi.log.info(line, self)
