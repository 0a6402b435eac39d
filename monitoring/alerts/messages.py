"""Texts of a message: what it says of each alert, in the reader's language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from monitoring.alerts.representation import alerts_json
from monitoring.alerts.ways import Item, Message
from monitoring.models import Alert, AlertDelivery, Severity

MOST_NAMED = 5
Occasion = AlertDelivery.Occasion


def compose(batch: Sequence[AlertDelivery], message_id: UUID) -> Message:
    """Return the message of deliveries that go together, in the active language."""
    rows = [delivery for delivery in batch if delivery.alert is not None]
    told = {one["id"]: one for one in alerts_json([row.alert for row in rows if row.alert])}
    items = [_item(row.alert, row.occasion, told[row.alert_id]) for row in rows if row.alert]
    if not items:  # a test of the route
        items = [_test()]
    title = items[0].title
    if more := len(items) - 1:
        title += " " + ngettext("(and %(count)d more)", "(and %(count)d more)", more) % {"count": more}
    return Message(
        message_id, int(timezone.now().timestamp()), title, items, get_language() or settings.LANGUAGE_CODE
    )


def _base() -> str:
    return str(settings.BASE_URL).rstrip("/")


def _test() -> Item:
    return Item(
        _("Test of an alert route"),
        _("This is a test. Alerts of Berth arrive here."),
        "",
        _base() + reverse("alerts"),
        {"occasion": "test"},
    )


def _item(alert: Alert, occasion: str, told: dict[str, Any]) -> Item:
    sentence = told["message"]
    severity = Severity(alert.severity).label
    heads = {
        Occasion.FIRING: _("%(severity)s: %(what)s"),
        Occasion.ESCALATED: _("Not acknowledged, %(severity)s: %(what)s"),
        Occasion.RESOLVED: _("Resolved: %(what)s"),
    }
    title = heads[Occasion(occasion)] % {"severity": str(severity).capitalize(), "what": sentence}
    is_over = occasion == Occasion.RESOLVED
    facts = {
        "occasion": occasion,
        **{name: told[name] for name in ("code", "severity", "state", "cluster", "pools", "tenant")},
        **{name: told[name] for name in ("count", "still_firing", "names")},
        "alert": str(alert.pk),
        "since": alert.since.isoformat(),
        "resolved_at": alert.resolved_at.isoformat() if alert.resolved_at else None,
    }
    url = _base() + reverse("alert", args=[alert.pk])
    return Item(title, _where(alert, told), "" if is_over else told["hint"], url, facts)


def _where(alert: Alert, told: dict[str, Any]) -> str:
    """Return the names of the first members, how many more there are, and the cluster."""
    names = told["names"][:MOST_NAMED]
    text = _(", ").join(names)
    if (more := alert.count - len(names)) > 0 and names:
        text += " " + ngettext("and %(count)d more", "and %(count)d more", more) % {"count": more}
    if told["cluster"]:
        text += f" ({told['cluster']})" if text else told["cluster"]
    return text or _("Berth itself")


def mail(message: Message, to: str, connection: BaseEmailBackend) -> EmailMultiAlternatives:
    """Return the message as a mail. If it is sent twice, the Message-ID is the same."""
    context = {"message": message, "language": message.language, "routes": _base() + reverse("alerts")}
    found = EmailMultiAlternatives(
        subject=" ".join(message.title.split())[:200],
        body=render_to_string("mail/alert.txt", context),
        to=[to],
        connection=connection,
        headers={
            "Message-ID": f"<{message.id}@{urlsplit(_base()).hostname}>",
            "Auto-Submitted": "auto-generated",
        },
    )
    found.attach_alternative(render_to_string("mail/alert.html", context), "text/html")
    return found
