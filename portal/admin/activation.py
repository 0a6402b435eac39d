"""Letting people in or out, with what it means for them before it is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import members
from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.models import APIToken, Membership, SSHKey, User
from quotas.models import Claim
from workspaces.models import Workspace


class ChangesOfAccess(Previewed[User]):
    """What both directions look at: the people's tokens, keys, tenants and workspaces. Four queries."""

    def effects(self, actor: Actor, rows: Sequence[User]) -> list[Effect]:
        usable = APIToken.objects.filter(user__in=rows, revoked_at=None, expires_at__gt=timezone.now())
        self.tokens = by_person((token.user_id, token.name) for token in usable)
        self.keys = by_person((key.user_id, key.name) for key in SSHKey.objects.filter(user__in=rows))
        joined = Membership.objects.filter(user__in=rows).select_related("tenant")
        self.tenants = by_person((row.user_id, row.tenant.name) for row in joined)
        live = Workspace.objects.filter(owner__in=rows, pk__in=live_holders()).select_related("tenant")
        self.workspaces = by_person(
            (
                row.owner_id,
                _("%(workspace)s in %(tenant)s") % {"workspace": row.name, "tenant": row.tenant.name},
            )
            for row in live.order_by("name")
        )
        return [self.effect(actor, person) for person in rows]

    def effect(self, actor: Actor, person: User) -> Effect:
        raise NotImplementedError


class Deactivate(ChangesOfAccess):
    name = "deactivate"
    short_description = gettext_lazy("Deactivate …")
    title = gettext_lazy("Deactivate people")
    button = gettext_lazy("Deactivate")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _("Their sessions, open pages and open connections end at once. Nothing of theirs is deleted."),
            _(
                "What runs goes on running: stop it in the list of workspaces, or leave it to the tenant's owners."
            ),
        ]

    def effect(self, actor: Actor, person: User) -> Effect:
        pk, whom = str(person.pk), person.username
        if not person.is_active:
            return Effect(pk, whom, refused=_("They are deactivated already."))
        if person.pk == actor.user.pk:
            return Effect(pk, whom, refused=_("You cannot take away your own access."))
        return Effect(
            pk,
            whom,
            (
                listed(_("Workspaces that run or wait, and go on: %(names)s."), self.workspaces[person.pk])
                or _("Nothing of theirs runs or waits."),
                listed(_("Tokens that stop working: %(names)s."), self.tokens[person.pk])
                or _("They have no token that works."),
                listed(_("SSH keys that open nothing any more: %(names)s."), self.keys[person.pk])
                or _("They have no SSH key."),
            ),
        )

    def apply(self, actor: Actor, row: User) -> bool:
        members.set_active(actor, row, active=False)
        return True

    def done(self, count: int) -> str:
        return ngettext("%(count)d person is deactivated.", "%(count)d people are deactivated.", count) % {
            "count": count
        }


class Reactivate(ChangesOfAccess):
    name = "reactivate"
    short_description = gettext_lazy("Reactivate …")
    title = gettext_lazy("Reactivate people")
    button = gettext_lazy("Reactivate")

    def effect(self, actor: Actor, person: User) -> Effect:
        pk, whom = str(person.pk), person.username
        if person.is_active:
            return Effect(pk, whom, refused=_("They are active."))
        told = (
            _("They sign in as before."),
            listed(_("Tenants they are in: %(names)s."), self.tenants[person.pk])
            or _("They are in no tenant."),
            listed(_("Tokens that work again: %(names)s."), self.tokens[person.pk]),
            listed(_("SSH keys that work again: %(names)s."), self.keys[person.pk]),
        )
        return Effect(pk, whom, tuple(sentence for sentence in told if sentence))

    def apply(self, actor: Actor, row: User) -> bool:
        members.set_active(actor, row, active=True)
        return True

    def done(self, count: int) -> str:
        return ngettext("%(count)d person is active again.", "%(count)d people are active again.", count) % {
            "count": count
        }


def by_person(rows: Any) -> defaultdict[UUID, list[str]]:
    found: defaultdict[UUID, list[str]] = defaultdict(list)
    for person, name in rows:
        found[person].append(name)
    return found


def listed(sentence: str, names: Sequence[str]) -> str:
    """The sentence, if there is anything to name in it."""
    return sentence % {"names": _(", ").join(names)} if names else ""


def live_holders() -> QuerySet[Claim, UUID]:
    return Claim.objects.exclude(state=Claim.State.RELEASED).values_list("holder_id", flat=True)
