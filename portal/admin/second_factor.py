"""Admin action for people who lost their phone and recovery codes."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.errors import Refusal
from accounts.models import User
from accounts.sign_on import second_factor


class ResetSecondFactor(Previewed[User]):
    name = "reset_second_factor"
    short_description = gettext_lazy("Reset second factor …")
    title = gettext_lazy("Reset second factors")
    button = gettext_lazy("Reset")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _(
                "Make sure that the request really comes from them: until they set it up again, they sign "
                "in with their password only."
            )
        ]

    def effects(self, actor: Actor, rows: Sequence[User]) -> list[Effect]:
        with_one = second_factor.people_with_one(rows)
        return [self.effect(actor, person, person.pk in with_one) for person in rows]

    def effect(self, actor: Actor, person: User, has_one: bool) -> Effect:
        pk, whom = str(person.pk), person.username
        try:
            second_factor.require_reset(actor, person)
        except Refusal as refusal:
            return Effect(pk, whom, refused=f"{refusal.message} {refusal.hint}")
        if not has_one:
            return Effect(pk, whom, refused=_("They have no second factor."))
        if second_factor.is_demanded(person):
            return Effect(pk, whom, (_("They set it up again at their next sign-in."),))
        return Effect(pk, whom, (_("Their app and recovery codes stop working."),))

    def apply(self, actor: Actor, row: User) -> bool:
        second_factor.reset(actor, row)
        return True

    def done(self, count: int) -> str:
        return ngettext("%(count)d second factor is reset.", "%(count)d second factors are reset.", count) % {
            "count": count
        }
