"""Three days of life: whatever people and faults do at once, nothing is lost, double, left over or unaccounted for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proof.life.day import Day, world_in
from tests.proof.life.reckoning import reckon, unfulfilled, wrong_keys
from tests.proof.life.sharing import lived_rules, too_long

SEEDS = [int(seed) for seed in os.environ.get("BERTH_LIFE_SEEDS", "1 2 3").split()]
SECONDS = float(os.environ.get("BERTH_LIFE_SECONDS", "60"))
QUIET_SECONDS = 1200  # start, four waits and end on the slowest machine

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(SECONDS + QUIET_SECONDS)]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_wild_day_every_wish_and_every_second_is_accounted_for(
    seed: int, tmp_path: Path, found: Callable[[str, str], None]
) -> None:
    with world_in(tmp_path) as world:
        day = Day(world, seed, SECONDS)
        try:
            day.live()
            day.calm_down()
            at_rest = day.records()
            wrong = [*unfulfilled(at_rest), *wrong_keys(at_rest), *too_long(at_rest)]
            day.end_everything()
            wrong += day.lasting_faults()
            records = day.records()
            wrong += reckon(records) + world.observer.broken
        finally:
            day.sockets.stop()
            print(day.story())  # shown if the test fails
    found(
        f"a day of life, seed {seed}",
        f"{len(records.asked)} requests, {len(day.told)} faults and changes by admins, "
        f"{len(records.workspaces)} workspaces, {len(records.claims)} claims, {len(records.pods)} pods, "
        f"{sum(heard.connections for heard in records.heard)} connections of {len(records.heard)} sockets",
    )
    lived = ", ".join(f"{count} {rule}" for rule, count in lived_rules(records).items())
    found(f"a day of life, seed {seed}: sharing", f"{len(records.bookings)} bookings; of runs {lived}")
    assert not wrong, "\n".join(wrong[:40])
