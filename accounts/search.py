"""Bounds of every search, in lists of the API, on pages and in the admin: each word costs a scan of many columns."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

MOST_WORDS = 8
MOST_CHARACTERS = 200


def too_much(text: str) -> str:
    """Return what is wrong with a search, as a sentence; empty if nothing is. Words end at spaces and commas."""
    words = [word for word in re.split(r"[\s,]+", text) if word]
    if len(words) <= MOST_WORDS and len(text) <= MOST_CHARACTERS:
        return ""
    return _("Search for at most %(words)d words and %(characters)d characters.") % {
        "words": MOST_WORDS,
        "characters": MOST_CHARACTERS,
    }


def bounded(text: str) -> None:
    """Raise ValidationError if a search is too long."""
    if problem := too_much(text):
        raise ValidationError(problem)
