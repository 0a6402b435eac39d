"""Real processes that send at once against real servers, and one that is killed with SIGKILL in between."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connections

from monitoring.alerts import routes, sending
from monitoring.models import AlertDelivery
from portal.up.plan import REPOSITORY
from tests.cast import Cast
from tests.monitoring.alerts.stage import Firings, later, look
from tests.shared.servers.receiver import Receiver
from tests.shared.servers.smtp import MailServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

WORKER = """
import time
from django.db import close_old_connections
from monitoring.alerts import posting, sending
{before}
until = time.monotonic() + {seconds}
while time.monotonic() < until:
    sending.send_due()
    time.sleep(0.1)
"""
# Dies, or rather stands still, after it took a message and before it sends it.
HANGS = """
def hangs(*_, **__):
    print("took it", flush=True)
    time.sleep(600)
posting.post = sending._send_mail = hangs
"""


@contextmanager
def worker(mail: MailServer, before: str = "", seconds: float = 60) -> Iterator[subprocess.Popen[str]]:
    database = connections["default"].settings_dict
    url = f"postgres://{database['USER']}@/{database['NAME']}?host={database['HOST']}"
    environment = {
        **os.environ,
        "BERTH_ROLE": "worker",
        "DATABASE_URL": url,
        "BERTH_EMAIL_URL": f"smtp://127.0.0.1:{mail.port}",
    }
    code = WORKER.format(before=before, seconds=seconds)
    process = subprocess.Popen(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


def in_a_session_of_its_own(do: Callable[[], None]) -> None:
    try:
        do()
    finally:
        connections.close_all()


def until_all_are_sent(within: float = 60) -> None:
    deadline = time.monotonic() + within
    while AlertDelivery.objects.exclude(state="sent").exists():
        assert time.monotonic() < deadline, list(AlertDelivery.objects.values())
        time.sleep(0.1)


def make_alerts(cast: Cast, firings: Firings, hooks: int, hook: Receiver) -> None:
    for number in range(hooks):
        address = f"{hook.url}&route={number}"
        routes.create(cast.admin, {"name": f"hook-{number}", "way": "webhook", "address": address})
    firings.add(1)
    firings.add(2, "gpu_lost")
    look()
    later(timedelta(seconds=6))


def test_many_messages_go_once_each_by_two_workers(
    cast: Cast, firings: Firings, mailing: MailServer, hook: Receiver
) -> None:
    make_alerts(cast, firings, 12, hook)
    with worker(mailing), worker(mailing):
        until_all_are_sent()
        time.sleep(1)
    assert set(Counter(got.path for got in hook.got).values()) == {1} and len(hook.got) == 12
    assert len(mailing.messages) == 1


def test_two_that_take_at_once_do_not_part_what_goes_together(
    cast: Cast, firings: Firings, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_alerts(cast, firings, 1, hook)
    AlertDelivery.objects.exclude(route__name="hook-0").delete()
    taken: list[UUID | None] = []
    other = threading.Thread(target=in_a_session_of_its_own, args=(lambda: taken.append(sending.take()),))

    def name_for_the_batch() -> UUID:  # the first row is chosen, the others are not taken yet
        if not other.ident:
            other.start()
            other.join(1)
        return UUID(int=len(taken) + 1)

    monkeypatch.setattr(uuid, "uuid4", name_for_the_batch)
    first = sending.take()
    other.join(30)
    assert first and taken == [None]
    assert set(AlertDelivery.objects.values_list("batch", "attempts")) == {(first, 1)}


def test_a_worker_that_is_killed_before_it_sent_leaves_the_message_to_another(
    cast: Cast, firings: Firings, mailing: MailServer, hook: Receiver
) -> None:
    make_alerts(cast, firings, 1, hook)
    with worker(mailing, HANGS) as first, worker(mailing, HANGS) as second:
        for process in (first, second):  # one took the webhook, the other the mail
            assert process.stdout and process.stdout.readline() == "took it\n"
        began = time.monotonic()
        for process in (first, second):
            process.kill()
            process.wait()
        with worker(mailing):
            until_all_are_sent()
            assert time.monotonic() - began < 40
            time.sleep(1)
    assert len(hook.got) == len(mailing.messages) == 1
    assert len(hook.got[0].json["alerts"]) == 2


def test_a_message_whose_answer_a_killed_worker_did_not_note_goes_again_with_its_id(
    cast: Cast, firings: Firings, mailing: MailServer, hook: Receiver
) -> None:
    hook.holds = threading.Event()
    make_alerts(cast, firings, 1, hook)
    with worker(mailing) as first:
        deadline = time.monotonic() + 60
        while not hook.got:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        first.kill()
        first.wait()
        hook.holds.set()
        with worker(mailing):
            until_all_are_sent()
    assert len(hook.got) == 2 and len({got.headers["webhook-id"] for got in hook.got}) == 1
