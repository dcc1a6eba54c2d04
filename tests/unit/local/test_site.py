"""The site of `make docs`: all links of it lead somewhere, it has every page, and it needs no other host."""

import re
from pathlib import Path

import pytest
from mkdocs.exceptions import Abort

from local import site
from local.paths import ROOT
from local.site import make, pages_of_the_project

pytestmark = pytest.mark.thorough

LOADED = re.compile(r"<(?:script|img|link)\b[^>]*\b(?:src|href)=\"?(https?:[^\" >]+)")
"""What a browser fetches by itself."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    make(folder)
    return folder


def test_it_has_every_page(built: Path) -> None:
    names = [page.relative_to(ROOT).with_suffix("") for page in pages_of_the_project()]
    folders = [name.parent if name.name == "README" else name for name in names]
    assert [folder for folder in folders if not (built / folder / "index.html").is_file()] == []
    assert (built / "Pulumi.prod.yaml").read_text() == (ROOT / "Pulumi.prod.yaml").read_text()


def test_anchors_are_those_of_github(built: Path) -> None:
    assert 'id="install-existing"' in (built / "docs" / "stack-file" / "index.html").read_text()


def test_a_list_below_a_line_is_a_list(built: Path) -> None:
    page = (built / "docs" / "decisions" / "0024-definitions-outside-the-state" / "index.html").read_text()
    assert "<li>Its inputs are" in re.sub(r"\s*<p>", "", page)


def test_the_package_has_a_reference(built: Path) -> None:
    page = (built / "docs" / "reference" / "package" / "index.html").read_text()
    assert 'id="rayplatform"' in page
    assert "../stack-file/#nodepool" in page


def test_a_browser_fetches_nothing_from_another_host(built: Path) -> None:
    pages = [*built.rglob("*.html")]
    assert {url for page in pages for url in LOADED.findall(page.read_text())} == set()


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#nowhere"])
def test_a_link_that_leads_nowhere_fails(link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(f"# Start\n\n[a link]({link})\n")
    settings = (ROOT / "mkdocs.yml").read_text().partition("nav:\n")
    (tmp_path / "mkdocs.yml").write_text(f"{settings[0]}nav: [README.md, docs/api.md]\n")
    monkeypatch.setattr(site, "API", "docs/api.md")
    monkeypatch.setattr(site, "api_page", lambda: "# API\n")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    with pytest.raises(Abort, match="strict mode"):
        make(tmp_path / "site")
