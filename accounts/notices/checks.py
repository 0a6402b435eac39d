"""Check for `manage.py check --deploy`: warn if no mail can be sent."""

from __future__ import annotations

from typing import Any

from django.core import checks

from accounts.notices.preferences import mail_is_configured


def mail_is_set_up(**_: Any) -> list[checks.CheckMessage]:
    if mail_is_configured():
        return []
    return [
        checks.Warning(
            "No mail is sent: people hear of failures and stops only while they look.",
            hint="Set BERTH_EMAIL_URL, such as smtp+tls://user:password@mail.example.org:587, and BERTH_MAIL_FROM.",
            id="accounts.W001",
        )
    ]
