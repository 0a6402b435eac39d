"""Add a note to a record: what somebody found out, or did about it."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, Invalid
from accounts.locks import locked
from accounts.trail import audit
from monitoring.models import PostMortem, PostMortemNote
from monitoring.models.post_mortems import LONGEST_NOTE, MOST_NOTES

from . import access


def add(actor: Actor, record: PostMortem, text: str) -> PostMortemNote:
    access.require_note(actor, record)
    text = text.strip()
    if not text or len(text) > LONGEST_NOTE:
        problem = _("Write 1 to %(most)d characters.") % {"most": LONGEST_NOTE}
        raise Invalid("invalid", _("The note is not valid."), problem, fields={"text": [problem]})
    with transaction.atomic():
        row = locked(PostMortem.objects.all()).get(pk=record.pk)
        if row.notes.count() >= MOST_NOTES:
            raise Conflict(
                "too_many_notes",
                _("It has %(most)d notes already, the most that one can have.") % {"most": MOST_NOTES},
                _("Link a document of your own in one of them."),
            )
        note = PostMortemNote.objects.create(
            post_mortem=row, author=actor.user, author_name=actor.user.get_username(), text=text
        )
        audit.record(actor, "post_mortem.note", target=record, tenant=record.tenant)
    return note
