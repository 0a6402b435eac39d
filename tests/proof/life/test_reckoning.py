"""Tests that each check of the reckoning finds its violation, and none on a good day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.proof.life.reckoning import reckon, unfulfilled, wrong_keys
from tests.proof.life.records import (
    GPUS_OF_ONE,
    MINUTES,
    WORKSPACES_OF_ONE,
    Asked,
    Audited,
    Booking,
    Claim,
    Event,
    Heard,
    Lived,
    PodLife,
    Records,
    Share,
    Workspace,
    own_units_of,
    units_of,
)
from tests.proof.life.rows import errors_in
from tests.proof.life.sharing import not_borrowed, too_long

MORNING = datetime(2026, 1, 5, 8, tzinfo=UTC)
CODES = (
    ("requested", "request"), ("admitted", "admission"), ("disk_done", "disk"), ("ready", "ready"),
    ("stop_requested", ""), ("stopped", ""),
)  # fmt: skip


def at(seconds: float) -> datetime:
    return MORNING + timedelta(seconds=seconds)


def asked(verb: str, sent: float, status: int | None = 202, **about: Any) -> Asked:
    return Asked(
        "alice",
        verb,
        at(sent),
        about.pop("workspace", "w"),
        status=status,
        answered=None if status is None else at(sent + 0.5),
        **about,
    )


def share(of: str, most: float, sent: float = -9) -> Share:
    return Share(tenant="demo", of=of, most=most, sent=at(sent), answered=at(sent))


def good_day() -> Records:
    """Records of one launch: requested twice with one key, run for nine seconds, stopped."""
    launch = asked("launch", 0, 201, workspace="", answer={"id": "w"}, key="k")
    events = [
        Event(workspace="w", number=number, run="r", at=at(second), step=step, level="info", code=code)
        for number, ((code, step), second) in enumerate(
            zip(CODES, (0.1, 1.1, 2, 3, 10.1, 12.1), strict=True), 1
        )
    ]
    return Records(
        asked=[
            launch,
            replace(launch, sent=at(4), answered=at(4.1)),
            asked("stop", 10),
            asked("hostile", 5, 404),
            asked("look", 5, None),
        ],
        workspaces={
            "w": Workspace(
                id="w", tenant="demo", owner="alice", name="n", desired="stopped", phase="stopped",
                message_code="stopped", last_event=6, run="r",
            )
        },
        events={"w": events},
        claims=[
            Claim(
                id="r", pool="a100", tenant="demo", holder="w", units=1, state="released", created_at=at(0.1),
                admitted_at=at(1), released_at=at(12), reason="stop",
            )
        ],
        audit=[
            Audited(at=at(0.1), who="alice", action="workspace.launch", target="w"),
            Audited(at=at(10.1), who="alice", action="workspace.stop", target="w"),
        ],
        pods=[
            PodLife("p", "w", "r", 1, at(1), "gpu-1", at(11), at(1.6), seen_placed=at(1.8), seen_last=at(11.4)),
        ],
        lived=[
            Lived(kind="PersistentVolumeClaim", workspace="w", part="home", uid="c", began=2, ended=None),
        ],
        heard=[Heard("alice", "w", [{"id": event.number, "code": event.code} for event in events])],
        shares=[
            share(units_of("a100"), 1),
            share(own_units_of("a100"), 1),
            share(WORKSPACES_OF_ONE, 1),
            share(GPUS_OF_ONE, 1),
        ],
        bookings=[],
        pool_units={"a100": 1},
        node_units={"gpu-1": 1},
        left=[("PersistentVolumeClaim", "w", "ws-w-home")],
        ssh_keys={"alice": {"key"}},
        let_in={"w": {"key"}},
        secrets_deleted={},
        database=['ERROR:  duplicate key value violates unique constraint "one_idempotency_key_per_person"'],
    )  # fmt: skip


def test_a_good_day_has_nothing_wrong() -> None:
    assert reckon(good_day()) == []
    assert list(unfulfilled(good_day())) == []


def claim(**changes: Any) -> Callable[[Records], Records]:
    return lambda day: replace(day, claims=[replace(day.claims[0], **changes)])


def more_claims(**changes: Any) -> Callable[[Records], Records]:
    """Add a second claim, of the same workspace or of another."""
    return lambda day: replace(day, claims=[day.claims[0], replace(day.claims[0], id="r2", **changes)])


def pod(**changes: Any) -> Callable[[Records], Records]:
    return lambda day: replace(day, pods=[replace(day.pods[0], **changes)])


def more_pods(**changes: Any) -> Callable[[Records], Records]:
    return lambda day: replace(day, pods=[day.pods[0], replace(day.pods[0], uid="p2", **changes)])


def row(**changes: Any) -> Callable[[Records], Records]:
    return lambda day: replace(day, workspaces={"w": replace(day.workspaces["w"], **changes)})


def database(error: str) -> Callable[[Records], Records]:
    return lambda day: replace(day, database=[*day.database, f"ERROR:  {error}"])


def request(**wish: Any) -> Callable[[Records], Records]:
    return lambda day: replace(day, asked=[*day.asked, asked(**wish)])


def story(change: Callable[[list[Event]], list[Event]]) -> Callable[[Records], Records]:
    return lambda day: replace(day, events={"w": change(list(day.events["w"]))})


def without_line(number: int) -> Callable[[Records], Records]:
    return story(lambda events: [event for event in events if event.number != number])


def late(code: str, second: float) -> Callable[[Records], Records]:
    return story(lambda events: [replace(e, at=at(second)) if e.code == code else e for e in events])


def ears(change: Callable[[list[Any]], list[Any]]) -> Callable[[Records], Records]:
    return lambda day: replace(day, heard=[replace(day.heard[0], events=change(day.heard[0].events))])


def asked_back_at(warned: float, given_back: float) -> Callable[[Records], Records]:
    """Replace two steps with the notice of a preemption and its end."""
    codes = {3: ("asked_back_owner_waits", warned), 4: ("given_back", given_back)}

    def change(events: list[Event]) -> list[Event]:
        return [
            replace(e, code=codes[e.number][0], at=at(codes[e.number][1]), step="")
            if e.number in codes
            else e
            for e in events
        ]

    return story(change)


def booked(**about: Any) -> Callable[[Records], Records]:
    booking = Booking(
        id="b", pool="a100", tenant="demo", starts_at=at(0), ends_at=at(900), places=1, units_each=1,
        created_at=at(0), cancelled_at=None,
    )  # fmt: skip
    return lambda day: replace(day, bookings=[replace(booking, **about)])


WRONG: dict[str, tuple[Callable[[Records], Records], str]] = {
    "a launch without a row": (
        request(verb="launch", sent=6, status=201, answer={"id": "x"}), "there is no such workspace",
    ),
    "a stop without a trail": (request(verb="stop", sent=7), "no trail of it"),
    "an extension that no story tells": (request(verb="extend", sent=7), "its story does not tell it"),
    "a name that it never had": (
        request(verb="change", sent=7, status=200, body={"name": "other"}), "never had that name",
    ),
    "a deletion that is not done": (request(verb="delete", sent=20), "it is there"),
    "a fault of ours as an answer": (request(verb="look", sent=7, status=500), "was answered 500"),
    "a hostile wish that is granted": (request(verb="hostile", sent=7, status=201), "was not refused"),
    "files that were to go": (
        lambda day: row(deleted_at=at(21))(request(verb="delete", sent=20, body={"delete_disk": True})(day)),
        "its files were to go",
    ),
    "a name given to two at once": (
        lambda day: request(verb="look", sent=7, rivals="twin")(
            request(verb="look", sent=7, rivals="twin")(day)
        ),
        "twice: 2 requests of twin",
    ),
    "a key with two answers": (
        request(verb="launch", sent=8, status=201, answer={"id": "w", "name": "n"}, key="k"),
        "answered otherwise",
    ),
    "a launch that is done twice": (
        lambda day: replace(day, audit=[*day.audit, day.audit[0]]), "was launched 2 times",
    ),
    "two volume claims of one part": (
        lambda day: replace(day, lived=[*day.lived, replace(day.lived[0], uid="c2", began=9)]),
        "had PersistentVolumeClaim home c and c2 at once",
    ),
    "two pods": (more_pods(seen_first=at(5), seen_last=at(9)), "had pods p and p2 at once"),
    "a claim beside another of its holder": (more_claims(admitted_at=at(11)), "of w overlap"),
    "a unit given twice": (
        more_claims(holder="v", tenant="second", admitted_at=at(11.9)), "pool a100 had given 2 units of 1",
    ),
    "a unit placed twice": (
        more_pods(workspace="v", seen_placed=at(11.3)), "the pods on gpu-1 had 2 units of 1",
    ),
    "more than a tenant's share": (
        lambda day: more_claims(holder="v", admitted_at=at(5))(replace(day, pool_units={"a100": 9})),
        "made 2 units of a100 for demo, which had 1",
    ),
    "more workspaces than one person may have": (
        more_claims(holder="v", units=0, admitted_at=at(5)),
        "made 2 workspaces of one person for demo, which had 1",
    ),
    "more than a person's GPUs over all pools": (
        more_claims(holder="v", pool="t4", units=2, units_per_gpu=4, admitted_at=at(5)),
        "made 3/2 GPUs of one person for demo, which had 1",
    ),
    "GPUs taken back before the time that was told": (
        lambda day: claim(reclaim_at=at(10))(asked_back_at(1.5, 9)(day)), "gave back at",
    ),
    "GPUs taken back with too little time": (
        lambda day: claim(reclaim_at=at(4))(asked_back_at(1.5, 4)(day)), "was told so 1 times before",
    ),
    "a tenant's own GPUs asked back": (asked_back_at(1.5, 9), "had 1 of its own 1"),
    "a booking that is lost": (
        request(verb="book", sent=6, status=201, answer={"id": "b"}), "there is no such booking",
    ),
    "a booking that is cancelled and kept": (
        lambda day: booked()(request(verb="cancel booking", sent=7, status=200, body={"booking": "b"})(day)),
        "it is kept",
    ),
    "GPUs booked twice": (booked(places=2), "made 2 units of a100 booked at once"),
    "another tenant's run in a booked place": (
        lambda day: claim(booking="b")(booked(tenant="second")(day)), "which is not its own",
    ),
    "more runs than booked places": (
        lambda day: booked()(
            more_claims(holder="v", booking="b", admitted_at=at(5))(claim(booking="b")(day))
        ),
        "2 runs had the 1 places",
    ),
    "a line left out of a story": (without_line(3), "gap: the story of w has [1, 2, 4, 5, 6]"),
    "a step told twice": (
        story(lambda events: [*events[:3], replace(events[2], number=4), *events[4:]]), "told a step twice",
    ),
    "a line that a socket did not hear": (ears(lambda heard: heard[:-1]), "misheard"),
    "a line that a socket heard twice": (ears(lambda heard: [heard[0], *heard]), "misheard"),
    "a claim that is not released": (
        claim(state="admitted", released_at=None), "is admitted, and nothing runs any more",
    ),
    "a claim that ends before it begins": (claim(released_at=at(0.5)), "was released before it began"),
    "a claim of which nothing is told": (
        more_claims(holder="v", tenant="x", admitted_at=at(13), released_at=at(14)),
        "it is not told as a run",
    ),
    "a run without a claim": (lambda day: replace(day, claims=[]), "no claim is there for it"),
    "an admission that is not told": (
        story(lambda events: [replace(e, code="x") if e.code != "requested" else e for e in events]),
        "disagree whether it was let in",
    ),
    "a step after the end of its claim": (late("ready", 13), "ready at"),
    "an end told long after the release": (late("stopped", 60), "told as stopped at"),
    "a pod without a claim": (pod(run="other"), "ran without a claim"),
    "a pod with more than its claim": (pod(units=2), "had 2 units, its claim 1"),
    "a pod before its claim": (pod(created=at(-1)), "its claim since"),
    "a pod after its claim": (pod(finished=at(13)), "its claim at"),
    "seconds that no claim was held for": (pod(finished=at(13)), "claims were held for 11.0"),
    "a pod that is left": (
        lambda day: replace(day, left=[("Pod", "w", "ws-w")]), "orphan: Pod ws-w is left",
    ),
    "an object of nobody": (lambda day: replace(day, left=[("Secret", "x", "ws-x")]), "that no row knows"),
    "a number given to two lines": (
        database('duplicate key value violates unique constraint "events_numbered_once_per_workspace"'),
        "collided",
    ),
    "two who wait for each other": (database("deadlock detected"), "collided"),
    "files that were asked to go": (row(deleted_at=at(30), delete_disk=True), "was to go with its workspace"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_it_finds(name: str) -> None:
    spoil, words = WRONG[name]
    assert [line for line in reckon(spoil(good_day())) if words in line]


def test_it_finds_a_wish_that_is_forgotten() -> None:
    assert list(unfulfilled(row(desired="running")(good_day())))
    assert list(unfulfilled(replace(good_day(), audit=[])))


@pytest.mark.parametrize("keys", [set(), {"key", "removed"}])
def test_it_finds_keys_that_are_not_their_persons(keys: set[str]) -> None:
    ready = row(phase="ready")(good_day())
    assert list(wrong_keys(ready)) == []
    assert list(wrong_keys(replace(ready, let_in={"w": keys})))


@pytest.mark.parametrize(("deleted", "is_wrong"), [(0.5, True), (5, False)])
def test_a_secret_that_a_hand_deletes_lets_nobody_in_until_the_next_run(
    deleted: float, is_wrong: bool
) -> None:
    ready = replace(row(phase="ready")(good_day()), secrets_deleted={"w": at(deleted)})
    assert bool(list(wrong_keys(replace(ready, let_in={})))) is is_wrong
    assert list(wrong_keys(replace(ready, let_in={"w": set()})))


def test_a_request_whose_story_explains_the_difference_is_no_fault() -> None:
    """The person wanted it to run, but its lifetime was over."""
    day = replace(good_day(), audit=good_day().audit[:1])
    assert list(unfulfilled(day))
    over = story(lambda e: [replace(e[4], code="stopped_by_lifetime") if x is e[4] else x for x in e])(day)
    assert not list(unfulfilled(over))


def test_a_restart_keeps_units_beyond_a_lowered_share() -> None:
    first = good_day().claims[0]
    renewed = [
        replace(first, reason="renewed"),
        replace(first, id="r2", admitted_at=at(12), released_at=at(20)),
    ]
    less = [share(of, 0, sent=1.5) for of in (units_of("a100"), WORKSPACES_OF_ONE)]
    day = replace(good_day(), claims=renewed, shares=[*good_day().shares, *less])
    assert not [line for line in reckon(day) if "which had" in line]


def test_a_preemption_with_notice_is_no_fault() -> None:
    borrows = [share(units_of("a100"), 2), share(own_units_of("a100"), 0)]
    day = replace(asked_back_at(1.5, 9)(claim(reclaim_at=at(8))(good_day())), shares=borrows)
    assert reckon(replace(day, heard=[])) == []


@pytest.mark.parametrize(("released", "is_wrong"), [(3, False), (1.6, True)])
def test_claims_admitted_by_the_preempting_pass_count(released: float, is_wrong: bool) -> None:
    """The tenant owns one unit, and another run is admitted a moment later."""
    first = good_day().claims[0]
    others = [
        replace(first, id="r2", holder="v", admitted_at=at(1.7)),
        replace(first, id="r3", holder="x", tenant="second", released_at=at(released)),
    ]
    day = asked_back_at(1.5, 9)(claim(reclaim_at=at(8))(good_day()))
    wrong = not_borrowed(replace(day, claims=[*day.claims, *others]))
    assert bool(list(wrong)) == is_wrong


@pytest.mark.parametrize("stops_at", [None, at(99)])
def test_a_run_longer_than_its_tenants_limit_is_found(stops_at: datetime | None) -> None:
    day = row(phase="ready", ready_at=at(3), stops_at=at(63))(good_day())
    day = replace(day, shares=[share(MINUTES, 1)])
    assert list(too_long(day)) == []
    assert list(too_long(row(stops_at=stops_at)(day)))


@pytest.mark.parametrize(
    ("between", "stops_at", "is_wrong"),
    [
        ("interrupted", at(123), False),
        ("interrupted", at(124), True),
        ("interrupted", None, True),
        ("restarting", at(100), False),
        ("restarting", at(101), True),
    ],
)
def test_an_interrupted_run_keeps_its_clock(between: str, stops_at: datetime | None, is_wrong: bool) -> None:
    """The longest runtime was two minutes at the first readiness, and one minute before the second."""
    told = story(lambda e: [*e[:4], replace(e[4], code=between), replace(e[5], code="ready", at=at(40))])
    day = told(row(phase="ready", ready_at=at(40), stops_at=stops_at)(good_day()))
    shares = [share(MINUTES, 2), share(MINUTES, 1, sent=10)]
    assert bool(list(too_long(replace(day, shares=shares)))) == is_wrong


def test_a_socket_that_left_has_heard_the_first_events() -> None:
    day = good_day()
    left = replace(day.heard[0], events=day.heard[0].events[:2], stayed=False)
    assert reckon(replace(day, heard=[left])) == []


LOG = """\
2026-11-21 12:53:20.567 UTC [17589] ERROR:  deadlock detected
2026-11-21 12:53:20.567 UTC [17589] DETAIL:  Process 17589 waits for ShareLock on transaction 88; blocked by 17590.
\tProcess 17590 waits for ShareLock on transaction 87; blocked by process 17589.
\tProcess 17589: UPDATE one
\tProcess 17590: UPDATE another
2026-11-21 12:53:20.567 UTC [17589] HINT:  See server log for query details.
2026-11-21 12:53:20.567 UTC [17589] CONTEXT:  while updating tuple (0,1) in relation "one"
2026-11-21 12:53:20.567 UTC [17589] STATEMENT:  UPDATE one
2026-11-21 12:53:21.000 UTC [17590] LOG:  checkpoint starting: time
2026-11-21 12:53:22.000 UTC [17591] ERROR:  syntax error
"""


def test_a_database_error_is_reported_with_its_details() -> None:
    deadlock, other = errors_in(LOG)
    assert deadlock == "\n".join(LOG.splitlines()[:8])
    assert other.endswith("syntax error")
