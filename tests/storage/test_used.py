"""Used space of volumes: which figures count, and one warning per crossing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.notices.models import Notice
from monitoring.intake import tokens
from storage import changes, used
from storage.models import Volume
from tests.cast import Cast
from tests.shared.agent_reports import batch, report, send
from tests.shared.clients import api, ask, browser

START = timezone.now() - timedelta(days=1)


@pytest.fixture
def volume(cast: Cast) -> Volume:
    made = changes.create(cast.alice, "demo", changes.Wish(name="data", kind="dataset", size_mib=1000))
    Volume.objects.update(size_mib=1000, phase="ready")
    return made


def measure(volume: Volume, used_mib: int, minute: int = 0, **other: Any) -> Volume:
    found: dict[str, Any] = {
        "namespace": volume.tenant.namespace, "claim": volume.object_name,
        "used_mib": used_mib, "capacity_mib": 1000,
    }  # fmt: skip
    used.take(volume.cluster_id, [used.Measured(**found | other)], START + timedelta(minutes=minute))
    return changes.fresh(volume)


def shown(cast: Cast, volume: Volume) -> tuple[int | None, str | None]:
    body = ask(api(cast.alice), "GET", f"volumes/{volume.pk}/").json()
    return body["used_mib"], (body["problem"] or {}).get("code")


@pytest.mark.django_db
def test_what_an_agent_measures_is_shown(cast: Cast, volume: Volume) -> None:
    assert shown(cast, volume) == (None, None)
    secret = tokens.issue(cast.admin, cast.cluster, "nodes")[1]
    one = {"namespace": "berth-demo", "claim": volume.object_name, "used_mib": 300, "capacity_mib": 1000}
    told = batch(report(1, volumes=[one | {"used_mib": 200}]), report(2, volumes=[one]), report(3))
    assert send(secret, told).status_code == 204
    assert shown(cast, volume) == (300, None)
    assert changes.fresh(volume).used_at is not None


@pytest.mark.django_db
def test_a_pvc_that_an_earlier_version_named_is_found(cast: Cast, volume: Volume) -> None:
    Volume.objects.update(claim_name="ws-0-home")
    assert measure(changes.fresh(volume), 300).used_mib == 300


@pytest.mark.django_db
def test_a_warning_comes_once_per_crossing_and_to_the_owner_alone(cast: Cast, volume: Volume) -> None:
    steps = [(840, None, 0), (850, "nearly_full", 1), (860, "nearly_full", 1), (840, None, 1),
             (855, "nearly_full", 1), (950, "full", 2), (940, "nearly_full", 2), (960, "full", 2),
             (100, None, 2), (870, "nearly_full", 3)]  # fmt: skip
    for minute, (mib, code, notices) in enumerate(steps):
        measure(volume, mib, minute)
        assert shown(cast, volume) == (mib, code)
        assert Notice.objects.filter(user=cast.alice.user).count() == notices
    assert not Notice.objects.exclude(user=cast.alice.user).exists()


@pytest.mark.django_db
def test_the_file_system_is_full_before_the_volume(cast: Cast, volume: Volume) -> None:
    measure(volume, 880, capacity_mib=900)
    assert shown(cast, volume) == (880, "full")


@pytest.mark.django_db
def test_a_volume_in_the_bin_warns_nobody(cast: Cast, volume: Volume) -> None:
    changes.delete(cast.alice, volume)
    measure(volume, 990)
    assert shown(cast, volume) == (990, None)
    assert not Notice.objects.exists()


@pytest.mark.django_db
def test_a_worse_problem_is_shown_instead(cast: Cast, volume: Volume) -> None:
    measure(volume, 990)
    Volume.objects.update(problem="growth_failed")
    assert shown(cast, volume) == (990, "growth_failed")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "other",
    [
        {"capacity_mib": 500_000},  # the disk of the node
        {"capacity_mib": 0},
        {"namespace": "berth-second"},
        {"claim": "vol-nonsense"},
        {"claim": "home-1"},
    ],
)
def test_figures_that_are_not_of_the_volume_leave_it_unknown(volume: Volume, other: dict[str, Any]) -> None:
    assert measure(volume, 10, **other).used_mib is None


@pytest.mark.django_db
def test_an_older_figure_replaces_no_newer_one(volume: Volume) -> None:
    measure(volume, 10, 2)
    assert measure(volume, 900, 1).used_mib == 10


@pytest.mark.django_db
def test_the_pages_show_it(cast: Cast, volume: Volume) -> None:
    measure(volume, 900)
    client = browser(cast.alice)
    for path in ("/volumes/", f"/volumes/{volume.pk}/"):
        assert "90 %" in client.get(path).content.decode()


@given(st.lists(st.floats(0, 120)))
def test_a_warning_is_never_taken_back_near_its_threshold(percents: list[float]) -> None:
    level = 0
    for percent in percents:
        level, before = used.warned_at(level, percent), level
        assert level <= max(before, percent)
        assert (level >= 95) or percent < 95
        assert (level >= 85) or percent < 85
        assert level >= before or percent <= before - used.MARGIN_PERCENT
