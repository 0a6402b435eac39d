"""Which firings become one alert."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from monitoring.alerts.firing import Firing
from monitoring.alerts.grouping import JOINS_WITHIN, Standing, plan

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
CLUSTER, OTHER = uuid4(), uuid4()


def firing(number: int, code: str = "node_lost", cluster: UUID = CLUSTER) -> Firing:
    return Firing(key=f"trouble:{cluster}/{number}/{code}", code=code, since=NOW, cluster_id=cluster)


def standing(
    *keys: Firing, ago: timedelta = timedelta(0), is_open: bool = True, fires: bool = True
) -> Standing:
    return Standing(
        id=uuid4(),
        group=keys[0].group,
        last_at=NOW - ago,
        is_open=is_open,
        keys={one.key: fires for one in keys},
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


def test_a_member_that_fires_again_belongs_to_its_alert_even_if_that_is_over() -> None:
    one = firing(1)
    over = standing(one, ago=timedelta(hours=1), is_open=False, fires=False)
    wanted = plan([one], [over], NOW)
    assert wanted.again == {over.id: [one]} and not wanted.new


def test_nothing_joins_an_alert_that_is_over() -> None:
    over = standing(firing(1), is_open=False, fires=False)
    assert plan([firing(2)], [over], NOW).new == [[firing(2)]]


def test_what_fires_no_longer_is_over_unless_its_source_is_silent() -> None:
    there = standing(firing(1), firing(2))
    assert plan([firing(1)], [there], NOW).over == {there.id: [firing(2).key]}
    assert not plan([], [there], NOW, ["trouble:"]).over


KINDS = [(number, code) for number in range(3) for code in ("node_lost", "gpu_lost")]


@given(st.lists(st.integers(0, 2 ** len(KINDS) - 1), max_size=12))
def test_each_firing_is_in_one_open_alert_after_any_course(course: list[int]) -> None:
    """Play passes one minute apart, and carry out each plan as `raising.py` does. A bit for each that fires."""
    alerts: dict[UUID, tuple[str, datetime, dict[str, bool]]] = {}
    for minute, firing_now in enumerate(course):
        now = NOW + timedelta(minutes=minute)
        found = [firing(*kind) for place, kind in enumerate(KINDS) if firing_now >> place & 1]
        known = [
            Standing(id=pk, group=group, last_at=at, is_open=any(keys.values()), keys=keys)
            for pk, (group, at, keys) in alerts.items()
        ]
        wanted = plan(found, known, now)
        for group in wanted.new:
            alerts[uuid4()] = (group[0].group, now, {one.key: True for one in group})
        for pk, joined in wanted.joining.items():
            alerts[pk] = (alerts[pk][0], now, alerts[pk][2] | {one.key: True for one in joined})
        for pk, again in wanted.again.items():
            alerts[pk] = (*alerts[pk][:2], alerts[pk][2] | {one.key: True for one in again})
        for pk, over in wanted.over.items():
            alerts[pk] = (*alerts[pk][:2], alerts[pk][2] | dict.fromkeys(over, False))
        fires = sorted(key for _, _, keys in alerts.values() for key, does in keys.items() if does)
        assert fires == sorted(one.key for one in found)
