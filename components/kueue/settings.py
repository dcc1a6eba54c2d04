"""Settings of Kueue, and its supported releases."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, Strict
from pydantic.alias_generators import to_camel

from components.operator.settings import ComputeResources
from core.problems import Problem
from core.types import CheckedSettings, DnsLabel, DnsSubdomain, Settings, Version, switched
from core.versions import release_of

RELEASES = ("0.19",)
"""Minor versions whose tree and configuration format this package supports."""

SUPPORTED = " or ".join(f"{release}.x" for release in RELEASES)


NAMESPACE = "kueue-system"
"""The namespace in Kueue's kustomize tree."""

Seconds = Annotated[int, Strict(), Field(ge=1, le=7 * 24 * 3600)]


class WaitForPodsReadySettings(Settings):
    """Kueue suspends a RayCluster again that it has admitted and that does not become ready."""

    timeout_seconds: Seconds = 1800
    """Time for a RayCluster to become ready. Afterwards it is suspended and waits again."""

    recovery_timeout_seconds: Annotated[int, Strict(), Field(ge=0, le=7 * 24 * 3600)] | None = None
    """Time for one that was ready to become ready again; 0: no limit. Default: `timeoutSeconds`."""

    block_admission: bool = False
    """True: no other RayCluster is admitted until it is ready, so that no two RayClusters wait for each other's
    GPUs."""

    backoff_limit_count: Annotated[int, Strict(), Field(ge=0, le=1000)] | None = None
    """How often it waits again before it is deactivated. Default: no limit."""


WaitForPodsReady = Annotated[
    WaitForPodsReadySettings | None,
    BeforeValidator(switched, json_schema_input_type=WaitForPodsReadySettings | bool | None),
]


class KueueWebhookSettings(Settings):
    """The webhook: it suspends RayClusters, RayJobs and RayServices that name a queue, and refuses those that Kueue
    does not support. It applies to no other objects of the cluster except Kueue's own kinds."""

    failure_policy: Literal["Ignore", "Fail"] = "Fail"
    """The action while it does not answer. `Fail`: RayClusters, RayJobs and RayServices that name a queue cannot be
    created or changed.
    `Ignore`: new ones start at once, and are suspended when Kueue is back."""

    timeout_seconds: Annotated[int, Strict(), Field(ge=1, le=30)] = 10
    """Time for which the API server waits for an answer."""


class KueueSettings(CheckedSettings):
    """Kueue: RayClusters are suspended until their queue has room for their initial pods.

    With `install: existing` Kueue is not changed, so only its namespace and its own configuration can be set:
    `namespace` and `fairSharing`.
    """

    CONFIG_MAP: ClassVar[str] = "kueue-manager-config"
    """Name of the ConfigMap with its configuration."""

    version: Version = "0.19.2"
    """Kueue's release, without the leading v: 0.19.x."""

    install: Literal["manifests", "existing"] = "manifests"
    """`manifests`: this program installs and upgrades it. `existing`: it is installed already; its version is
    checked."""

    location: str | None = Field(default=None, min_length=1)
    """Kustomize tree to install from: a folder or a URL that `kubectl kustomize` takes. Default: Kueue's
    `config/default` on GitHub at the tag of `version`."""

    namespace: DnsLabel = NAMESPACE
    """Namespace of Kueue. `install: manifests` creates it."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in Kueue's namespace to pull the image with."""

    replicas: Annotated[int, Strict(), Field(ge=1, le=5)] = 1
    """Its pods. One of them leads, all serve the webhook."""

    resources: ComputeResources | None = None
    """Resources of each pod. Default: those of Kueue's tree, 500m to 2 CPUs and 512Mi."""

    metrics: bool = True
    """True: metrics for Prometheus, with a Service, for accounts that may get `/metrics`."""

    fair_sharing: bool = False
    """True: queues share borrowed resources by their `weight`. False: the RayCluster that waits longest borrows
    first."""

    wait_for_pods_ready: WaitForPodsReady = WaitForPodsReadySettings()
    """When an admitted RayCluster that is not ready gives its quota back. False: never."""

    webhook: KueueWebhookSettings = KueueWebhookSettings()

    @property
    def tree(self) -> str:
        """The location of the kustomize tree."""
        return self.location or f"https://github.com/kubernetes-sigs/kueue//config/default?ref=v{self.version}"

    def problems(self) -> Iterator[Problem]:
        if release_of(self.version) not in RELEASES:
            message = f"version {self.version!r} is not supported: set it to {SUPPORTED}"
            yield Problem(("version",), self.version, message, "kueue-version")
        if self.install == "manifests":
            return
        message = "install: existing changes nothing of Kueue: remove this key, or set install: manifests"
        for field in sorted(self.model_fields_set - {"install", "namespace", "fair_sharing"}):
            yield Problem((to_camel(field),), getattr(self, field), message, "existing-kueue")
