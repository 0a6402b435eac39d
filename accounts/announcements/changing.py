"""Use cases of announcements: announce, and end at once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.announcements.models import Announcement
from accounts.errors import Invalid, NotThere
from accounts.locks import locked
from accounts.trail import audit


def announce(actor: Actor, **values: Any) -> Announcement:
    """Create an announcement. Raise Invalid with the faulty fields."""
    actor.require_admin()
    announcement = Announcement(**values)
    _check(announcement)
    with transaction.atomic():
        announcement.save(force_insert=True)
        audit.record(actor, "announcement.create", target=announcement, data={"name": announcement.text})
    return announcement


def change(actor: Actor, announcement_id: UUID, **values: Any) -> Announcement:
    """Change an announcement, shown or not. Raise Invalid with the faulty fields."""
    actor.require_admin()
    with transaction.atomic():
        row = _locked(announcement_id)
        changed = {name: value for name, value in values.items() if getattr(row, name) != value}
        for name, value in changed.items():
            setattr(row, name, value)
        _check(row)
        if changed:
            row.save(update_fields=list(changed))
            data = {"name": row.text, "fields": sorted(changed)}
            audit.record(actor, "announcement.change", target=row, data=data)
    return row


def end(actor: Actor, announcement_id: UUID) -> bool:
    """End an announcement now, and its maintenance. It stays on record. Return False if it had ended already.

    One that was never shown is deleted.
    """
    actor.require_admin()
    with transaction.atomic():
        row = _locked(announcement_id)
        now = timezone.now()
        if row.shown_until and row.shown_until <= now:
            return False
        audit.record(actor, "announcement.end", target=row, data={"name": row.text})
        if row.shown_from >= now:
            row.delete()
        else:
            Announcement.objects.filter(pk=row.pk).update(shown_until=now)
    return True


def _locked(announcement_id: UUID) -> Announcement:
    row = locked(Announcement.objects.filter(pk=announcement_id)).first()
    if row is None:
        raise NotThere("not_found", _("There is no such announcement."), _("Look in the list."))
    return row


def _check(announcement: Announcement) -> None:
    try:
        announcement.full_clean()
    except ValidationError as error:
        text = _("Some fields are not valid.")
        fields = {name: list(texts) for name, texts in error.message_dict.items()}
        raise Invalid("invalid", text, _("Correct the named fields."), fields=fields) from None
