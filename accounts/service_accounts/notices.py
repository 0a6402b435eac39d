"""Notices to a tenant's owners: a service account stopped working, because nobody answers for it any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.locks import for_change
from accounts.models import Role, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words
from accounts.service_accounts.answering import accounts
from accounts.service_accounts.changing import visible

SUBJECT = "service-account"


def on_access_changed(*, users: set[User], **_: Any) -> None:
    """Notify the owners of service accounts that stopped working, once until they work again."""
    changed = User.objects.filter(Q(pk__in=[user.pk for user in users]) | Q(responsible__in=users))
    for account in accounts(changed).select_related("responsible"):
        if account.works:
            for_change(Notice.objects.filter(subject=SUBJECT, subject_id=account.pk)).delete()
            continue
        owners = User.objects.filter(
            memberships__tenant=account.service_of_id, memberships__role=Role.OWNER, service_of=None
        )
        notify(
            Kind.SERVICE,
            list(owners),
            subject=SUBJECT,
            subject_id=account.pk,
            key=f"{SUBJECT} {account.pk}",
            data={"by": account.responsible.username if account.responsible else ""},
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
