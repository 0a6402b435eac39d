"""Admin forms as a browser posts them: with every hidden field of the page shown before."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse
from django.test import Client


class _Hidden(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "input" and given.get("type") == "hidden":
            self.fields.setdefault(str(given["name"]), []).append(given.get("value") or "")


def hidden(page: Any) -> dict[str, list[str]]:
    found = _Hidden()
    found.feed(page.content.decode())
    return {name: values for name, values in found.fields.items() if name != "csrfmiddlewaretoken"}


def preview(client: Client, path: str, action: str, *rows: Any) -> HttpResponse:
    """Choose an action for these rows; return the page that previews it."""
    chosen = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    answer: HttpResponse = client.post(path, chosen)  # type: ignore[assignment]
    return answer


def confirm(client: Client, path: str, page: HttpResponse) -> HttpResponse:
    """Confirm the preview; return the page that follows."""
    answer: HttpResponse = client.post(path, hidden(page) | {"confirmed": ["yes"]}, follow=True)  # type: ignore[assignment]
    return answer


def text_of(page: Any) -> str:
    return str(page.content.decode())
