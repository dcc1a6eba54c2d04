"""What a stack file may say about Kueue."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, Strict, model_validator
from pydantic.alias_generators import to_camel

from core.problems import Problem, Problems
from core.types import DnsLabel, DnsSubdomain, Settings, Version
from core.versions import release_of

from ..operator.settings import ComputeResources
from .supported import RELEASES, SUPPORTED

NAMESPACE = "kueue-system"
"""Where Kueue's kustomize tree has everything."""

Seconds = Annotated[int, Strict(), Field(ge=1, le=7 * 24 * 3600)]


class WaitForPodsReadySettings(Settings):
    """What Kueue does with a RayCluster that it has let in and that does not become ready: it takes it out again."""

    timeout_seconds: Seconds = 300
    """So long a RayCluster may take until it is ready. Then it is suspended, and waits anew."""

    recovery_timeout_seconds: Seconds | None = None
    """So long one that was ready may take until it is ready again. Default: it is not watched for this."""

    block_admission: bool = False
    """True: nothing else is let in until it is ready, so that no two of them hold half of their GPUs each."""

    backoff_limit_count: Annotated[int, Strict(), Field(ge=0, le=1000)] | None = None
    """So often it waits anew before it is deactivated. Default: for ever."""


def _switched(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    return value


WaitForPodsReady = Annotated[
    WaitForPodsReadySettings | None,
    BeforeValidator(_switched, json_schema_input_type=WaitForPodsReadySettings | bool | None),
]


class KueueWebhookSettings(Settings):
    """The webhook: it suspends RayClusters and RayJobs that name a queue, and refuses what Kueue cannot serve. Nothing
    else of the cluster passes it but Kueue's own kinds."""

    failure_policy: Literal["Ignore", "Fail"] = "Fail"
    """What happens while it does not answer. `Fail`: no RayCluster or RayJob that names a queue can be made or changed.
    `Ignore`: what is made then starts at once, and is suspended when Kueue is back."""

    timeout_seconds: Annotated[int, Strict(), Field(ge=1, le=30)] = 10
    """So long the API server waits for an answer."""


class KueueSettings(Settings):
    """Kueue: RayClusters are suspended until their queue has room for all that they start with.

    With `install: existing` nothing of Kueue is changed, so only where it is may be said, and how it runs:
    `elasticJobs` and `fairSharing`.
    """

    version: Version = "0.15.0"
    """Kueue's release, without the leading v: 0.15.x."""

    install: Literal["manifests", "existing"] = "manifests"
    """`manifests`: this program installs and upgrades it. `existing`: it is there; its version is checked."""

    location: str | None = Field(default=None, min_length=1)
    """Kustomize tree to install from: a folder or a URL that `kubectl kustomize` takes. Default: Kueue's
    `config/default` on GitHub at the tag of `version`."""

    namespace: DnsLabel = NAMESPACE
    """Namespace of Kueue. `install: manifests` makes it."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in Kueue's namespace to pull the image with."""

    replicas: Annotated[int, Strict(), Field(ge=1, le=5)] = 1
    """Its pods. One of them leads, all serve the webhook."""

    resources: ComputeResources | None = None
    """Of each pod. Default: those of Kueue's tree, 500m to 2 CPUs and 512Mi."""

    metrics: bool = True
    """It has metrics for Prometheus, with a Service, for accounts that may get `/metrics`."""

    elastic_jobs: bool = False
    """True: Kueue runs with its feature gate `ElasticJobsViaWorkloadSlices`, which is alpha, and without which it
    refuses RayClusters that scale."""

    fair_sharing: bool = False
    """True: what is borrowed is shared by the `weight` of queues. Otherwise who waits longest borrows first."""

    wait_for_pods_ready: WaitForPodsReady = None
    """What happens to RayClusters that are let in and do not become ready. Default: they keep what they have."""

    webhook: KueueWebhookSettings = KueueWebhookSettings()

    @property
    def tree(self) -> str:
        """Where the kustomize tree is."""
        return self.location or f"https://github.com/kubernetes-sigs/kueue//config/default?ref=v{self.version}"

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if problems := [*self._unsupported(), *self._not_ours_to_set()]:
            raise Problems(problems)
        return self

    def _unsupported(self) -> Iterator[Problem]:
        if release_of(self.version) not in RELEASES:
            message = f"version {self.version!r} is not supported: set it to {SUPPORTED}"
            yield Problem(("version",), self.version, message, "kueue-version")

    def _not_ours_to_set(self) -> Iterator[Problem]:
        if self.install == "manifests":
            return
        message = "install: existing changes nothing of Kueue: remove this key, or set install: manifests"
        for field in sorted(self.model_fields_set - {"install", "namespace", "elastic_jobs", "fair_sharing"}):
            yield Problem((to_camel(field),), getattr(self, field), message, "existing-kueue")
