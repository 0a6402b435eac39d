"""The words of a notice, made when somebody reads them: by the room that knows its subject, in the reader's language.

A room registers one function for its subject. It also decides whether there is still something to tell: for whoever
has lost access, and for what is no longer so, it returns no words, and nobody hears anything.
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
    """A title that stands alone, what happened, what to do, and the page where it goes on (a path of ours)."""

    title: str
    text: str
    hint: str = ""
    path: str
    action: str
    # What a notice says is no longer so: it stays in the list, but nobody is called for it.
    is_past: bool = False


Describe = Callable[[User, Sequence[Notice]], Mapping[UUID, Words]]
_rooms: dict[str, Describe] = {}


def register(subject: str, describe: Describe) -> None:
    _rooms[subject] = describe


def of(user: User, notices: Sequence[Notice]) -> dict[UUID, Words]:
    """The words of each of these notices to this person; what may not or need not be told is missing."""
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
    """In this person's language and time zone: for what is made outside of a request of theirs."""
    language = user.language if user.language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
    zone = ZoneInfo(user.time_zone) if user.time_zone else timezone.get_default_timezone()
    with translation.override(language), timezone.override(zone):
        yield
