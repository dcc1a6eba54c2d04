"""`ray-platform import`: converts launcher files and manifests into a stack file."""

from pathlib import Path
from typing import Annotated

import typer

from stacks.commands.check.command import FOUND, MISUSED, ended


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file of `ray up` or ray-serve-cai, manifests of KubeRay or values of its chart; - for stdin."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write there instead of to the terminal.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    ray_version: Annotated[str | None, typer.Option(help="Version of Ray, if the image has none in its tag.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the cluster, instead of the file's.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Namespace, instead of the file's.")] = None,
    operator_version: Annotated[
        str | None, typer.Option(help="Release of KubeRay that the manifests are for, if not the default one.")
    ] = None,
    chart_version: Annotated[
        str | None, typer.Option(help="Release of KubeRay's chart that values are for, if not that of the operator.")
    ] = None,
) -> None:
    """Convert a cluster launcher file, KubeRay's manifests or values of its Helm chart into a stack file.

    Standard error lists all parts without a counterpart, one per line. Exit codes: 0 imported, 1 cannot be imported,
    2 wrong use.
    """
    from core.files import replace_text
    from stacks.commands.importing.file import import_file
    from stacks.launcher_files.reader import RELEASE, Answers

    if output and output.exists() and not force:
        raise ended(f"{output} exists already: set another file, or add --force to overwrite it", MISUSED)
    if output and not output.absolute().parent.is_dir():
        raise ended(f"{output.absolute().parent} is not a folder: create it, or set another file", MISUSED)
    for option, value, example in (
        ("--ray-version", ray_version, "2.60.0"),
        ("--operator-version", operator_version, "1.7.0"),
        ("--chart-version", chart_version, "1.1.0"),
    ):
        if value and not RELEASE.fullmatch(value):
            raise ended(f"{option} {value!r} is not a release: write for example {example}", MISUSED)
    if str(file) == "-":
        file = Path("/dev/stdin")
    elif not file.is_file():
        raise ended(f"{file} is not a file: set the file to import", MISUSED)
    result = import_file(file, Answers(ray_version, name, namespace, operator_version, chart_version))
    for line in result.lines:
        typer.echo(line, err=True)
    if not result.text:
        raise typer.Exit(FOUND)
    if output:
        try:
            replace_text(output, result.text)
        except OSError as error:
            raise ended(f"{output} cannot be written: {error.strerror}", MISUSED) from error
    else:
        typer.echo(result.text, nl=False)
