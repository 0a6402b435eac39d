"""Activating and deactivating people, with a preview of the consequences for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
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
from jobs.models import Job
from quotas.models import Claim
from workspaces.models import Workspace


@dataclass(frozen=True)
class Belongings:
    """Names of a person's possessions that depend on their access."""

    tokens: list[str]
    keys: list[str]
    tenants: list[str]
    work: list[str]  # workspaces and jobs that run or wait


def belongings(people: Sequence[User]) -> list[Belongings]:
    """Belongings of each person, in order, in five queries whatever their number."""
    usable = APIToken.objects.filter(user__in=people, revoked_at=None, expires_at__gt=timezone.now())
    tokens = by_person((token.user_id, token.name) for token in usable)
    keys = by_person((key.user_id, key.name) for key in SSHKey.objects.filter(user__in=people))
    joined = Membership.objects.filter(user__in=people).select_related("tenant")
    tenants = by_person((row.user_id, row.tenant.name) for row in joined)
    live = Workspace.objects.filter(owner__in=people, pk__in=live_holders()).select_related("tenant")
    jobs = Job.objects.filter(owner__in=people, ended_at=None, deleted_at=None).select_related("tenant")
    work = by_person(
        (row.owner_id, _("%(workspace)s in %(tenant)s") % {"workspace": row.name, "tenant": row.tenant.name})
        for row in [*live.order_by("name"), *jobs.order_by("name")]
    )
    ids = [person.pk for person in people]
    return [Belongings(tokens[pk], keys[pk], tenants[pk], work[pk]) for pk in ids]


class ChangesOfAccess(Previewed[User]):
    def effects(self, actor: Actor, rows: Sequence[User]) -> list[Effect]:
        found = zip(rows, belongings(rows), strict=True)
        return [self.effect(actor, person, theirs) for person, theirs in found]

    def effect(self, actor: Actor, person: User, theirs: Belongings) -> Effect:
        raise NotImplementedError


class Deactivate(ChangesOfAccess):
    name = "deactivate"
    short_description = gettext_lazy("Deactivate …")
    title = gettext_lazy("Deactivate people")
    button = gettext_lazy("Deactivate")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _(
                "Their sessions and tokens end at once. Open pages and connections through Berth close within "
                "seconds, JupyterLab and SSH at a workspace's own address within two minutes. Nothing is deleted."
            ),
            _(
                "Running workspaces and jobs, and the programs in them, go on, and jobs start what is left of them: "
                "stop them in the lists of workspaces and jobs, or leave that to the tenant's owners."
            ),
        ]

    def effect(self, actor: Actor, person: User, theirs: Belongings) -> Effect:
        pk, whom = str(person.pk), person.username
        if not person.is_active:
            return Effect(pk, whom, refused=_("They are deactivated already."))
        if person.pk == actor.user.pk:
            return Effect(pk, whom, refused=_("You cannot remove your own access."))
        return Effect(
            pk,
            whom,
            (
                listed(_("Workspaces and jobs that continue to run or wait: %(names)s."), theirs.work)
                or _("They have no running or waiting workspaces or jobs."),
                listed(_("Tokens that stop working: %(names)s."), theirs.tokens)
                or _("They have no token that works."),
                listed(_("SSH keys that stop working: %(names)s."), theirs.keys)
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

    def effect(self, actor: Actor, person: User, theirs: Belongings) -> Effect:
        pk, whom = str(person.pk), person.username
        if person.is_active:
            return Effect(pk, whom, refused=_("They are active."))
        told = (
            _("They sign in as before."),
            listed(_("Tenants they are in: %(names)s."), theirs.tenants) or _("They are in no tenant."),
            listed(_("Tokens that work again: %(names)s."), theirs.tokens),
            listed(_("SSH keys that work again: %(names)s."), theirs.keys),
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
    """Return the sentence; empty if there is no name for it."""
    return sentence % {"names": _(", ").join(names)} if names else ""


def live_holders() -> QuerySet[Claim, UUID]:
    return Claim.objects.exclude(state=Claim.State.RELEASED).values_list("holder_id", flat=True)
