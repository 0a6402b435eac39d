"""Tests of the ways in which a watch breaks, and that it resumes by itself."""

from __future__ import annotations

import threading
import time
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.api import Api
from clusters.errors import ClusterUnavailable
from clusters.transport import Json
from clusters.watch.watching import Alive, Backoff, Changed, Expired, Follower, Listed, Lost, Step, event_of
from devcluster.testing.waiting import until
from tests.clusters.stub import EXPIRED, Request, Stub, events, garbage, listed, pod, reset, status


def follower(api: Api, **options: float) -> Follower:
    quick = Backoff(shortest_seconds=0.02, longest_seconds=0.1)
    wait = options.get("read_timeout_seconds", 5)
    return Follower(lambda: api, "Pod", keep=uid_of, backoff=quick, read_timeout_seconds=wait)


def uid_of(body: Json) -> str:
    return str(body["metadata"]["uid"])


def steps(follower: Follower, count: int) -> list[Step]:
    return list(islice(follower.infinite(), count))


def test_it_lists_and_then_watches_from_there(stub: Stub) -> None:
    stub.answers = [listed(pod("a", "3"), version="10")]
    stub.watches = [events(("ADDED", pod("b", "11")), ("DELETED", pod("a", "12")), ends=False)]
    first, second, third = steps(follower(stub.api), 3)
    assert isinstance(first, Listed)
    assert first.found == ["a"]
    assert isinstance(second, Changed)
    assert isinstance(third, Changed)
    assert [second.change, third.change] == ["ADDED", "DELETED"]
    assert stub.requests[1][1]["resourceVersion"] == "10"
    assert stub.requests[1][1]["allowWatchBookmarks"] == "true"


def test_the_next_request_starts_where_the_last_one_ended(stub: Stub) -> None:
    stub.answers = [listed(version="10")]
    stub.watches = [
        events(("MODIFIED", pod("a", "14")), ("BOOKMARK", pod("", "21"))),
        events(("MODIFIED", pod("a", "30")), ends=False),
    ]
    told = steps(follower(stub.api), 5)
    assert [type(step) for step in told] == [Listed, Changed, Alive, Alive, Changed]
    assert stub.methods == ["GET", "WATCH", "WATCH"]
    assert stub.requests[2][1]["resourceVersion"] == "21"


@pytest.mark.parametrize(
    "expired",
    [events(("ERROR", EXPIRED)), status(410, "Expired", "too old resource version")],
    ids=["410 as an event", "410 as the answer"],
)
def test_after_410_all_is_listed_anew(stub: Stub, expired: object) -> None:
    stub.answers = [listed(pod("gone", "3"), pod("stays", "4")), listed(pod("stays", "4"), version="20")]
    stub.watches = [expired, events(ends=False)]  # type: ignore[list-item]
    assert steps(follower(stub.api), 2)[1] == Listed(["stays"], "20")


@pytest.mark.parametrize(
    "failure",
    [events(), garbage, reset, status(429, "TooManyRequests", "", Retry_After="9"), status(503, "", "down")],
    ids=["closed at once", "garbage", "reset", "429", "503"],
)
def test_a_broken_watch_is_reported_and_restarted(stub: Stub, failure: object) -> None:
    stub.answers = [listed()]
    stub.watches = [failure, events(("ADDED", pod("a", "11")), ends=False)]  # type: ignore[list-item]
    told = steps(follower(stub.api), 4)
    assert [type(step) for step in told] == [Listed, Lost, Listed, Changed]


@pytest.mark.slow
def test_one_that_breaks_always_is_asked_less_and_less_often(stub: Stub) -> None:
    stub.answers = [listed()]
    stub.watches = [events()]
    follow = Follower(
        lambda: stub.api, "Pod", backoff=Backoff(shortest_seconds=0.05, longest_seconds=1, jitter=lambda: 1)
    )
    ended = time.monotonic() + 1
    for step in follow.infinite():
        if isinstance(step, Lost) and time.monotonic() > ended:
            break
    assert stub.methods.count("WATCH") <= 7  # 0.05 + 0.1 + 0.2 + 0.4 + 0.8 s


def test_silence_ends_at_the_read_timeout_and_goes_on_without_a_list(stub: Stub) -> None:
    follow = follower(stub.api, read_timeout_seconds=1)

    def silent(request: Request) -> None:
        follow.read_timeout_seconds = 20  # the next one has time to answer
        events(ends=False)(request)

    stub.answers = [listed()]
    stub.watches = [silent, events(("ADDED", pod("a", "11")), ends=False)]
    started = time.monotonic()
    told = steps(follow, 2)
    assert [type(step) for step in told] == [Listed, Changed]  # silence is no sign of life
    assert time.monotonic() - started >= 1
    assert stub.methods == ["GET", "WATCH", "WATCH"]


def test_it_stops_at_once_in_the_middle_of_silence(stub: Stub) -> None:
    stub.answers = [listed()]
    stub.watches = [events(ends=False)]
    follow = follower(stub.api, read_timeout_seconds=30)
    thread = threading.Thread(target=lambda: list(follow.infinite()), daemon=True)
    thread.start()
    until(lambda: "WATCH" in stub.methods)
    follow.stop()
    thread.join(10)
    assert not thread.is_alive()


class TestBackoff:
    def test_it_doubles_up_to_a_limit(self) -> None:
        backoff = Backoff(shortest_seconds=1, longest_seconds=10, jitter=lambda: 1)
        assert [backoff.next_seconds() for _ in range(6)] == [1, 2, 4, 8, 10, 10]

    def test_success_starts_it_over(self) -> None:
        backoff = Backoff(shortest_seconds=1, jitter=lambda: 1)
        backoff.next_seconds()
        backoff.reset()
        assert backoff.next_seconds() == 1

    @given(failures=st.integers(0, 10**6), jitter=st.floats(0, 1, exclude_max=True))
    def test_it_is_never_nothing_and_never_endless(self, failures: int, jitter: float) -> None:
        backoff = Backoff(failures=failures, jitter=lambda: jitter)
        assert 0.25 <= backoff.next_seconds() <= 30


class TestEvent:
    def test_410_means_expired(self) -> None:
        with pytest.raises(Expired):
            event_of('{"type": "ERROR", "object": {"code": 410}}')

    @given(
        line=st.one_of(
            st.text(), st.sampled_from(['{"type": "ADDED", "object": {"metadata": {}}}', "[]", "3", "null"])
        )
    )
    def test_no_line_whatever_is_taken_for_an_event(self, line: str) -> None:
        with pytest.raises(ClusterUnavailable):
            event_of(line)
