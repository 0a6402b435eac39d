"""What the mirror of a cluster knows: lists, events and answers of writes, in whatever order they come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.labels import WORKSPACE
from clusters.mirror import MOST_EVENTS, Mirror, says_the_same, trimmed

Body = dict[str, Any]


class Answers:
    """API whose writes answer with a prepared object."""

    answer: Body
    there: dict[str, Body]

    def get(self, kind: str, namespace: str, name: str) -> Body | None:
        return self.there.get(name)

    def apply(self, body: Body) -> Body:
        return self.answer

    create = apply

    def json_patch(self, *_: Any) -> Body:
        return self.answer


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def mirror(answers: Answers) -> Mirror:
    return Mirror(lambda: answers)  # type: ignore[arg-type,return-value]


def service(name: str, version: int, *, of: str = "", **metadata: Any) -> Body:
    labels = {WORKSPACE: of} if of else {}
    named = {"namespace": "berth-demo", "name": name, "resourceVersion": str(version), "labels": labels}
    return {"kind": "Service", "metadata": {**named, **metadata}}


def names(bodies: list[Body]) -> list[str]:
    return [body["metadata"]["name"] for body in bodies]


def test_a_list_replaces_everything_and_says_what_is_gone(mirror: Mirror) -> None:
    assert mirror.replace("Service", [service("a", 1, of="w"), service("b", 2)], "5") == []
    assert names(mirror.replace("Service", [service("b", 2)], "9")) == ["a"]
    assert mirror.get("Service", "berth-demo", "a") is None
    assert mirror.of("Service", "w") == []


def test_objects_are_found_by_label_and_by_name(mirror: Mirror) -> None:
    mirror.replace("Service", [service("a", 1, of="w"), service("b", 2), service("c", 3, of="x")], "5")
    assert names(mirror.of("Service", "w", also=["b", "none"], namespace="berth-demo")) == ["a", "b"]


def test_events_of_the_watch_say_what_was_known_before(mirror: Mirror) -> None:
    mirror.replace("Service", [service("a", 1)], "5")
    assert mirror.heard("Service", "MODIFIED", service("a", 6, of="w")) == service("a", 1)
    assert names(mirror.of("Service", "w")) == ["a"]
    assert mirror.heard("Service", "DELETED", service("a", 7, of="w")) == service("a", 6, of="w")
    assert mirror.count() == 0


def test_an_answer_is_known_at_once(mirror: Mirror, answers: Answers) -> None:
    mirror.replace("Service", [], "5")
    answers.answer = service("a", 6, of="w")
    mirror.apply(service("a", 0))
    assert names(mirror.of("Service", "w")) == ["a"]


def test_an_answer_that_comes_late_brings_nothing_back(mirror: Mirror, answers: Answers) -> None:
    mirror.replace("Service", [], "5")
    mirror.heard("Service", "ADDED", service("a", 6))
    mirror.heard("Service", "DELETED", service("a", 8))
    answers.answer = service("a", 6)
    mirror.create(service("a", 0))
    assert mirror.get("Service", "berth-demo", "a") is None


def test_an_event_that_comes_late_does_not_undo_an_answer(mirror: Mirror, answers: Answers) -> None:
    mirror.replace("Service", [service("a", 1)], "5")
    answers.answer = service("a", 9, of="w")
    mirror.apply(service("a", 0))
    mirror.heard("Service", "MODIFIED", service("a", 6))
    assert names(mirror.of("Service", "w")) == ["a"]


def test_the_write_that_lets_go_of_an_object_ends_it(mirror: Mirror, answers: Answers) -> None:
    held = service("a", 6, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["berth.dev/end-seen"])
    mirror.replace("Service", [held], "6")
    answers.answer = service("a", 7, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    mirror.json_patch("Service", "berth-demo", "a", [])
    assert mirror.get("Service", "berth-demo", "a") is None


def test_what_nobody_heard_of_is_read_anew(mirror: Mirror, answers: Answers) -> None:
    mirror.replace("Service", [service("gone", 1), service("old", 2)], "5")
    answers.there = {"old": service("old", 7, of="w"), "new": service("new", 8)}
    for name in ("gone", "old", "new"):
        mirror.read_anew("Service", "berth-demo", name)
    assert mirror.get("Service", "berth-demo", "gone") is None
    assert names(mirror.of("Service", "w")) == ["old"]
    assert mirror.get("Service", "berth-demo", "new") == service("new", 8)


def test_kinds_that_are_not_watched_are_not_kept(mirror: Mirror, answers: Answers) -> None:
    answers.answer = {**service("a", 6), "kind": "Secret"}
    mirror.apply(answers.answer)
    assert mirror.get("Secret", "berth-demo", "a") is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "end"])), max_size=30), st.data())
def test_however_late_answers_come_the_watch_is_right_in_the_end(
    history: list[tuple[str, str]], data: st.DataObject
) -> None:
    """The cluster's history is one order; answers of its writes reach the mirror at any time after them."""
    answers = Answers()
    mirror = Mirror(lambda: answers)  # type: ignore[arg-type,return-value]
    mirror.replace("Service", [], "0")
    late: list[Body] = []
    draw: Any = data.draw
    there: dict[str, Body] = {}
    for version, (name, what) in enumerate(history, start=1):
        body = service(name, version, of=name)
        if what == "put":
            late.append(body)
            mirror.heard("Service", "MODIFIED" if name in there else "ADDED", body)
            there[name] = body
        elif there.pop(name, None):
            mirror.heard("Service", "DELETED", body)
        while late and draw(st.booleans()):
            answers.answer = late.pop(draw(st.integers(0, len(late) - 1)))
            mirror.apply(answers.answer)
    for name in "abc":
        assert mirror.get("Service", "berth-demo", name) == there.get(name)
        assert mirror.of("Service", name) == ([there[name]] if name in there else [])


def event(name: str, message: str, *, about: str = "u1", reason: str = "FailedMount") -> Body:
    metadata = {"namespace": "berth-demo", "name": name}
    return {
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": {"uid": about},
        "reason": reason,
        "message": message,
    }


def test_the_same_event_once_more_is_not_new(mirror: Mirror) -> None:
    assert mirror.heard_event(event("e1", "no such disk"))
    assert not mirror.heard_event(event("e1", "no such disk"))
    assert not mirror.heard_event(event("e2", "no such disk"))
    assert mirror.heard_event(event("e3", "another disk"))
    assert len(mirror.events_about("u1")) == 3
    assert mirror.events_about("u2") == []


def test_few_events_are_kept_of_one_object(mirror: Mirror) -> None:
    for number in range(3 * MOST_EVENTS):
        mirror.heard_event(event(f"e{number}", f"message {number}"))
    kept = mirror.events_about("u1")
    assert len(kept) == MOST_EVENTS
    assert kept[-1]["message"] == f"message {3 * MOST_EVENTS - 1}"


def test_clocks_and_versions_say_nothing_new() -> None:
    def pod(version: str, status: str, time: str) -> Body:
        condition = {"type": "Ready", "status": status, "lastTransitionTime": time}
        return {
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "resourceVersion": version, "managedFields": [time]},
            "spec": {"containers": [{"name": "c", "env": [time]}]},
            "status": {"conditions": [condition]},
        }

    before = trimmed(pod("1", "True", "then"))
    assert says_the_same(before, trimmed(pod("2", "True", "now")))
    assert not says_the_same(before, trimmed(pod("2", "False", "now")))
    assert not says_the_same(None, before)
