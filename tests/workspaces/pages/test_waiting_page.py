"""Page of a waiting workspace: when, why, and with one click something else that starts now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from quotas.admission import admit
from quotas.forecasts import update_forecasts
from quotas.models import Claim, Flavor
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_flavor, make_workspace
from tests.workspaces.reading import words
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def waits(cast: Cast) -> Workspace:
    """A workspace of bob's that waits for all 4 GPUs of demo, while alice holds one."""
    make_workspace(cast, cast.alice)
    row = make_workspace(cast, cast.bob, Phase.WAITING, name="waits", units=4, flavor=make_flavor(cast, 4))
    Claim.objects.filter(holder_id=row.pk).update(units=4, place=0)
    admit(cast.pool.pk)
    update_forecasts(cast.pool.pk)
    return row


def claim_of(row: Workspace) -> Claim:
    return Claim.objects.get(holder_id=row.pk, state=Claim.State.WAITING)


def post(client: Client, row: Workspace, **data: object) -> Workspace:
    answer = client.post(f"/workspaces/{row.pk}/instead/", data)
    assert answer.status_code == 302, answer.content
    return Workspace.objects.get(pk=row.pk)


def test_it_says_when_and_what_starts_now(cast: Cast, waits: Workspace) -> None:
    now = timezone.now()
    Claim.objects.filter(pk=claim_of(waits).pk).update(
        estimated_from=now + timedelta(hours=3), estimated_to=now + timedelta(hours=9)
    )
    said = words(browser(cast.bob).get(f"/workspaces/{waits.pk}/"))
    assert "Next in the queue" in said
    assert "Estimated between" in said
    assert "Available now: switch size" in said and "One A100" in said


def test_a_wide_range_is_no_reliable_estimate_and_the_next_end_is_named(cast: Cast, waits: Workspace) -> None:
    page = f"/workspaces/{waits.pk}/"
    said = words(browser(cast.bob).get(page))
    assert "No reliable estimate yet." in said and "etween" not in said
    assert "None of your team&#x27;s runs has an end time." in said
    Claim.objects.filter(state=Claim.State.ADMITTED).update(ends_at=timezone.now() + timedelta(days=2))
    assert "The first of your team&#x27;s runs ends by" in words(browser(cast.bob).get(page))


def test_before_the_first_pass_there_is_no_place_and_no_estimate(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob, Phase.WAITING)
    said = words(browser(cast.bob).get(f"/workspaces/{row.pk}/"))
    assert "Checking for a free slot." in said
    assert "Next in the queue" not in said and "estimate" not in said


def test_others_see_why_and_when_but_change_nothing(cast: Cast, waits: Workspace) -> None:
    said = words(browser(cast.alice).get(f"/workspaces/{waits.pk}/"))
    assert (
        "Next in the queue" in said and "Available now: switch size" not in said and "Notify me" not in said
    )


def test_one_click_asks_for_the_other_size_and_keeps_the_place(cast: Cast, waits: Workspace) -> None:
    before = claim_of(waits)
    row = post(browser(cast.bob), waits, flavor="a100-1")
    claim = claim_of(row)
    assert (claim.units, claim.state, claim.place) == (1, Claim.State.WAITING, before.place)
    assert (row.units, row.flavor, row.phase) == (1, cast.flavor, Phase.WAITING)
    before.refresh_from_db()
    assert (before.state, before.reason_code) == (Claim.State.RELEASED, "resized")


@pytest.fixture
def behind(cast: Cast, waits: Workspace) -> Workspace:
    """A workspace of alice's that waits behind bob's."""
    row = make_workspace(cast, cast.alice, Phase.WAITING, name="behind", units=4)
    Claim.objects.filter(holder_id=row.pk).update(units=4, place=7)
    return row


