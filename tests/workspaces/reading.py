"""Helpers that read pages as a person does."""

from __future__ import annotations

import html
import re
from typing import Any


def words(response: Any) -> str:
    """Text of the page, without its markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).replace("\xa0", " ")


def text_of(page: Any) -> str:
    """Markup of the page with its entities resolved."""
    return html.unescape(page.content.decode())


def value_of(page: Any, name: str) -> str | None:
    """Value of an input of the page."""
    found = re.search(rf'<input[^>]*name="{name}"[^>]*value="([^"]*)"', page.content.decode())
    return html.unescape(found[1]) if found else None


def chosen(page: Any, name: str) -> str | None:
    """Value of the chosen card of this name."""
    found = re.search(rf'<input type="radio" name="{name}" value="([^"]*)" checked', page.content.decode())
    return found[1] if found else None
