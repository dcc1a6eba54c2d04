"""How Kueue is provisioned, or found."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from ..cluster import ClusterUnreachableError
from ..crd_guard import resources_of
from ..installed import UnsupportedVersionError
from ..kubernetes import KubernetesObject
from ..kustomize import render
from ..manifest_files import ManifestError
from ..operator.manifests import object_name
from .certificate import KueueCertificate
from .existing import KUEUE
from .guard import KueueCrdGuard
from .manifests import Body, Certificate, UnexpectedTreeError, bundle, kueue_objects, webhook_names
from .settings import KueueSettings


@dataclass(frozen=True)
class KueueArgs:
    """What a Kueue is made from."""

    settings: KueueSettings

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""

    policies: Sequence[Body] = ()
    """NetworkPolicies of Kueue's namespace, where the stack makes that."""


class Kueue(pulumi.ComponentResource):
    """Kueue's CRDs, then its access and configuration, then its manager, each object a resource of its own.

    CRDs are never deleted while there is an object of their kinds. With `install: existing` nothing is created: what is
    there is read, in previews too, and checked.

    Whatever needs Kueue depends on this component: it exists once its Deployment is available. It depends on the
    operator itself, whose CRDs Kueue looks for when it starts.

    Outputs:
        version: Kueue's version.

    Raises pulumi.RunError where the tree cannot be rendered or is of another release, or what is there is not
    supported.
    """

    version: pulumi.Output[str]

    def __init__(self, name: str, args: KueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:Kueue", name, None, opts)
        # A component's children do not inherit what it depends on.
        self._below = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        settings = args.settings
        try:
            if settings.install == "existing":
                version = KUEUE.check(KUEUE.look(args.context, settings.namespace), settings.namespace)
            else:
                tree = render(settings.tree, pinned=settings.location is None)
                first, access, last = kueue_objects(tree, settings, self._certificate(name, settings))
                self._provision(name, args, (first, [*access, *args.policies], last))
                version = settings.version
        except (ManifestError, UnexpectedTreeError, UnsupportedVersionError, ClusterUnreachableError) as error:
            raise pulumi.RunError(str(error)) from error
        self.version = pulumi.Output.from_input(version)
        self.register_outputs({"version": self.version})

    def _certificate(self, name: str, settings: KueueSettings) -> Certificate:
        own = pulumi.ResourceOptions(parent=self)
        made = KueueCertificate(f"{name}-webhook-certificate", webhook_names(settings), own)
        return Certificate(
            made.certificate,
            made.key,
            bundle=made.certificate.apply(bundle),
            digest=made.certificate.apply(lambda pem: hashlib.sha256(pem.encode()).hexdigest()),
        )

    def _provision(self, name: str, args: KueueArgs, stages: Sequence[list[Body]]) -> None:
        made: list[pulumi.Resource] = []
        for stage in stages:
            made += [KubernetesObject(f"{name}-{object_name(body)}", body, self._after(list(made))) for body in stage]
        crds = [body for body in stages[0] if body["kind"] == "CustomResourceDefinition"]
        guarded = {"resources": resources_of(crds), "context": args.context}
        KueueCrdGuard(f"{name}-crd-guard", guarded, self._after(made))

    def _after(self, made: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._below, pulumi.ResourceOptions(depends_on=list(made)))
