"""Tests of errands: what web asks a worker to do in a cluster, and how the answer comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone, translation

from accounts.errors import Conflict
from clusters.errands import enqueue, running
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.models import Errand

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setattr(running, "_works", found)
    return found


@pytest.fixture
def web(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make this process web, and let a worker do what is enqueued."""
    settings.ROLE = "web"
    workers: list[threading.Thread] = []

    def work(errand_id: UUID) -> None:
        running.run(errand_id)
        connection.close()

    def run(errand_id: UUID) -> None:
        workers.append(threading.Thread(target=work, args=[errand_id]))
        transaction.on_commit(workers[-1].start)

    monkeypatch.setattr(enqueue, "run", run)
    yield
    for each in workers:
        each.join(10)


def raises(error: Exception) -> Any:
    def work() -> None:
        raise error

    return work


def test_a_part_with_an_account_does_it_itself(works: dict[str, Any]) -> None:
    works["sum"] = lambda a, b: [a + b]
    assert running.ask("sum", a=1, b=2) == [3]
    assert not Errand.objects.exists()


def test_web_gets_the_workers_answer_in_its_own_language(works: dict[str, Any], web: None) -> None:
    works["ask"] = lambda word: [word, translation.get_language(), threading.current_thread().name]
    with translation.override("ko"):
        word, language, thread = running.ask("ask", word="x")
    assert (word, language) == ("x", "ko") and thread != threading.current_thread().name
    assert not Errand.objects.exists()  # arguments may hold a kubeconfig


def test_what_it_raises_reaches_web(works: dict[str, Any], web: None) -> None:
    works |= {
        "refuse": raises(Conflict("taken", "It is taken.", "Wait.")),
        "forbid": raises(ClusterRefused(403, "Forbidden", "no right")),
        "fail": raises(ValueError("a secret")),
    }
    with pytest.raises(Conflict) as refusal:
        running.ask("refuse")
    assert (refusal.value.code, refusal.value.hint) == ("taken", "Wait.")
    with pytest.raises(ClusterRefused) as refused:
        running.ask("forbid")
    assert (refused.value.status, refused.value.message) == (403, "no right")
    with pytest.raises(ClusterUnavailable) as failed:
        running.ask("fail")
    assert "secret" not in str(failed.value)


def test_without_a_worker_nothing_is_done_later(
    works: dict[str, Any], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[UUID] = []
    settings.ROLE = "web"
    monkeypatch.setattr(enqueue, "run", asked.append)
    monkeypatch.setattr(running, "BEGUN_WITHIN_SECONDS", 0.01)
    works["late"] = raises(AssertionError())
    with pytest.raises(running.NoAnswer) as silent:
        running.ask("late")
    assert running.conflict(silent.value).code == "worker_silent"  # the cluster rejected nothing
    running.run(asked[0])
    assert not Errand.objects.exists()


def test_an_errand_whose_row_is_gone_is_waited_for_no_longer(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ROLE = "web"
    monkeypatch.setattr(running, "BEGUN_WITHIN_SECONDS", 0.0)
    monkeypatch.setattr(enqueue, "run", lambda pk: transaction.on_commit(Errand.objects.filter(pk=pk).delete))
    with pytest.raises(running.NoAnswer):
        running.ask("lost")


def test_old_errands_are_deleted_by_the_databases_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    old = timezone.now() - running.KEPT * 2
    Errand.objects.create(name="old", arguments={"kubeconfig": "x"}, made_at=old)
    live = Errand.objects.create(name="live", arguments={})
    with monkeypatch.context() as there:
        there.setattr(timezone, "now", lambda: datetime.now(UTC) + running.KEPT * 2)
        running.forget_old()
    assert list(Errand.objects.all()) == [live]


def test_an_errand_is_done_once(works: dict[str, Any]) -> None:
    done: list[str] = []
    row = Errand.objects.create(name="do", arguments={})
    works["do"] = lambda: done.append("once")
    running.run(row.pk)
    running.run(row.pk)
    assert done == ["once"]
