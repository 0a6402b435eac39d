"""The first page: its workspaces by person and tenant, their next action, and the shares in words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Membership, Role, Tenant
from quotas.models import Quota, TenantLimit
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_many, make_workspace
from tests.workspaces.reading import words
from workspaces.models import Desired, Phase

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("phase", "says"),
    [
        (Phase.READY, "Open JupyterLab"),
        (Phase.WAITING, "Checking for a free slot."),
        (Phase.STARTING, "step 6 of 10"),
        (Phase.STOPPED, "Start"),
        (Phase.FAILED, "Berth does not know this message yet."),
    ],
)
def test_each_says_what_to_do_next(cast: Cast, phase: Phase, says: str) -> None:
    make_workspace(cast, cast.bob, phase)
    assert says in words(browser(cast.bob).get("/"))


def test_one_that_stops_soon_says_when(cast: Cast) -> None:
    make_workspace(cast, cast.bob, stops_at=timezone.now() + timedelta(minutes=20, seconds=30))
    assert "stops in 20 min · Extend" in words(browser(cast.bob).get("/"))


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (timedelta(hours=1, minutes=59, seconds=30), "stops in 1 h 59 min"),
        (timedelta(hours=4, seconds=30), "stops in 4 h"),
        (timedelta(days=2, hours=3, minutes=5), "stops in 2 d 3 h"),
    ],
)
def test_an_hour_more_is_seen_to_be_more(cast: Cast, left: timedelta, says: str) -> None:
    make_workspace(cast, cast.bob, stops_at=timezone.now() + left)
    assert says in words(browser(cast.bob).get("/"))


def test_shares_are_told_in_names_and_words(cast: Cast) -> None:
    TenantLimit.objects.create(tenant=cast.demo, cpu_millicores=10_000, memory_mib=64 * 1024, workspaces=3)
    make_workspace(cast, cast.bob)
    said = words(browser(cast.bob).get("/"))
    assert "Demo A100 1 of 4 GPUs in use" in said
    assert "Workspaces 1 of 3 running or starting" in said
    assert "4 of 10 cores in use" in said
    assert "16 GiB of 64 GiB in use" in said
    assert "reserved" not in said and "one person" not in said


def test_what_is_borrowed_and_limits_of_each_person_and_run_are_told(cast: Cast) -> None:
    TenantLimit.objects.create(
        tenant=cast.demo,
        storage_mib=2048 * 1024,
        person_gpus=3,
        person_workspaces=4,
        longest_runtime_minutes=480,
    )
    Quota.objects.filter(tenant=cast.demo).update(nominal_gpus=1, borrowing_limit_gpus=3)
    for name in ("one", "two"):
        make_workspace(cast, cast.bob, name=name)
    bob = browser(cast.bob)
    for page in ("/", "/tenants/demo/"):
        said = words(bob.get(page))
        assert "2 of 4 GPUs in use, 1 of them borrowed" in said
        assert "of 2 TiB reserved" in said or "of 2048 GiB promised" in said
        assert "Your own GPUs 2 of 3 that one person may use" in said
        assert "Your own workspaces 2 of 4 that one person may run" in said
        assert "Longest runtime: 8 hours at a time; files are kept." in said
    form = words(bob.get("/launch/"))
    assert "1 of 3 GPUs of one person (your own)" in form
    assert "2 of 4 workspaces of one person (your own)" in form


def test_the_choice_of_a_tenant_narrows_the_page(cast: Cast) -> None:
    Membership.objects.create(tenant=cast.second, user=cast.bob.user, role=Role.MEMBER)
    make_workspace(cast, cast.bob, name="in-demo")
    bob = browser(cast.bob)
    bob.post("/tenant/", {"tenant": "second"})
    said = words(bob.get("/"))
    assert "in-demo" not in said
    assert "There are no workspaces in Second." in said
    assert "Your first workspace" not in said


def test_the_form_begins_in_the_chosen_tenant(cast: Cast) -> None:
    Membership.objects.create(tenant=cast.second, user=cast.bob.user, role=Role.MEMBER)
    make_workspace(cast, cast.bob)
    bob = browser(cast.bob)
    bob.post("/tenant/", {"tenant": "second"})
    assert '<option value="second" selected>' in bob.get("/launch/").content.decode()


def test_deleted_ones_are_found_by_their_own_person_alone(cast: Cast) -> None:
    make_workspace(cast, cast.bob, Phase.DELETED, name="gone", deleted_at=timezone.now())
    assert "gone" in words(browser(cast.bob).get("/?show=deleted"))
    assert "gone" not in words(browser(cast.bob).get("/?show=everyone"))
    assert "gone" not in words(browser(cast.alice).get("/?show=deleted"))


def names(answer: Any) -> list[str]:
    return [workspace.name for workspace, *_ in answer.context["rows"]]


def test_the_list_is_searched_filtered_and_sorted(cast: Cast) -> None:
    make_workspace(cast, cast.bob, name="b")
    make_workspace(cast, cast.bob, Phase.STOPPED, name="a")
    make_workspace(cast, cast.alice, name="c", node="gpu-9")
    bob = browser(cast.bob)
    assert names(bob.get("/?sort=name")) == ["a", "b"]
    assert names(bob.get("/?phase=stopped")) == ["a"]
    assert names(bob.get("/?search=B")) == ["b"]
    assert names(bob.get("/?show=everyone&owner=Alice")) == ["c"]
    assert names(bob.get("/?show=everyone&search=alice+gpu-9")) == ["c"]
    assert names(bob.get("/?search=nothing")) == []
    assert bob.get("/?phase=nonsense").status_code == 422
    assert bob.get("/?cursor=forged").status_code == 302
    api = bob.get("/api/v1/workspaces/?ordering=name&search=gpu-9&owner=alice&phase=ready").json()
    assert [one["name"] for one in api["results"]] == ["c"]
    assert [one["name"] for one in bob.get("/api/v1/workspaces/?ordering=name").json()["results"]] == [*"abc"]
    assert bob.get("/api/v1/workspaces/?ordering=owner").json()["error"]["fields"].keys() == {"ordering"}


def test_pages_follow_each_other_whatever_is_launched_meanwhile(cast: Cast) -> None:
    for name in "abc":
        make_workspace(cast, cast.bob, name=name)
    bob = browser(cast.bob)
    first = bob.get("/?limit=2")
    assert names(first) == ["c", "b"]
    make_workspace(cast, cast.bob, name="d")
    assert names(bob.get(f"/?limit=2&cursor={first.context['following']}")) == ["a"]


def test_several_are_stopped_after_a_question_and_others_are_left_alone(cast: Cast) -> None:
    mine, stopped = make_workspace(cast, cast.bob), make_workspace(cast, cast.bob, Phase.STOPPED, name="off")
    hers, elsewhere = make_workspace(cast, cast.alice), make_workspace(cast, cast.carol)
    bob = browser(cast.bob)
    asked = {
        "verb": "stop",
        "chosen": [row.pk for row in (mine, stopped, hers, elsewhere)],
        "next": "/?sort=name",
    }
    answer = bob.post("/workspaces/bulk/", asked)
    assert set(answer.context["rows"]) == {mine, stopped, hers}
    mine.refresh_from_db()
    assert mine.desired == Desired.RUNNING
    assert bob.post("/workspaces/bulk/", asked | {"sure": "1"}).headers["Location"] == "/?sort=name"
    for row, desired in ((mine, "stopped"), (hers, "running"), (elsewhere, "running")):
        row.refresh_from_db()
        assert row.desired == desired


def test_a_row_offers_what_its_reader_may_do_and_comes_back_to_the_list(cast: Cast) -> None:
    ready = make_workspace(cast, cast.bob)
    offered = {
        actor: browser(actor).get("/?show=everyone").context["rows"][0][2]
        for actor in (cast.bob, cast.victor)
    }
    assert {verb for verb, may in offered[cast.bob].items() if may} >= {"stop", "restart", "delete", "clone"}
    assert not any(offered[cast.victor].values())
    bob = browser(cast.bob)
    assert (
        'value="/?phase=ready"'
        in bob.get(f"/workspaces/{ready.pk}/stop/?next=/%3Fphase=ready").content.decode()
    )
    stopped = bob.post(f"/workspaces/{ready.pk}/stop/", {"next": "/?phase=ready"})
    assert stopped.headers["Location"] == "/?phase=ready"


def queries_of(path: str, actor: Any) -> int:
    client = browser(actor)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


@pytest.mark.parametrize("show", ["mine", "everyone", "deleted"])
def test_thirty_take_as_many_queries_as_three(cast: Cast, show: str) -> None:
    deleted_at = timezone.now() if show == "deleted" else None
    rests = [phase for phase in Phase if phase not in (Phase.DELETING, Phase.DELETED)]
    phases = [Phase.DELETED] if show == "deleted" else rests

    make_many(cast, cast.bob, 3, *phases, deleted_at=deleted_at)
    few = queries_of(f"/?show={show}", cast.bob)
    make_many(cast, cast.bob, 27, *phases, begin=3, deleted_at=deleted_at)
    assert queries_of(f"/?show={show}", cast.bob) <= few


def test_an_admin_sees_the_shares_of_some_tenants_and_not_of_hundreds(cast: Cast) -> None:
    few = queries_of("/", cast.admin)
    for number in range(20):
        tenant = Tenant.objects.create(slug=f"t-{number}", name=f"Team {number}")
        Quota.objects.create(tenant=tenant, pool=cast.pool, nominal_gpus=1)
    assert queries_of("/", cast.admin) <= few
    assert words(browser(cast.admin).get("/")).count("GPUs in use") == 8


def test_a_page_of_a_workspace_takes_as_many_queries_for_a_long_story(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    path = f"/workspaces/{workspace.pk}/"
    few = queries_of(path, cast.bob)
    for number in range(40):
        workspace.events.create(number=1000 + number, at=timezone.now(), code="ready")
    assert queries_of(path, cast.bob) <= few
