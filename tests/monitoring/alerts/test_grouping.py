"""Which firings become one alert."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.alerts.firing import Firing
from monitoring.alerts.grouping import JOINS_WITHIN, SAME_WITHIN, Standing, plan

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
CLUSTER, OTHER = uuid4(), uuid4()


def firing(number: int, code: str = "node_lost", cluster: UUID = CLUSTER) -> Firing:
    return Firing(key=f"trouble:{cluster}/{number}/{code}", code=code, since=NOW, cluster_id=cluster)


def standing(
    *keys: Firing, ago: timedelta = timedelta(0), is_open: bool = True, ended: timedelta | None = None
) -> Standing:
    return Standing(
        id=uuid4(),
        group=keys[0].group,
        last_at=NOW - ago,
        is_open=is_open,
        keys={one.key: None if ended is None else NOW - ended for one in keys},
    )


def test_forty_nodes_that_are_lost_together_are_one_alert() -> None:
    assert [len(group) for group in plan([firing(n) for n in range(40)], [], NOW).new] == [40]


def test_other_codes_and_other_clusters_are_other_alerts() -> None:
    found = [firing(1), firing(1, "gpu_lost"), firing(1, cluster=OTHER)]
    assert len(plan(found, [], NOW).new) == 3


def test_what_begins_soon_after_joins_and_what_begins_late_does_not() -> None:
    first, second = firing(1), firing(2)
    soon, late = standing(first), standing(first, ago=JOINS_WITHIN + timedelta(seconds=1))
    assert plan([first, second], [soon], NOW).joining == {soon.id: [second]}
    assert plan([first, second], [late], NOW).new == [[second]]


@pytest.mark.parametrize("is_open", [True, False])
def test_a_member_that_fires_again_soon_belongs_to_its_alert_and_later_to_another(is_open: bool) -> None:
    one = firing(1)
    recent = standing(one, ago=timedelta(hours=1), is_open=is_open, ended=SAME_WITHIN)
    wanted = plan([one], [recent], NOW)
    assert wanted.again == {recent.id: [one]} and not wanted.new
    old = standing(one, ago=timedelta(hours=1), is_open=is_open, ended=SAME_WITHIN + timedelta(seconds=1))
    wanted = plan([one], [old], NOW)
    assert wanted.new == [[one]] and not wanted.again


def test_a_member_of_two_alerts_belongs_to_the_one_it_was_in_last() -> None:
    one = firing(1)
    first = standing(one, is_open=True, ended=timedelta(minutes=10))
    last = standing(one, is_open=False, ended=timedelta(minutes=1))
    assert plan([one], [last, first], NOW).again == {last.id: [one]}


def test_an_old_member_is_in_an_alert_that_others_joined_just_now_once() -> None:
    one = firing(1)
    there = standing(one, ended=timedelta(hours=1))
    wanted = plan([one, firing(2)], [there], NOW)
    assert wanted.again == {there.id: [one]} and wanted.joining == {there.id: [firing(2)]}


def test_nothing_joins_an_alert_that_is_over() -> None:
    over = standing(firing(1), is_open=False, ended=timedelta(0))
    assert plan([firing(2)], [over], NOW).new == [[firing(2)]]


def test_what_fires_no_longer_is_over_unless_its_source_is_silent() -> None:
    there = standing(firing(1), firing(2))
    assert plan([firing(1)], [there], NOW).over == {there.id: [firing(2).key]}
    assert not plan([], [there], NOW, ["trouble:"]).over


KINDS = [(number, code) for number in range(3) for code in ("node_lost", "gpu_lost")]


@given(st.lists(st.integers(0, 2 ** len(KINDS) - 1), max_size=12))
def test_each_firing_is_in_one_open_alert_after_any_course(course: list[int]) -> None:
    """Play passes four minutes apart, and carry out each plan as `raising.py` does. A bit for each that fires."""
    alerts: dict[UUID, tuple[str, datetime, dict[str, datetime | None]]] = {}
    for place_in_time, firing_now in enumerate(course):
        now = NOW + timedelta(minutes=4 * place_in_time)
        found = [firing(*kind) for place, kind in enumerate(KINDS) if firing_now >> place & 1]
        known = [
            Standing(id=pk, group=group, last_at=at, is_open=None in keys.values(), keys=keys)
            for pk, (group, at, keys) in alerts.items()
        ]
        wanted = plan(found, known, now)
        for group in wanted.new:
            alerts[uuid4()] = (group[0].group, now, dict.fromkeys(one.key for one in group))
        for pk, joined in wanted.joining.items():
            assert alerts[pk][2].keys().isdisjoint(one.key for one in joined)
            alerts[pk] = (alerts[pk][0], now, alerts[pk][2] | dict.fromkeys(one.key for one in joined))
        for pk, again in wanted.again.items():
            alerts[pk] = (*alerts[pk][:2], alerts[pk][2] | dict.fromkeys(one.key for one in again))
        for pk, over in wanted.over.items():
            alerts[pk] = (*alerts[pk][:2], alerts[pk][2] | dict.fromkeys(over, now))
        fires = sorted(key for _, _, keys in alerts.values() for key, at in keys.items() if at is None)
        assert fires == sorted(one.key for one in found)
