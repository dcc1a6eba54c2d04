"""Prints the verdicts on published external manifests, or pins them and writes their table.

Review new verdicts before pinning them: docs/reference/policy-verdicts.md explains each rule with findings.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
import yaml

from benchmarks.page import write_tables
from testbed.policies.verdicts import PINNED, Verdict, files, verdict

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "policy-verdicts.md"


def table(verdicts: dict[str, Verdict]) -> Iterator[str]:
    """A row for each file."""
    findings = sum(sum(each.values()) for each in verdicts.values())
    yield f"{len(verdicts)} files, {findings} findings; the number behind a rule is that of its violations.\n"
    yield "| File | Rules |"
    yield "| --- | --- |"
    for name, violated in verdicts.items():
        rules = ", ".join(rule if count == 1 else f"{rule} {count}" for rule, count in violated.items())
        yield f"| {name} | {rules or '-'} |"


def main(
    write: Annotated[bool, typer.Option("--write", help="Pin them, and write the table into its page.")] = False,
) -> None:
    """Print or write the table."""
    verdicts = {name: verdict(file) for name, file in files().items()}
    text = "\n".join(table(verdicts))
    if write:
        PINNED.write_text(yaml.safe_dump(verdicts, default_flow_style=None, sort_keys=False, width=160))
        write_tables(PAGE, "verdicts", text)
    else:
        typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
