"""The words of a notice, made when it is read: by the room that knows its subject, in the reader's language.

A room registers one function for its subject. The function returns no words if nobody should be notified any more:
the person has lost access, or the notice no longer holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone, translation

from accounts.models import User
from accounts.notices.models import Notice


@dataclass(frozen=True, kw_only=True)
class Words:
    """A title that is clear by itself, what happened, what to do, and the path of the page to open."""

    title: str
    text: str
    hint: str = ""
    path: str
    action: str
    # The notice no longer holds: it stays in the list, but is not sent or shown as a notification.
    is_past: bool = False


Describe = Callable[[User, Sequence[Notice]], Mapping[UUID, Words]]
_rooms: dict[str, Describe] = {}


def register(subject: str, describe: Describe) -> None:
    _rooms[subject] = describe


def of(user: User, notices: Sequence[Notice]) -> dict[UUID, Words]:
    """Return the words for this person by notice. Notices that they may not or need not read are left out."""
    by_subject: dict[str, list[Notice]] = defaultdict(list)
    for notice in notices:
        by_subject[notice.subject].append(notice)
    found: dict[UUID, Words] = {}
    for subject, rows in by_subject.items():
        if user.is_active and (describe := _rooms.get(subject)) is not None:
            found |= describe(user, rows)
    return found


@contextmanager
def read_by(user: User) -> Iterator[None]:
    """Use the person's language and time zone, for texts made outside of their own requests."""
    language = user.language if user.language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
    zone = ZoneInfo(user.time_zone) if user.time_zone else timezone.get_default_timezone()
    with translation.override(language), timezone.override(zone):
        yield
