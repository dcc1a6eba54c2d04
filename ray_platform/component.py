"""The platform and its tenants as one component of another Pulumi program."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulumi

from core.problems import Finding, StackFileError
from core.stack_file import EXTENDS, PREFIX
from stacks import load as stack_files
from stacks.load import installable, parse
from stacks.program.build import build
from stacks.program.config import running_stack
from stacks.settings import StackSettings


class RayPlatform(pulumi.ComponentResource):
    """Operator, tenants and RayClusters, as a stack file describes them; one in a Pulumi stack.

    The program needs a Kubernetes cluster that exists before it runs: the context `kubernetes.context` of the
    kubeconfig is read in previews, too. The stack's outputs `clusters`, `operator` and so on are exported, because the
    next update reads them; all are listed at `stacks.program.build.build`.

    Outputs:
        clusters: by `<namespace>/<name>`, each RayCluster's addresses, worker groups and state.
        exported: all of the stack's outputs by name.
    """

    clusters: dict[str, Any]
    exported: dict[str, Any]

    def __init__(
        self,
        name: str,
        args: StackSettings | Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`args`: the settings, or the values of a stack file by its keys without `ray-platform:`. Default: the keys
        `ray-platform:` in the configuration of the running stack, `Pulumi.STACK.yaml`.

        Raises pulumi.RunError: the settings are not valid, or the cluster is not that of the last update.
        """
        super().__init__("ray-platform:index:RayPlatform", name, None, opts)
        with _without_traceback():
            self.exported = build(_settings(args), pulumi.ResourceOptions(parent=self))
        self.clusters = self.exported.get("clusters", {})
        for output, value in self.exported.items():
            pulumi.export(output, value)
        self.register_outputs({})


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


def _settings(args: StackSettings | Mapping[str, Any] | None) -> StackSettings:
    if args is None:
        settings = running_stack()
    elif isinstance(args, StackSettings):
        settings = installable(parse(_values(args)))
    elif EXTENDS in args:
        raise _refused(EXTENDS, "has paths of files: pass load(Path(...)), which merges a stack file over its bases")
    else:
        settings = installable(parse(args))
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
