"""`ray-platform schema`: the JSON Schema of stack files, and the reference page that is generated with it."""

from typing import Annotated

import typer


def schema(
    write: Annotated[bool, typer.Option("--write", help="Rewrite the committed schema and reference page.")] = False,
) -> None:
    """Print the JSON Schema of stack files."""
    from stacks.commands.schema import reference, stack_file

    if not write:
        typer.echo(stack_file.schema_text(), nl=False)
        return
    for file, text in (
        (stack_file.FILE, stack_file.schema_text()),
        (stack_file.BASE_FILE, stack_file.base_schema_text()),
        (reference.FILE, reference.reference_text()),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        typer.echo(file)
