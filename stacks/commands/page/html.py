"""Writes a page as HTML: one file without any other, with a Content-Security-Policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

import jinja2

from stacks.commands.page.view import View

FILE = Path(__file__).with_name("page.html.jinja")


def html(view: View) -> str:
    """The page."""
    return _template().render(view=view, policy=policy(live=view.live is not None))


@cache
def policy(*, live: bool) -> str:
    """The Content-Security-Policy: the page's own style, and for a live page its own script and server.

    `frame-ancestors`, which a browser ignores in a file, is added by the server.
    """
    directives = ["default-src 'none'", f"style-src {_digest('style')}", "base-uri 'none'", "form-action 'none'"]
    if live:
        directives += [f"script-src {_digest('script')}", "connect-src 'self'"]
    return "; ".join(directives)


@cache
def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(FILE.parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(FILE.name)


def _digest(block: str) -> str:
    """The source expression of an inline element (w3.org/TR/CSP3, Hash source)."""
    template = _template()
    content = "".join(template.blocks[block](template.new_context()))
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
