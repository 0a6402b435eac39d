"""Notices as a mail: plain text and simple HTML, in the reader's language and time zone.

A mail holds no secret and signs nobody in: its links lead to pages that require a sign-in. The one exception is the
link that turns mails of one kind off (RFC 8058: a mail program may do that with one click).
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import get_language, ngettext

from accounts.models import User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.preferences import unsubscribe_url
from accounts.notices.words import Words


def compose(
    user: User, told: Sequence[tuple[Notice, Words]], connection: BaseEmailBackend | None
) -> EmailMultiAlternatives:
    """Return one mail for notices of one kind. Call it inside `words.read_by`. If the mail is sent twice, the
    Message-ID is the same, so that it still counts as one mail."""
    first, words = told[0]
    kind = Kind(first.kind)
    base = settings.BASE_URL.rstrip("/")
    unsubscribe = unsubscribe_url(user, kind)
    context = {
        "told": [(notice, words, base + words.path) for notice, words in told],
        "kind": kind,
        "unsubscribe": unsubscribe,
        "settings": base + reverse("notices-settings"),
        "language": get_language(),
    }
    message = EmailMultiAlternatives(
        subject=" ".join(_subject(words.title, len(told) - 1).split()),
        body=render_to_string("mail/notice.txt", context),
        to=[user.email],
        connection=connection,
        headers={
            "Message-ID": f"<{first.pk}@{urlsplit(base).hostname}>",
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{unsubscribe}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )
    message.attach_alternative(render_to_string("mail/notice.html", context), "text/html")
    return message


def _subject(title: str, others: int) -> str:
    if not others:
        return title
    words = {"title": title, "count": others}
    return ngettext("%(title)s, and %(count)d more", "%(title)s, and %(count)d more", others) % words
