"""`make docs`: the pages as a site in `site/`, by MkDocs. It fails for a link or an anchor that leads nowhere.

The site has the folders of the project, so that the links of a page are the same there: README.md is its first page.
"""

import inspect
import logging
import re
import shutil
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException
from pydantic import BaseModel

from local.paths import ROOT

SITE = ROOT / "site"

API = "docs/reference/package.md"
"""A page that only the site has."""

_LINK = re.compile(r"\]\(\s*<?([^)\s>#]+)(?:#[^)\s>]*)?>?\s*\)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_NESTED = re.compile(r"^ {2,3}(?=[-*] )")
_FENCE = re.compile(r" *```")
_OUTPUT = re.compile(r"^ {4}(\w+): ", re.MULTILINE)
"""A line of `Outputs:` in a docstring."""

_DIAGRAM = re.compile(r"^(```mermaid\n.*?^```)$", re.DOTALL | re.MULTILINE)
_FOLDED = r"<details markdown><summary>Diagram, as the source that GitHub draws</summary>\n\n\1\n\n</details>"
"""Mermaid's own script is a file of another host, or three megabytes."""


_COLOURS = "colours.css"
_LINKS = '[data-md-color-scheme="slate"][data-md-color-primary] { --md-typeset-a-color: #82a9f0; }\n'
"""A style sheet. The theme's own colour of links has too little contrast on the dark ground of code."""


def main() -> None:
    """Builds the site."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        make(SITE)
    except MkDocsException as error:
        sys.exit(f"no site was built: {error}")
    print(SITE / "index.html")


def make(site: Path) -> None:
    """Builds the site into a folder. Raises MkDocsException after all warnings, which it logs."""
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder)
        _stage(pages)
        _write(pages, ROOT / API, api_page())
        (pages / _COLOURS).write_text(_LINKS)
        config: Any = load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(pages), site_dir=str(site), strict=True)
        config.extra_css = [_COLOURS]
        config.nav = [*config.nav, {"Decisions": _listed("decisions")}, {"Measurements": _listed("measurements")}]
        config.mdx_configs["toc"] = {"slugify": lambda heading, _separator: slug(heading), "permalink": True}
        build(config)


def api_page() -> str:
    """What other programs import from `ray_platform`, with its docstrings."""
    # It imports Pulumi's SDK, which the checks of pages do not need.
    import ray_platform

    parts = ["# API of ray_platform", inspect.getdoc(ray_platform) or ""]
    for name in ray_platform.__all__:
        each = getattr(ray_platform, name)
        settings = isinstance(each, type) and issubclass(each, BaseModel)
        parts += [f"## {name}", *(_of_settings(name, each) if settings else _of_code(name, each))]
    return _with_room_for_lists("\n\n".join(parts))


def _of_settings(name: str, model: Any) -> list[str]:
    title = "The whole file" if name == "StackSettings" else name.removesuffix("Settings")
    return [inspect.getdoc(model) or "", f"[Its keys](stack-file.md#{slug(title)}), in snake case."]


def _of_code(name: str, code: Any) -> list[str]:
    made = inspect.getdoc(vars(code)["__init__"]) if isinstance(code, type) else ""
    docs = (_OUTPUT.sub(r"- `\1`: ", text or "") for text in (inspect.getdoc(code), made))
    return [f"```python\n{name}{inspect.signature(code)}\n```", *docs]


def slug(heading: str) -> str:
    """GitHub's anchor of a heading: lower case, no punctuation, hyphens for spaces."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    kept = "".join(
        character for character in plain.lower() if unicodedata.category(character)[0] in "LMN" or character in "-_ "
    )
    return kept.replace(" ", "-")


def pages_of_the_project() -> list[Path]:
    """All pages: those of the top folder, and those of docs/."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _listed(folder: str) -> list[str]:
    pages = sorted((ROOT / "docs" / folder).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    return [str(page.relative_to(ROOT)) for page in pages]


def _stage(folder: Path) -> None:
    """Copies the pages and the files that they link to."""
    for page in pages_of_the_project():
        text = page.read_text()
        _write(folder, page, _DIAGRAM.sub(_FOLDED, _with_room_for_lists(text)))
        for target in _LINK.findall(text):
            file = (page.parent / target).resolve()
            if file.is_file() and file.suffix != ".md" and file.is_relative_to(ROOT):
                (folder / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, folder / file.relative_to(ROOT))


def _write(folder: Path, page: Path, text: str) -> None:
    copy = folder / page.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text)


def _with_room_for_lists(text: str) -> str:
    """A blank line before each list, and four spaces before a list in a list: Python-Markdown reads others as text."""
    lines: list[str] = []
    fenced = in_list = False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        item = bool(_ITEM.match(line))
        if item and not fenced and not in_list and lines and lines[-1].strip():
            lines.append("")
        in_list = item or (in_list and line.startswith(" "))
        lines.append(_NESTED.sub("    ", line) if in_list and not fenced else line)
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
