"""A notice as a mail: plain text and simple HTML, in the reader's language and time zone.

It holds no secret and lets nobody in: its links lead to pages that ask who is there. The one exception can only turn
mails of one kind off (RFC 8058: a mail program may do that with one click).
"""

from __future__ import annotations

from email.utils import format_datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language

from accounts.models import User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.preferences import unsubscribe_url
from accounts.notices.words import Words


def compose(
    user: User, notice: Notice, words: Words, connection: BaseEmailBackend | None
) -> EmailMultiAlternatives:
    """Inside `words.read_by`. The same notice has the same Message-ID: sent twice, it is still one."""
    kind = Kind(notice.kind)
    base = settings.BASE_URL.rstrip("/")
    unsubscribe = unsubscribe_url(user, kind)
    context = {
        "words": words,
        "kind": kind,
        "at": timezone.localtime(notice.at),
        "url": base + words.path,
        "unsubscribe": unsubscribe,
        "settings": base + reverse("notices-settings"),
        "language": get_language(),
    }
    message = EmailMultiAlternatives(
        subject=" ".join(words.title.split()),
        body=render_to_string("mail/notice.txt", context),
        to=[user.email],
        connection=connection,
        headers={
            "Message-ID": f"<{notice.pk}@{urlsplit(base).hostname}>",
            "Date": format_datetime(notice.at),
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{unsubscribe}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )
    message.attach_alternative(render_to_string("mail/notice.html", context), "text/html")
    return message
