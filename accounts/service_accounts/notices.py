"""Notices to a tenant's owners: a service account stopped working, because nobody answers for it any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.models import Membership, Role, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words
from accounts.service_accounts.changing import visible

SUBJECT = "service-account"


def on_access_changed(*, users: set[User], **_: Any) -> None:
    """Notify the owners of service accounts that stopped working, once each time."""
    ids = [user.pk for user in users if user.service_of_id is not None]
    for row in Membership.objects.filter(user__in=ids, lapsed_at__isnull=False).select_related(
        "user__responsible"
    ):
        owners = User.objects.filter(
            memberships__tenant=row.tenant_id, memberships__role=Role.OWNER, service_of=None
        )
        by = row.user.responsible
        assert row.lapsed_at is not None
        notify(
            Kind.SERVICE,
            list(owners),
            subject=SUBJECT,
            subject_id=row.user_id,
            key=f"{SUBJECT} {row.user_id} {row.lapsed_at.isoformat()}",
            data={"by": by.username if by else ""},
        )


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """Words by notice, for accounts of tenants that the person still owns."""
    found = visible(Actor(user)).in_bulk({notice.subject_id for notice in notices})
    return {
        notice.pk: _words(notice, found[notice.subject_id])
        for notice in notices
        if notice.subject_id in found
    }


def _words(notice: Notice, account: Any) -> Words:
    return Words(
        title=_("The service account “%(name)s” stopped working") % {"name": account.username},
        text=_(
            "%(person)s answered for it, and is no longer an active owner of %(tenant)s. Its tokens are refused."
        )
        % {"person": notice.data["by"] or "–", "tenant": account.service_of.name},
        hint=_(
            "Take it over and create new tokens if it is still needed, or stop what it runs and delete it. "
            "What it runs continues until you stop it."
        ),
        path=reverse("service-account", args=[account.service_of.slug, account.pk]),
        action=_("Open its page"),
        is_past=account.works,
    )
