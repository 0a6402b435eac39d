"""Notification preferences per person and kind, set on their page or by a mail's link without signing in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.urls import reverse

from accounts.access import Actor, not_there
from accounts.locks import for_change
from accounts.models import User
from accounts.notices.kinds import DEFAULTS, Kind, Ways
from accounts.notices.models import Notice, NoticePreference
from accounts.trail import audit

SALT = "berth.notices.unsubscribe"
NO_MAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"


def mail_is_configured() -> bool:
    return bool(settings.EMAIL_BACKEND != NO_MAIL_BACKEND)


def ways_of(people: Iterable[User], kind: Kind) -> dict[UUID, Ways]:
    """Ways that each of these people wants for this kind."""
    chosen = NoticePreference.objects.filter(user__in=people, kind=kind)
    wanted = {row.user_id: Ways(row.in_berth, row.by_mail) for row in chosen}
    return {person.pk: wanted.get(person.pk, DEFAULTS[kind]) for person in people}


def all_ways(user: User) -> dict[Kind, Ways]:
    """Ways that the person wants for every kind, in the order of the kinds."""
    chosen = NoticePreference.objects.filter(user=user)
    return DEFAULTS | {Kind(row.kind): Ways(row.in_berth, row.by_mail) for row in chosen}


def choose(actor: Actor, wanted: Mapping[Kind, Ways]) -> None:
    """Save the person's ways. Waiting mail that is no longer wanted is not sent."""
    with transaction.atomic():
        before = all_ways(actor.user)
        changed = {kind: ways for kind, ways in wanted.items() if before[kind] != ways}
        for kind, ways in changed.items():
            _keep(actor.user, kind, ways)
        if changed:
            audit.record(actor, "notices.choose", target=actor.user, data={"kinds": sorted(changed)})


def _keep(user: User, kind: Kind, ways: Ways) -> None:
    NoticePreference.objects.update_or_create(user=user, kind=kind, defaults=ways._asdict())
    if not ways.by_mail:
        waiting = Notice.objects.filter(user=user, kind=kind, mail=Notice.Mail.WAITING)
        for_change(waiting).update(mail=Notice.Mail.NEEDLESS, mail_due_at=None)


# --- The unsubscribe link in a mail. It can do nothing else, and never expires: mails are read late.


def unsubscribe_url(user: User, kind: Kind) -> str:
    token = signing.dumps([str(user.pk), str(kind)], salt=SALT)
    path = reverse("notices-unsubscribe", args=[token])
    return f"{settings.BASE_URL.rstrip('/')}{path}"


def read_token(token: str) -> tuple[User, Kind]:
    """Return the person and kind of a link's token. Raise NotThere if it is not valid."""
    try:
        user_id, kind = signing.loads(token, salt=SALT)
        return User.objects.get(pk=user_id, is_active=True), Kind(kind)
    except (signing.BadSignature, ValueError, TypeError, User.DoesNotExist):
        raise not_there() from None


def unsubscribe(token: str) -> Kind:
    """Turn off mail of the token's kind, and return the kind. Notices in Berth do not change."""
    user, kind = read_token(token)
    with transaction.atomic():
        ways = all_ways(user)[kind]
        if ways.by_mail:
            _keep(user, kind, ways._replace(by_mail=False))
            audit.record(None, "notices.unsubscribe", target=user, data={"kinds": [kind]})
    return kind
