"""Admin actions with a preview of what they will do to each chosen row.

Rows may change between the preview and the confirmation. So the confirmation computes the preview again. If a line
differs from the one that was shown, nothing is done, and the page is shown again with the changed lines marked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.rest.actors import actor_of
from accounts.trail import audit

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

M = TypeVar("M", bound=Model)

MOST_AT_ONCE = 200


@dataclass(frozen=True)
class Effect:
    """Effect on one row as sentences, or why there is none. `about` identifies the row's state if no sentence does."""

    pk: str
    whom: str
    what: tuple[str, ...] = ()
    refused: str = ""
    about: str = ""

    @property
    def digest(self) -> str:
        told = "\n".join((self.pk, self.whom, *self.what, self.refused, self.about))
        return hashlib.sha256(told.encode()).hexdigest()[:32]


class Previewed(Generic[M]):
    """An action with a preview. Put an instance among a page's `actions`."""

    name: str
    short_description: StrOrPromise  # in the menu
    title: StrOrPromise
    button: StrOrPromise
    is_grave = False
    tick: StrOrPromise = ""  # label of a box to tick first, if the action cannot be undone
    do_not_call_in_templates = True

    def __init__(self) -> None:
        self.__name__ = self.name  # Django reads the name of an action function

    @property
    def as_button(self) -> tuple[str, str]:
        """(name, label) of the button on the page of one row."""
        return self.name, str(self.short_description)

    def notes(self) -> list[str]:
        """Sentences that hold for all chosen rows."""
        return []

    def effects(self, actor: Actor, rows: Sequence[M]) -> list[Effect]:
        """Return one effect per row, in order. The number of queries must not grow with the rows."""
        return [self.effect_on(row) for row in rows]

    def effect_on(self, row: M) -> Effect:
        """Return the effect on one row, if the row itself holds all that is needed."""
        raise NotImplementedError

    def apply(self, actor: Actor, row: M) -> bool:
        """Apply the action through its use case. Return False if somebody else was faster."""
        raise NotImplementedError

    def done(self, count: int) -> str:
        raise NotImplementedError

    def __call__(
        self, page: ModelAdmin[Any], request: HttpRequest, queryset: QuerySet[M]
    ) -> HttpResponse | None:
        rows = list(queryset[: MOST_AT_ONCE + 1])
        if len(rows) > MOST_AT_ONCE:
            text = _("Choose at most %(count)d at once.") % {"count": MOST_AT_ONCE}
            page.message_user(request, text, messages.WARNING)
            return None
        actor = actor_of(request)
        effects = self.effects(actor, rows)
        seen = request.POST.getlist("seen")
        is_meant = not self.tick or "ticked" in request.POST
        is_seen = sorted(seen) == sorted(effect.digest for effect in effects)
        if "confirmed" in request.POST and is_meant and is_seen:
            self._do(page, request, actor, rows, {e.pk for e in effects if not e.refused})
            return None
        return self._ask(
            page, request, effects, seen if "confirmed" in request.POST and not is_seen else None
        )

    def _do(
        self, page: ModelAdmin[Any], request: HttpRequest, actor: Actor, rows: Sequence[M], chosen: set[str]
    ) -> None:
        done = 0
        for row in rows:
            if str(row.pk) not in chosen:
                continue
            try:
                done += self.apply(actor, row)
            except Refusal as refusal:
                audit.record_refusal(request, actor, refusal)
                text = f"{row}: {refusal.message} {refusal.hint}"
                page.message_user(request, text.strip(), messages.ERROR)
        if done:
            page.message_user(request, self.done(done), messages.SUCCESS)
        else:
            page.message_user(request, _("There was nothing to do."), messages.INFO)

    def _ask(
        self,
        page: ModelAdmin[Any],
        request: HttpRequest,
        effects: Sequence[Effect],
        seen: Sequence[str] | None,
    ) -> HttpResponse:
        lines = [
            {"effect": effect, "is_new": seen is not None and effect.digest not in seen} for effect in effects
        ]
        context = {
            **page.admin_site.each_context(request),
            "title": self.title,
            "opts": page.opts,
            "action": self,
            "notes": self.notes(),
            "lines": lines,
            "will_do": any(not effect.refused for effect in effects),
            "has_changed": seen is not None,
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/preview.html", context)
