"""Notices of a volume: its data is in danger (for its owner and all admins), it is nearly full, or has a new owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Actor
from accounts.models import User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words

from . import access, problems
from .models import Volume

SUBJECT = "volume"
# How a volume comes to a new owner.
RECEIVED = {
    "handed_over": problems.Line(
        gettext_lazy("%(by)s handed it to you."), gettext_lazy("It counts towards your storage now.")
    ),
    "adopted": problems.Line(
        gettext_lazy("%(by)s adopted it for you: it was in the cluster already."),
        gettext_lazy(
            "It is read-only until an inspection has looked at it and you have confirmed what is in it."
        ),
    ),
}


def alarm(volume: Volume, code: str, data: Mapping[str, Any], *, key: str = "") -> None:
    """Notify owner and admins that the volume's data is in danger, in the transaction that found it; once per key."""
    admins = User.objects.filter(is_staff=True, is_active=True)
    notify(
        Kind.HEALTH,
        list({volume.owner, *admins}),
        subject=SUBJECT,
        subject_id=volume.pk,
        key=f"{SUBJECT} {volume.pk} {code} {key or timezone.now().isoformat()}",
        data={"code": code, "data": dict(data)},
    )


def warn_full(volume: Volume) -> None:
    """Notify the owner that the volume is nearly full, in the transaction that found it."""
    notify(
        Kind.HEALTH,
        [volume.owner],
        subject=SUBJECT,
        subject_id=volume.pk,
        key=f"{SUBJECT} {volume.pk} {volume.fullness} {timezone.now().isoformat()}",
        data={"code": volume.fullness, "data": problems.data_of_use(volume)},
    )


def received(actor: Actor, volume: Volume, code: str) -> None:
    """Notify the new owner of a volume, in the transaction that made them its owner."""
    if volume.owner_id == actor.user.pk:
        return
    notify(
        Kind.VOLUME,
        [volume.owner],
        subject=SUBJECT,
        subject_id=volume.pk,
        key=f"{SUBJECT} {volume.pk} {code} {timezone.now().isoformat()}",
        data={"code": code, "data": {"by": actor.user.get_username()}},
    )


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """Words by notice, for volumes that the person may still see."""
    ids = {notice.subject_id for notice in notices}
    volumes = access.visible(Actor(user)).in_bulk(ids)
    return {
        notice.pk: _words(notice, volumes[notice.subject_id])
        for notice in notices
        if notice.subject_id in volumes
    }


def _words(notice: Notice, volume: Volume) -> Words:
    code, data = notice.data["code"], notice.data["data"]
    page = {"path": reverse("volume", args=[volume.pk]), "action": _("Open its page")}
    if line := RECEIVED.get(code):
        return Words(
            title=_("“%(name)s” is your volume now") % {"name": volume.name},
            text=str(line.sentence) % data,
            hint=str(line.hint),
            is_past=volume.owner_id != notice.user_id,
            **page,
        )
    return Words(
        title=_title(code) % {"name": volume.name},
        text=problems.sentence(code, data),
        hint=problems.hint(code, data),
        **page,
        is_past=code not in (volume.problem, volume.fullness, "volume_formatting"),
    )


def _title(code: str) -> str:
    if code in problems.OF_USE:
        return _("“%(name)s” is nearly full")
    return _("“%(name)s”: a problem with its data")
