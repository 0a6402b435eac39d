"""Lives of a workspace: who is stopped as idle, when and with what words, and who lives on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from accounts.notices.models import Notice
from monitoring.models import IdleLook, IdlePolicy
from quotas.models import Claim
from tests.cast import Cast
from tests.monitoring.idle.lives import FIRST, QUIET, Life, flat, policy
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Desired, Phase
from workspaces.runs import idleness
from workspaces.state import story
from workspaces.state.inside import Inside

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
Begin = Callable[..., Life]


@pytest.fixture
def begin(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Begin:
    def begun(**changes: Any) -> Life:
        return Life(cast, monkeypatch, **changes)

    return begun


def always(**busy: Any) -> Callable[[int], Inside]:
    return lambda minute: replace(QUIET, **busy)


def told() -> list[str]:
    """Notices about idleness, oldest first."""
    codes = [notice.data["code"] for notice in Notice.objects.order_by("at")]
    return [code for code in codes if "idle" in code]


# --- Stops


def test_an_open_tab_and_an_idle_gpu_are_stopped_with_a_warning_and_what_was_measured(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(30)
    assert life.lives(17) is None  # warned 16 minutes after it was ready
    assert life.codes == ["idle_stops_soon"]
    assert life.workspace.idle_stops_at == FIRST + timedelta(minutes=20)
    assert len(life.said) == 1 and "BERTH_KEEP_ALIVE" in life.said[0]
    assert told() == ["idle_stops_soon"]
    assert life.lives(30) == 20
    assert life.codes == ["idle_stops_soon", "stopped_by_idleness"]
    assert life.events[-1].data == {
        "minutes": 20,
        "since": FIRST.isoformat(),
        "measured": {"gpu_percent": 0.0, "cpu_cores": 0.02, "kernels": 0, "terminals": 0, "ssh": 0},
    }
    said = story.sentence(life.events[-1].code, life.events[-1].data)
    assert "GPU at most 0 %" in said and "CPU at most 0.02 cores" in said
    assert life.workspace.desired == Desired.STOPPED
    assert told() == ["idle_stops_soon", "stopped_by_idleness"]


def test_after_training_it_stops_so_long_after_the_end(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(60, gpu=lambda minute: 90 if minute < 20 else 0)
    assert life.lives(60) == 40


def test_a_person_may_ask_for_it_without_a_policy_and_sooner_than_one(begin: Begin) -> None:
    life = begin(idle_minutes=12)
    life.measures(30)
    assert life.lives(30) == 12


def test_a_person_cannot_make_a_policy_longer(begin: Begin) -> None:
    policy()
    life = begin(idle_minutes=300)
    life.measures(30)
    assert life.lives(30) == 20


def test_at_night_it_may_be_idle_for_longer(begin: Begin) -> None:
    policy(night_minutes=40, night_from=time(12, 10), night_until=time(15))
    life = begin()
    life.measures(60)
    assert life.lives(60) == 40


def test_it_stops_sooner_while_others_wait_for_the_pool(begin: Begin, cast: Cast) -> None:
    policy(waiting_minutes=10)
    life = begin()
    make_workspace(cast, cast.alice, Phase.WAITING)
    life.measures(30)
    assert life.lives(30) == 10


def test_who_begins_to_wait_gives_it_no_less_than_the_warning(begin: Begin, cast: Cast) -> None:
    policy(waiting_minutes=8)
    life = begin()
    life.measures(30)
    life.deeds[14] = lambda: make_workspace(cast, cast.alice, Phase.WAITING)
    assert life.lives(30) == 18


# --- Lives on


@pytest.mark.parametrize("busy", ["kernels", "terminals", "ssh"])
def test_what_runs_inside_without_gpu_and_cpu_lives_on(begin: Begin, busy: str) -> None:
    policy()
    life = begin()
    life.measures(45)
    life.answers = always(**{busy: 1})
    assert life.lives(45) is None
    assert life.codes == []
    assert life.workspace.idle_busy_by == [{"kernels": "kernel", "terminals": "terminal"}.get(busy, busy)]


def test_preprocessing_on_the_cpu_lives_on(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(45, cpu=flat(1.0))
    assert life.lives(45) is None
    assert life.workspace.idle_busy_by == ["cpu"]


def test_training_with_pauses_lives_on(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(100, gpu=lambda minute: 80 if minute % 15 == 14 else 0)
    assert life.lives(100) is None
    assert life.codes == []


def test_a_gpu_without_figures_keeps_all_four(begin: Begin) -> None:
    policy()
    life = begin(units=4)
    life.measures(45, gpus=3)
    assert life.lives(45) is None
    assert life.workspace.idle_busy_by == ["gpu_unknown"]
    assert life.codes == []


def test_a_click_keeps_it_for_as_long_again(begin: Begin, cast: Cast) -> None:
    policy()
    life = begin()
    life.measures(60)
    life.deeds[18] = lambda: idleness.keep_alive(cast.bob, life.workspace)
    assert life.lives(21) is None
    assert life.workspace.idle_warned_at is None and life.workspace.idle_stops_at is None
    assert life.lives(60) == 38


def test_a_file_touched_inside_keeps_it(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(60)
    life.answers = lambda minute: replace(QUIET, keep_alive_seconds=(minute % 13) * 60)
    assert life.lives(60) is None
    assert "stopped_by_idleness" not in life.codes


def test_who_does_not_answer_lives_on(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(45)
    life.answers = lambda minute: None
    assert life.lives(45) is None
    assert life.workspace.idle_busy_by == ["inside_unknown"]


def test_a_silent_agent_means_unknown(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(45, gpu=lambda minute: 0 if minute < 10 else None)
    assert life.lives(45) is None
    assert life.workspace.idle_busy_by == ["gpu_unknown"]


def test_without_figures_of_the_cpu_it_lives_on(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(45, cpu=flat(None))
    assert life.lives(45) is None
    assert life.workspace.idle_busy_by == ["cpu_unknown"]


def test_a_gap_in_the_figures_begins_the_time_anew(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(60, gpu=lambda minute: None if 8 <= minute < 14 else 0)
    assert life.lives(60) == 34


def test_a_portal_that_was_down_begins_the_time_anew(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(100)
    life.looks_at = lambda minute: not 10 <= minute < 50
    assert life.lives(100) == 70
    assert life.codes == ["idle_stops_soon", "stopped_by_idleness"]


def test_use_after_the_warning_takes_it_back(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(60, gpu=lambda minute: 90 if minute == 18 else 0)
    assert life.lives(30) is None
    assert life.codes == ["idle_stops_soon", "idle_over"]
    assert life.lives(60) == 39


def test_who_may_be_idle_for_longer_after_a_warning_stops_later(begin: Begin) -> None:
    rule = policy()
    life = begin()
    life.measures(60)
    life.deeds[18] = lambda: IdlePolicy.objects.filter(pk=rule.pk).update(minutes=40)
    assert life.lives(60) == 40
    assert life.codes == ["idle_stops_soon", "idle_put_off", "idle_stops_soon", "stopped_by_idleness"]


def test_who_waits_no_more_puts_an_announced_stop_off(begin: Begin, cast: Cast) -> None:
    policy(waiting_minutes=10)
    life = begin()
    other = make_workspace(cast, cast.alice, Phase.WAITING)
    life.measures(40)
    life.deeds[8] = lambda: Claim.objects.filter(holder_id=other.pk).delete()
    assert life.lives(40) == 20


def test_one_missed_answer_takes_no_warning_back(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(30)
    life.answers = lambda minute: None if minute in (18, 20) else QUIET
    assert life.lives(30) == 21
    assert life.codes == ["idle_stops_soon", "stopped_by_idleness"]


def test_nothing_is_stopped_without_gpus_or_a_policy_nor_by_one_that_is_off(begin: Begin, cast: Cast) -> None:
    life = begin()
    life.measures(70)
    assert life.lives(25) is None
    policy()
    policy(tenant=cast.demo, is_active=False)
    assert life.lives(45) is None
    IdlePolicy.objects.filter(is_active=False).delete()
    life.workspace.units = 0
    life.workspace.save()
    assert life.lives(70) is None
    assert life.codes == [] and not IdleLook.objects.exists()


def test_a_policy_that_goes_away_clears_what_is_shown(begin: Begin) -> None:
    rule = policy()
    life = begin()
    life.measures(40)
    assert life.lives(18) is None and life.workspace.idle_warned_at is not None
    rule.delete()
    assert life.lives(40) is None
    assert (life.workspace.idle_since, life.workspace.idle_stops_at) == (None, None)


def test_a_row_is_written_only_when_something_changes(begin: Begin) -> None:
    policy()
    life = begin()
    life.measures(30)
    life.lives(8)
    before = life.workspace.changed_at
    assert life.workspace.idle_since == FIRST
    life.lives(15)
    assert life.workspace.changed_at == before
