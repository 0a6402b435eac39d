"""The page that asks before an action that cannot be undone. Rooms whose questions say more have pages of their own."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _


def ask(
    request: HttpRequest, section: str, back: str, title: str, effects: list[str], label: str
) -> HttpResponse:
    """Ask; the answer is a POST to the same address. `label`: words of the button that does it."""
    words = {"title": title, "effects": effects, "label": label, "keep": _("Keep it")}
    return render(request, "question.html", {"section": section, "back": back} | words)
