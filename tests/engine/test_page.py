"""The page in a real browser: who can read it, what it loads, and how it changes while it is shown."""

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped] # has none
from playwright.sync_api import Browser, Page, ViewportSize, expect

from stacks.commands.page import server as page_server
from stacks.commands.page.server import Server
from stacks.commands.page.view import View, html, policy
from testbed.browser import PHONE, browser
from tests.unit.page.sample import HOSTILE, view

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(120)]

DESK: ViewportSize = {"width": 1280, "height": 900}

TURN = "again()"
"""The page's own function that reads the server again; otherwise it does so after three seconds."""


REBOUND = "rebound.example"
"""A name that somebody else lets resolve to this machine."""


class Shown:
    """A page that is served, and what it shows."""

    def __init__(self) -> None:
        self.view = view(HOSTILE)

    def page(self) -> str:
        return html(self.view)

    def change(self, **live: Any) -> View:
        assert self.view.live is not None
        self.view = replace(self.view, live=replace(self.view.live, **live))
        return self.view


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser(f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1") as made:
        yield made


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.fixture
def server(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(page_server, "SECONDS", 0.0)
    with Server(0, shown.page, policy(live=True)) as made:
        thread = threading.Thread(target=lambda: made.serve_forever(poll_interval=0.05))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


Open = Callable[..., Page]


@pytest.fixture
def visit(chromium: Browser, server: Server) -> Iterator[Open]:
    """Opens the page. At the end of the test its browser must have reported no problem."""
    problems: list[str] = []
    contexts = []

    def visit(size: ViewportSize = DESK, scheme: Literal["light", "dark"] = "light", **options: Any) -> Page:
        context = chromium.new_context(viewport=size, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.goto(server.url)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert [each for each in problems if "ERR_CONNECTION_REFUSED" not in each] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_no_violation_in_any_size_and_scheme(
    visit: Open, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    page = visit(size, scheme)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
    assert found.violations_count == 0, found.generate_report()
    assert len(found.response["passes"]) > 20
    assert [each["id"] for each in found.response["incomplete"] if each["id"] == "color-contrast"] == []


def test_a_phone_shows_everything_without_scrolling_sideways(visit: Open) -> None:
    page = visit(PHONE)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    outside = "all => all.filter(each => each.getBoundingClientRect().right > innerWidth + 1).length"
    assert page.eval_on_selector_all("main :is(td, th, dd, li, p):not(thead *)", outside) == 0
    cell = page.locator("tr", has_text="tuning").first.get_by_role("cell").first
    expect(cell).to_contain_text("State")


def test_nothing_but_the_page_is_loaded_and_hostile_texts_stay_texts(visit: Open) -> None:
    page = visit()
    loaded = page.evaluate("performance.getEntriesByType('resource').map(each => each.name)")
    assert loaded == []
    expect(page.locator("#waits")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("img").count() == 0


def test_landmarks_headings_and_tables_are_those_of_a_reader(visit: Open) -> None:
    page = visit()
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    for name in ("What waits, and why", "Nodes", "Queues", "Tenants", "Plan of the stack file"):
        expect(page.get_by_role("region", name=name)).to_be_visible()
    table = page.get_by_role("table", name="RayClusters").first
    expect(table.get_by_role("columnheader", name="State")).to_be_visible()
    expect(table.get_by_role("rowheader", name="tuning not as desired")).to_be_visible()


def test_the_keyboard_reaches_the_content_and_opens_a_tenant(visit: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    tenant = page.locator("details", has=page.get_by_role("heading", name="team-a"))
    expect(tenant.locator("summary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(tenant).not_to_have_attribute("open", "")


def test_a_change_is_shown_without_losing_the_place_and_announced_once(visit: Open, shown: Shown) -> None:
    page = visit()
    spoken = page.get_by_role("status")
    tenant = page.locator("details", has=page.get_by_role("heading", name="team-a"))
    tenant.locator("summary").click()
    figures = ("3 of 3 RayClusters ready",)
    assert shown.view.live is not None
    tenants = tuple(replace(each, reasons=()) for each in shown.view.live.tenants)
    shown.change(at="2026-01-01T12:00:03+00:00", figures=figures, tenants=tenants)
    page.evaluate(TURN)
    expect(page.locator("#top")).to_contain_text("12:00:03 UTC")
    expect(page.locator("#waits")).not_to_contain_text("tuning")
    expect(spoken).to_contain_text(figures[0])
    shown.change(ok=True, tenants=tuple(replace(each, ok=True) for each in tenants))
    page.evaluate(TURN)
    expect(page.get_by_role("heading", name="team-a not as desired")).to_have_count(0)
    expect(tenant).not_to_have_attribute("open", "")
    expect(tenant.locator("summary")).to_be_focused()
    expect(page).to_have_title(re.compile("✓ sample"))
    assert "not as desired" in spoken.inner_text(), "a second change within twenty seconds is not announced"


def test_a_section_that_goes_or_comes_is_not_left_as_it_was(visit: Open, shown: Shown) -> None:
    page = visit()
    queues = shown.view.live and shown.view.live.queues
    for there, number in ((None, 0), (queues, 1)):
        shown.change(queues=there)
        page.evaluate(f"void {TURN}")  # which loads the page once more
        expect(page.locator("#queues")).to_have_count(number)


def test_a_server_that_has_ended_and_a_cluster_that_is_gone_are_reported(
    visit: Open, shown: Shown, server: Server
) -> None:
    page = visit()
    shown.view = replace(shown.view, error="the cluster could not be read again: connection refused")
    page.evaluate(TURN)
    expect(page.locator("#now")).to_contain_text("connection refused. Below is what was read before.")
    server.shutdown()
    server.server_close()
    page.evaluate(TURN)
    expect(page.get_by_role("alert")).to_contain_text("No answer since 12:00:00 UTC")


def test_a_hidden_page_asks_nothing_and_moves_only_for_those_who_want_motion(visit: Open, shown: Shown) -> None:
    page = visit(reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    moving = "all => all.filter(each => each.getAnimations().length).length"
    assert page.eval_on_selector_all("*", moving) == 0
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true})")
    shown.change(at="2026-01-01T12:00:09+00:00")
    page.evaluate(TURN)
    expect(page.locator("#top")).to_contain_text("12:00:00 UTC")


def test_a_foreign_name_that_resolves_to_this_machine_is_refused(chromium: Browser, server: Server) -> None:
    """DNS rebinding, as a browser does it: the page of a foreign name reaches the server, and reads nothing."""
    page = chromium.new_page()
    answer = page.goto(f"http://{REBOUND}:{server.server_port}/")
    assert answer is not None
    assert (answer.status, page.inner_text("body").strip()) == (421, f"This server is {server.url}")
    page.close()
