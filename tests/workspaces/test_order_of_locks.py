"""Two at once never wait for each other in a ring: who comes second waits, and then both have done their part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction

from accounts import audit, ssh_keys
from accounts.models import SSHKey
from tests.accounts.people import KEY
from tests.cast import Cast
from tests.workspaces.made import make_workspace
from workspaces.live import changing

pytestmark = [pytest.mark.django_db(transaction=True)]

WAITS_FOR_ME = (
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
)
Beside = Callable[[Callable[[], Any]], Future[Any]]


@pytest.fixture
def beside() -> Iterator[Beside]:
    """Begins something on a connection of its own; returns when that is done, or waits for what this one holds."""
    with ThreadPoolExecutor(1) as threads:

        def begin(work: Callable[[], Any]) -> Future[Any]:
            running = threads.submit(on_its_own, work)
            deadline = time.monotonic() + 30
            while not running.done() and not waits_for_me():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            return running

        yield begin


def on_its_own(work: Callable[[], Any]) -> Any:
    try:
        return work()
    finally:
        connections.close_all()


def waits_for_me() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS_FOR_ME)
        return bool(cursor.fetchone()[0])


def test_a_key_is_added_while_a_workspace_of_its_person_is_changed(cast: Cast, beside: Beside) -> None:
    """The change ends with a line of the trail, which points to its person."""
    workspace = make_workspace(cast, cast.alice)
    with transaction.atomic():
        with changing(workspace.pk) as row:
            row.node = "gpu-2"
        audit.record(cast.alice, "workspace.change", target=row)
        adding = beside(lambda: ssh_keys.add(cast.alice, "laptop", KEY))
    adding.result()
    assert SSHKey.objects.count() == 1
