"""Names that people choose, and amounts as people read them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

# Invisible, but part of how words and emoji are written.
JOINERS = str.maketrans("", "", "\u200c\u200d")


def is_visible(text: str) -> bool:
    """Return True if the text is one line without control signs, or signs that change its direction."""
    return text.translate(JOINERS).isprintable()


def in_gib(mib: float) -> str:
    """Return an amount in MiB as people say it: 512 MiB, 16 GiB, 1.5 TiB."""
    unit = "MiB"
    for larger in ("GiB", "TiB"):
        if mib < 1024:
            break
        mib, unit = mib / 1024, larger
    return f"{mib:.1f}".removesuffix(".0") + f"\N{NO-BREAK SPACE}{unit}"


def visible(text: str) -> None:
    """Raise ValidationError unless `is_visible`: a name must not look like another one."""
    if not is_visible(text):
        raise ValidationError(
            _(
                "Use visible characters on one line: no control signs, and none that change the text's direction."
            )
        )
