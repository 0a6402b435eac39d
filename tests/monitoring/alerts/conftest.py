"""Stage of the tests of alerts: the cast, sources that a test sets, and a mail server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.shared.servers.receiver import Receiver, receiver
from tests.shared.servers.smtp import MailServer, mail_server

if TYPE_CHECKING:
    from tests.monitoring.alerts.stage import Firings


@pytest.fixture
def firings(monkeypatch: pytest.MonkeyPatch) -> Firings:
    """All that fires: what the test puts there."""
    from monitoring.alerts import sources
    from tests.monitoring.alerts.stage import Firings

    found = Firings()
    monkeypatch.setattr(sources, "_sources", {"test": lambda: list(found.values())})
    return found


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tasks that were enqueued: no worker runs here."""
    from monitoring import enqueue

    found: list[str] = []
    monkeypatch.setattr(enqueue, "async_task", lambda name, *_args, **_kwargs: found.append(name))
    return found


@pytest.fixture(autouse=True)
def without_mail(settings: Any) -> None:
    """No mail server, unless a test asks for one."""
    from accounts.notices.preferences import NO_MAIL_BACKEND

    settings.EMAIL_BACKEND = NO_MAIL_BACKEND


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def mailing(mail: MailServer, without_mail: None, settings: Any) -> MailServer:
    """A mail server that Berth is set to use."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", mail.port, 5
    return mail


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as server:
        yield server
