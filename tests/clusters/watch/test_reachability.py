"""Tests of the probe of clusters: one error is no outage, two are; pages are notified once."""

from __future__ import annotations

import pytest
from django.utils import timezone

from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.models import Cluster
from clusters.watch import reachability
from clusters.watch.announcements import Announcements
from clusters.watch.reachability import Probe, pause_after

pytestmark = [pytest.mark.django_db]
AWAY = ClusterUnavailable("no answer in time")
REFUSED = ClusterRefused(403, "Forbidden", "nodes are forbidden")


class Answers:
    """Answers of a cluster: per request, an error to raise, or None."""

    def __init__(self, *answers: Exception | None) -> None:
        self.left = list(answers)

    def ask_for_little(self, *, within_seconds: float) -> None:
        if (answer := self.left.pop(0)) is not None:
            raise answer


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="main", name="Main")


@pytest.mark.parametrize(
    ("answers", "away"),
    [
        ([None], False),
        ([REFUSED], False),
        ([AWAY, None], False),
        ([AWAY, AWAY], True),
    ],
    ids=["answers", "refuses", "one error", "two errors"],
)
def test_two_errors_are_an_outage(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, answers: list[Exception | None], away: bool
) -> None:
    monkeypatch.setattr(reachability, "SECOND_TRY_AFTER_SECONDS", 0)
    asked = Answers(*answers)
    monkeypatch.setattr(reachability, "api_for", lambda cluster: asked)
    Probe(cluster, Announcements()).step()
    cluster.refresh_from_db()
    assert (cluster.unreachable_since is not None) == away
    assert asked.left == []


def test_an_outage_is_announced_at_its_start_and_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachability, "SECOND_TRY_AFTER_SECONDS", 0)
    asked = Answers(None, AWAY, AWAY, AWAY, None, None)
    monkeypatch.setattr(reachability, "api_for", lambda cluster: asked)
    announcements = Announcements()
    probe = Probe(cluster, announcements)
    heard = []
    while asked.left:
        probe.step()
        announced = [announcements._pending.pop(key)[1] for key in list(announcements._pending)]
        heard.append(announced)
    assert heard == [[], [cluster], [], [cluster], []]
    cluster.refresh_from_db()
    assert (cluster.unreachable_since, cluster.unreachable_reason) == (None, "")


@pytest.mark.django_db(transaction=True)
def test_a_fault_does_not_end_the_thread(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "PAUSE_SECONDS", 0)
    Cluster.objects.update(unreachable_since=timezone.now(), unreachable_reason="away")
    probe = Probe(cluster, Announcements())
    answers = iter([ValueError("a fault"), None])

    class Odd:
        def ask_for_little(self, *, within_seconds: float) -> None:
            if (answer := next(answers)) is not None:
                raise answer
            probe.stopped.set()

    monkeypatch.setattr(reachability, "api_for", lambda cluster: Odd())
    probe.start()
    probe.join(20)
    assert not probe.is_alive()
    cluster.refresh_from_db()
    assert cluster.unreachable_since is None


def test_a_server_is_asked_again_when_it_said_so_but_not_only_in_an_hour() -> None:
    assert pause_after(None) == pause_after(AWAY) == pause_after(busy(1)) == 5
    assert pause_after(busy(12)) == 12
    assert pause_after(busy(3600)) == 30


def busy(seconds: float) -> ClusterUnavailable:
    return ClusterUnavailable("come back later", retry_after_seconds=seconds)
