"""The platform and its tenants as one component of another Pulumi program."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi

from core.problems import Finding, StackFileError
from core.stack_file import EXTENDS, PREFIX
from stacks import load as stack_files
from stacks.load import parse
from stacks.program.build import build
from stacks.program.config import running_stack
from stacks.settings import StackSettings

Settings = StackSettings | Mapping[str, Any] | None


@dataclass(frozen=True)
class RayPlatformArgs:
    """Arguments of RayPlatform."""

    settings: Settings = None
    """The settings, or the values of a stack file by its keys without `ray-platform:`. Default: the keys
    `ray-platform:` in the configuration of the running stack, `Pulumi.STACK.yaml`."""

    kubeconfig: pulumi.Input[str] | None = field(default=None, repr=False)
    """Content of the cluster's kubeconfig, also as the output of a resource that creates the cluster. It is a secret in
    the state. Default: the ambient kubeconfig."""


class RayPlatform(pulumi.ComponentResource):
    """Operator, tenants and RayClusters, as a stack file describes them; one in a Pulumi stack.

    The Kubernetes cluster is read before its resources are constructed, in previews too. If the kubeconfig is an output
    of another resource, the program waits here until that resource has been created. A preview that would create it
    shows the resources as for an empty cluster. The stack's outputs `clusters`, `operator` and so on are exported,
    because the next update reads them; all are listed at `stacks.program.build.build`.

    Outputs:
        clusters: by `<namespace>/<name>`, each RayCluster's addresses, worker groups and state.
        exported: all of the stack's outputs by name.
    """

    clusters: dict[str, Any]
    exported: dict[str, Any]

    def __init__(
        self,
        name: str,
        args: RayPlatformArgs | Settings = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`args`: settings alone are `RayPlatformArgs(settings)`.

        Raises pulumi.RunError: the settings are not valid, the cluster is not that of the last update, or `opts` has a
        Kubernetes provider that leads to an unknown cluster.
        """
        super().__init__("ray-platform:index:RayPlatform", name, None, opts)
        given = args if isinstance(args, RayPlatformArgs) else RayPlatformArgs(args)
        with _without_traceback():
            settings = _settings(given.settings)
            self._refuse_provider(settings, given.kubeconfig)
            self.exported = build(settings, pulumi.ResourceOptions(parent=self), given.kubeconfig)
        self.clusters = self.exported.get("clusters", {})
        for output, value in self.exported.items():
            pulumi.export(output, value)

    def _refuse_provider(self, settings: StackSettings, kubeconfig: pulumi.Input[str] | None) -> None:
        """Without this the platform would be in the ambient kubeconfig's cluster, and not in the provider's."""
        if self.get_provider("kubernetes:core/v1:Namespace") and kubeconfig is None and not settings.kubernetes.context:
            raise pulumi.RunError(
                "RayPlatform has a provider of Kubernetes of its own, and cannot read the kubeconfig of the one in its "
                "options: pass the same with RayPlatformArgs(settings, kubeconfig=...), or set kubernetes.context"
            )


def load(path: Path) -> StackSettings:
    """The settings in a stack file with its bases, from any place.

    Raises pulumi.RunError: the file cannot be read, is not a stack file, or has invalid settings.
    """
    with _without_traceback():
        return stack_files.load(path)


@contextmanager
def _without_traceback() -> Iterator[None]:
    """Pulumi shows a RunError without the traceback of the program."""
    try:
        yield
    except StackFileError as error:
        raise pulumi.RunError(str(error)) from error


def _settings(args: Settings) -> StackSettings:
    if args is None:
        settings = running_stack()
    elif isinstance(args, StackSettings):
        settings = parse(_values(args))
    elif EXTENDS in args:
        raise _refused(EXTENDS, "has paths of files: pass load(Path(...)), which merges a stack file over its bases")
    else:
        settings = parse(args)
    if settings.split:
        message = (
            "divides a stack of ray-platform's own program, and RayPlatform is one component of one stack: remove "
            "split, or run that program"
        )
        raise _refused("split", message)
    return settings


def _refused(key: str, message: str) -> StackFileError:
    return StackFileError([Finding((f"{PREFIX}{key}",), None, message, key)])


def _values(settings: StackSettings) -> dict[str, Any]:
    """Typed settings as the values of a stack file, because a model alone is not compared with the others."""
    return settings.model_dump(mode="json", by_alias=True, exclude_unset=True)
