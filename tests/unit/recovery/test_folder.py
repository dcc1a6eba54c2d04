"""What a killed Pulumi leaves in a folder."""

from pathlib import Path

import pytest

from stacks.commands.recover.cli import mend


@pytest.mark.parametrize("query", ["", "?no_tmp_dir=true"])
def test_empty_attributes_are_removed_and_nothing_else(tmp_path: Path, query: str) -> None:
    stacks = tmp_path / ".pulumi" / "stacks" / "shop"
    stacks.mkdir(parents=True)
    for name, text in {"dev.json": "", "dev.json.attrs": "", "dev.json.bak.attrs": "{}"}.items():
        (stacks / name).write_text(text)
    assert mend(f"file://{tmp_path}{query}")
    assert {file.name for file in stacks.iterdir()} == {"dev.json", "dev.json.bak.attrs"}
    assert not mend(f"file://{tmp_path}{query}")


@pytest.mark.parametrize("url", ["s3://states", "https://api.pulumi.com", ""])
def test_backends_other_than_a_folder_do_not_change(url: str) -> None:
    assert not mend(url)