@pytest.mark.usefixtures("behind")
def test_a_switch_that_gives_up_a_place_is_asked_about_and_can_be_undone(
    cast: Cast, waits: Workspace
) -> None:
    bob, before = browser(cast.bob), claim_of(waits)
    larger = {"pool": "a100", "gpus": "3", "cpu": "30", "memory_mib": "1024"}
    for address, sent in (("instead", larger), ("settings", {"name": "waits", "flavor": "a100-3"})):
        make_flavor(cast, 3) if address == "settings" else None
        Flavor.objects.filter(slug="a100-3").update(cpu_millicores=30_000)
        asked = bob.post(f"/workspaces/{waits.pk}/{address}/", sent)
        assert asked.status_code == 200 and "(number 1)" in words(asked)
        assert claim_of(waits) == before
    row = post(bob, waits, **larger, confirmed="true")
    assert (row.units, claim_of(row).place > before.place) == (3, True)
    assert "restores the old place" in words(bob.get(f"/workspaces/{row.pk}/"))
    row = post(bob, row, undo_size="true")
    assert (row.units, claim_of(row).place, row.former_size) == (4, before.place, None)
    again = bob.post(f"/workspaces/{row.pk}/instead/", {"undo_size": "true"}, follow=True)
    assert "no change of its size to undo" in words(again)


def test_once_it_starts_an_undo_waits_at_the_end_and_says_so(cast: Cast, waits: Workspace) -> None:
    row = post(browser(cast.bob), waits, flavor="a100-1")
    admit(cast.pool.pk)
    row.refresh_from_db()
    assert row.phase == Phase.STARTING
    bob = browser(cast.bob)
    assert "its old place in the queue is gone" in words(bob.get(f"/workspaces/{row.pk}/"))
    row = post(bob, row, undo_size="true", restart="true")
    assert (row.ending, row.next_size and row.next_size["units"]) == ("restart", 4)


def test_a_larger_request_goes_to_the_end_of_the_queue(cast: Cast, waits: Workspace) -> None:
    small = post(browser(cast.bob), waits, pool="a100", gpus="1", cpu="1", memory_mib="1024")
    place = claim_of(small).place
    large = post(browser(cast.bob), waits, flavor="a100-4")
    assert claim_of(large).place > place


def test_a_shorter_lifetime_is_a_click_too(cast: Cast, waits: Workspace) -> None:
    row = post(browser(cast.bob), waits, max_runtime_minutes="60")
    assert row.max_runtime_minutes == 60
    assert claim_of(row).max_runtime_minutes == 60


def test_a_notice_of_the_start_can_be_requested_while_waiting(cast: Cast, waits: Workspace) -> None:
    bob = browser(cast.bob)
    assert not post(bob, waits, notify="false").notify
    assert "Notify me when it starts" in words(bob.get(f"/workspaces/{waits.pk}/"))
    assert post(bob, waits, notify="true").notify


def test_a_run_that_is_preempted_says_when_and_why(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob)
    at = timezone.now() + timedelta(minutes=9, seconds=30)
    Claim.objects.filter(holder_id=row.pk).update(reclaim_at=at, reclaim_code="owner_waits")
    bob = browser(cast.bob)
    page = bob.get(f"/workspaces/{row.pk}/")
    assert "It stops in 9 min" in words(page)
    assert 'data-code="owner_waits"' in page.content.decode()
    assert "its GPUs are being reclaimed" in words(bob.get("/"))


def test_a_refused_size_is_reported_and_changes_nothing(cast: Cast, waits: Workspace) -> None:
    bob = browser(cast.bob)
    answer = bob.post(f"/workspaces/{waits.pk}/instead/", {"flavor": "nowhere"}, follow=True)
    assert "nowhere" in words(answer)
    assert Workspace.objects.get(pk=waits.pk).run == waits.run


def test_an_absurd_number_changes_nothing(cast: Cast, waits: Workspace) -> None:
    bob = browser(cast.bob)
    for field in ("gpus", "cpu", "memory_mib", "max_runtime_minutes"):
        for value in ("1e999999", "1e-999999", "9" * 400, "NaN"):
            row = post(bob, waits, pool="a100", **{field: value})
            assert (row.run, row.units, row.max_runtime_minutes) == (waits.run, 4, None), (field, value)
