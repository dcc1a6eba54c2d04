"""The site of `make docs` in a real browser: every page of it, as a reader with a phone sees it.

What it has to contain is tested in tests/unit/local/test_site.py.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped] # has none
from playwright.sync_api import Browser, Page, expect

from local.site import make
from testbed.browser import PHONE, browser

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(300)]

Scheme = Literal["light", "dark"]

SCHEMES: dict[Scheme, str] = {"light": "default", "dark": "slate"}
"""What a reader prefers, and the theme's name for it."""

INDEX = "search/search_index.json"

TYPICAL = ("", "docs/stack-file/", "docs/package/", "docs/reference/package/")
"""A page with pictures, one with tables, one with code and one of signatures."""

MEASURE = """() => {
    const scrolls = each => ["auto", "scroll"].includes(getComputedStyle(each).overflowX);
    const cut = each => {
        if (each.getBoundingClientRect().right <= innerWidth + 1) return false;
        for (let above = each; above; above = above.parentElement) if (scrolls(above)) return false;
        return true;
    };
    return {
        headings: document.querySelectorAll("h1").length,
        width: document.documentElement.scrollWidth,
        cut: [...document.querySelectorAll("article *")].filter(cut).map(each => each.outerHTML.slice(0, 80)),
    };
}"""
"""The number of main headings, the width that the page needs, and what a reader cannot bring into sight."""


@dataclass
class Tour:
    """What a browser reported while it visited every page. A scheme changes colours and no layout."""

    measured: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By path."""

    problems: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self.problems.append(f"{page.url}: {message.text}"))
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url.removeprefix("blob:")).netloc))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    make(folder)
    return folder


class Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Keeps the output of the tests short."""


@pytest.fixture(scope="module")
def host(site: Path) -> Iterator[str]:
    """Where the site is served: host and port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(site))) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.05))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def tour(chromium: Browser, site: Path, host: str) -> Iterator[Tour]:
    made = Tour()
    page = chromium.new_page(viewport=PHONE)
    made.watch(page)
    index = json.loads((site / INDEX).read_text())
    # Each page would index the text of all pages, which takes most of its time.
    page.route(f"**/{INDEX}", lambda route: route.fulfill(json={**index, "docs": index["docs"][:1]}))
    for file in sorted(site.rglob("*.html")):
        path = str(file.relative_to(site)).removesuffix("index.html")
        page.goto(f"http://{host}/{path}")
        made.measured[path] = page.evaluate(MEASURE)
    yield made
    page.close()


def prefer(page: Page, scheme: Scheme) -> None:
    """Lets the reader prefer a scheme, and waits until the page has it."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("name => document.body.dataset.mdColorScheme === name", arg=SCHEMES[scheme])


def test_no_page_reports_a_problem_or_asks_another_host(tour: Tour, host: str) -> None:
    assert tour.problems == []
    assert tour.hosts == {host}


def test_every_page_has_one_main_heading(tour: Tour) -> None:
    assert {path for path, measured in tour.measured.items() if measured["headings"] != 1} == set()


def test_no_page_scrolls_sideways_on_a_phone_or_is_cut_off(tour: Tour) -> None:
    seen = {where: (measured["width"], measured["cut"]) for where, measured in tour.measured.items()}
    assert {where: each for where, each in seen.items() if each != (PHONE["width"], [])} == {}


@pytest.mark.parametrize("path", TYPICAL)
def test_texts_have_contrast_in_light_and_in_dark(chromium: Browser, host: str, path: str) -> None:
    page = chromium.new_page(viewport=PHONE)
    page.goto(f"http://{host}/{path}")
    for scheme in SCHEMES:
        prefer(page, scheme)
        found = Axe().run(page, context="article", options={"runOnly": {"type": "rule", "values": ["color-contrast"]}})
        assert found.violations_count == 0, found.generate_report()
        assert found.response["passes"]
    page.close()


def test_the_search_finds_a_key(chromium: Browser, host: str) -> None:
    page = chromium.new_page()
    page.goto(f"http://{host}/?q=idleTimeout")
    found = page.locator(".md-search-result a[href$='docs/reference/stack-file/#idletimeout']")
    expect(found).to_be_visible(timeout=30_000)
    page.close()
