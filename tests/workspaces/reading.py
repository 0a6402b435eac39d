"""Reads pages as a person does."""

from __future__ import annotations

import html
import re
from typing import Any


def words(response: Any) -> str:
    """What the page says, without its markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).replace("\xa0", " ")


def text_of(page: Any) -> str:
    """The page's markup with its entities resolved."""
    return html.unescape(page.content.decode())


def value_of(page: Any, name: str) -> str | None:
    """What an input of the page holds."""
    found = re.search(rf'<input[^>]*name="{name}"[^>]*value="([^"]*)"', page.content.decode())
    return html.unescape(found[1]) if found else None


def chosen(page: Any, name: str) -> str | None:
    """Which of the cards by this name is chosen."""
    found = re.search(rf'<input type="radio" name="{name}" value="([^"]*)" checked', page.content.decode())
    return found[1] if found else None
