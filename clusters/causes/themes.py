"""Causes for a reader who looks one up: by theme, each listed once and without the data of a case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext_lazy as _

from clusters.causes import (
    admission,
    containers,
    gpus,
    health,
    images,
    nodes,
    scheduling,
    services,
    volumes,
    ways,
)
from clusters.causes.cause import Audience, Cause, in_words
from clusters.causes.commands import Step, commands

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Entry(NamedTuple):
    code: str
    sentence: str
    hint: str
    audience: Audience
    steps: tuple[Step, ...] = ()


class Theme(NamedTuple):
    slug: str
    title: StrOrPromise
    entries: list[Entry]


# A cause in several tables is listed under the first of these themes.
_IN_ORDER: tuple[tuple[str, StrOrPromise, Iterable[Cause]], ...] = (
    ("gpus", _("GPUs"), gpus.CAUSES),
    ("nodes", _("Nodes and their network"), nodes.CAUSES),
    ("storage", _("Storage"), volumes.CAUSES),
    ("images", _("Images"), images.CAUSES),
    ("waiting", _("Waiting for a node"), (*scheduling.UNCOUNTED, *scheduling.CAUSES)),
    ("start-and-end", _("Start and end of a container"), containers.CAUSES),
    ("ways", _("Browser and SSH"), ways.CAUSES),
    ("addresses", _("Addresses"), services.CAUSES),
    ("rules", _("Rules, quotas and rights of the cluster"), admission.CAUSES),
    ("watched", _("Found by watching"), health.CAUSES),
)


def themes() -> list[Theme]:
    """Return all causes by theme, in the reader's language."""
    told: set[str] = set()
    found = []
    for slug, title, causes in _IN_ORDER:
        new = {cause.code: cause for cause in causes if cause.code not in told}
        told |= new.keys()
        found.append(Theme(slug, title, [_entry(cause) for cause in new.values()]))
    return found


def _entry(cause: Cause) -> Entry:
    sentence, hint = (in_words(text, {}, untold="…") for text in (cause.sentence, cause.hint))
    return Entry(cause.code, sentence, hint, cause.audience, commands(cause.code))
