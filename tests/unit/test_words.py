"""Names, docstrings, comments, messages and pages use the words of docs/glossary.md."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

GLOSSARY = ROOT / "docs" / "glossary.md"

AVOIDED = frozenset(
    {"anew", "leftover", "leftovers", "overtaken", "said", "says", "theirs", "told", "unsaid", "wanted"}
)
"""Those words to avoid that have no other meaning here."""

KEPT = ("img-said", "said-twice", '"says"')
"""Rule ids and a key of reports, which others read."""

IN_PODS = ROOT / "components" / "payloads" / "redis"
"""Scripts that run in pods: an edit restarts them."""

KINDS = ("md", "py", "go", "sh", "yaml", "toml")


def files() -> Iterator[Path]:
    for kind in KINDS:
        for file in ROOT.rglob(f"*.{kind}"):
            hidden = any(part.startswith(".") for part in file.relative_to(ROOT).parts)
            if not hidden and IN_PODS not in file.parents and file not in (Path(__file__), GLOSSARY):
                yield file


def avoided(text: str) -> list[str]:
    """The words of a text or of a name that the glossary avoids."""
    for kept in KEPT:
        text = text.replace(kept, "")
    return [word for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text) if word.lower() in AVOIDED]


def test_files_use_the_words_of_the_glossary() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {', '.join(words)}"
        for file in files()
        for number, line in enumerate([str(file.relative_to(ROOT)), *file.read_text().splitlines()])
        if (words := avoided(line))
    ]
    assert found == [], "docs/glossary.md has the words to use"


def test_names_are_split_into_words() -> None:
    text = "_SAID_AT saidBefore Unsaid WhatIsTold aforesaid img-said"
    assert avoided(text) == ["SAID", "said", "Unsaid", "Told"]


def test_the_glossary_has_the_words_to_use_instead() -> None:
    table = GLOSSARY.read_text().partition("## Words to use")[2]
    assert set(re.findall(r"[a-z]+", table)) >= AVOIDED
