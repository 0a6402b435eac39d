"""The launch form: its live forecast, its limits, and that nothing is launched twice."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.utils import timezone

from quotas.models import Booking, Claim, Flavor, TenantLimit
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_flavor, make_pool, make_workspace
from tests.workspaces.reading import chosen, text_of, value_of, words
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

SENT = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1", "name": "exp", "notify": "on"}


# --- Refused launches, which keep the form's values


@pytest.mark.parametrize(
    "faulty",
    [
        {"name": "-", "env": "HOME=/tmp", "repository": "not an address"},
        {"env": "A=1\nB"},
        {"env": "A=1\nA=2"},
        {"disk_gib": "16385"},
        {"name": ""},
    ],
    ids=str,
)
def test_a_launch_with_faults_names_each_field(cast: Cast, faulty: dict[str, str]) -> None:
    page = browser(cast.bob).post("/launch/", SENT | faulty)
    assert (page.status_code, set(page.context["form"].errors)) == (422, set(faulty))
    for name in faulty:
        assert f'id="id_{name}_error"' in page.content.decode()
    assert not Workspace.objects.exists()


def test_a_refused_form_keeps_what_was_filled_in(cast: Cast) -> None:
    page = browser(cast.bob).post(
        "/launch/", SENT | {"name": "-", "disk_gib": "7", "env": "A=<b>", "flavor": "a100-1"}
    )
    assert (value_of(page, "disk_gib"), chosen(page, "flavor")) == ("7", "a100-1")
    assert "A=<b>" in text_of(page)
    assert "no-store" in page["Cache-Control"]


def test_more_than_the_tenant_may_have_is_refused_at_the_size(cast: Cast) -> None:
    make_flavor(cast, 8)
    page = browser(cast.bob).post("/launch/", SENT | {"flavor": "a100-8"})
    assert page.status_code == 422
    error = re.search(r'id="size-error">(.*?)</div>\s*</div>', page.content.decode(), re.DOTALL)
    assert error
    assert "your team can use at most 4" in error[1]


def test_what_is_not_chosen_is_asked_for(cast: Cast) -> None:
    page = browser(cast.bob).post("/launch/", {"tenant": "demo"})
    assert set(page.context["form"].errors) == {"image", "flavor", "name"}


def test_an_invalid_form_token_is_ignored(cast: Cast) -> None:
    assert browser(cast.bob).post("/launch/", SENT | {"once": "nonsense"}).status_code == 302


def test_a_forecast_launches_nothing(cast: Cast) -> None:
    page = browser(cast.bob).post("/launch/", SENT | {"look": "1"})
    assert page.status_code == 200
    assert "Starts now on A100" in words(page)
    assert value_of(page, "name") == "exp"
    assert not Workspace.objects.exists()


# --- Launched


def test_what_the_form_says_is_launched(cast: Cast) -> None:
    sent = SENT | {
        "disk_gib": "2",
        "max_runtime_minutes": "240",
        "env": "A=1",
        "repository": "https://e.org/a.git",
    }
    del sent["notify"]
    browser(cast.bob).post("/launch/", sent)
    made = Workspace.objects.get()
    assert (made.disk_mib, made.max_runtime_minutes, made.notify) == (2048, 240, False)
    assert (made.env, made.repository) == ({"A": "1"}, "https://e.org/a.git")


def test_a_form_that_is_sent_twice_launches_once(cast: Cast) -> None:
    bob = browser(cast.bob)
    once = SENT | {"once": value_of(bob.get("/launch/"), "once")}
    first, second = bob.post("/launch/", once), bob.post("/launch/", once)
    assert Workspace.objects.count() == 1
    assert first["Location"] == second["Location"] == f"/workspaces/{Workspace.objects.get().pk}/"


def test_a_changed_form_is_another_launch(cast: Cast) -> None:
    bob = browser(cast.bob)
    once = SENT | {"once": value_of(bob.get("/launch/"), "once")}
    bob.post("/launch/", once)
    bob.post("/launch/", once | {"name": "another"})
    assert Workspace.objects.count() == 2


def test_a_form_token_counts_for_its_own_person_alone(cast: Cast) -> None:
    once = SENT | {"once": value_of(browser(cast.bob).get("/launch/"), "once")}
    browser(cast.bob).post("/launch/", once)
    browser(cast.alice).post("/launch/", once)
    assert {row.owner for row in Workspace.objects.all()} == {cast.bob.user, cast.alice.user}


def test_a_refused_form_may_be_sent_again(cast: Cast) -> None:
    bob = browser(cast.bob)
    once = SENT | {"once": value_of(bob.get("/launch/"), "once")}
    limit = TenantLimit.objects.create(tenant=cast.demo, workspaces=0)
    assert bob.post("/launch/", once).status_code == 422
    limit.delete()
    assert bob.post("/launch/", once).status_code == 302


def test_a_gpu_is_found_by_what_it_must_have(cast: Cast) -> None:
    find = {
        "flavor": "*",
        "gpus": "2",
        "gpu_memory_gb": "40",
        "compute_capability": "8.0",
        "cpu": "6",
        "memory_gib": "32",
    }
    browser(cast.bob).post("/launch/", SENT | find)
    made = Workspace.objects.get()
    assert (made.pool, made.units, made.cpu_millicores, made.memory_mib) == (cast.pool, 2, 6000, 32 * 1024)


def test_a_gpu_that_nobody_has_is_said_beside_the_form(cast: Cast) -> None:
    find = {"flavor": "*", "gpus": "1", "gpu_memory_gb": "200"}
    answer = browser(cast.bob).post("/launch/answer/", SENT | find)
    assert "No pool that your team can use has such a GPU" in words(answer)
    assert browser(cast.bob).post("/launch/", SENT | find).status_code == 422


def test_a_gpu_that_is_there_but_not_with_so_much_memory_says_which_is_too_much(cast: Cast) -> None:
    find = {"flavor": "*", "gpus": "1", "gpu_memory_gb": "40", "memory_gib": "9000"}
    said = words(browser(cast.bob).post("/launch/answer/", SENT | find))
    assert "has such a GPU" not in said
    assert "9000 GiB" in said


def test_fields_of_find_a_gpu_are_ignored_unless_it_is_chosen(cast: Cast) -> None:
    assert (
        browser(cast.bob).post("/launch/", SENT | {"gpus": "nonsense", "memory_gib": "-4"}).status_code == 302
    )


# --- The live answer


def test_the_live_answer_says_when_it_would_start(cast: Cast) -> None:
    bob = browser(cast.bob)
    assert "Starts now on A100 (8 of 8 free)" in words(bob.post("/launch/answer/", SENT))
    cast.pool.quotas.filter(tenant=cast.demo).delete()
    assert "This cannot start" in words(bob.post("/launch/answer/", SENT))
    assert bob.post("/launch/answer/", SENT | {"tenant": "second"}).status_code == 404


def test_while_a_booking_of_the_tenant_is_on_the_form_and_the_workspace_say_so(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    booking = Booking.objects.create(
        pool=cast.pool,
        tenant=cast.demo,
        created_by=cast.alice.user,
        title="Lecture",
        starts_at=timezone.now() - timedelta(hours=1),
        ends_at=timezone.now() + timedelta(hours=1),
        places=2,
        units_each=1,
    )
    bob = browser(cast.bob)
    assert "“Lecture”" in words(bob.post("/launch/answer/", SENT))
    assert "(5 of 8 free)" in words(bob.post("/launch/answer/", SENT))
    assert "5 of 8 GPUs free · 2 booked" in words(bob.get("/launch/"))
    assert bob.get("/gpus/").context["maps"][0].units["free"] == 5
    assert bob.get("/api/v1/pools/").json()["results"][0]["counted"]["free"] == 5
    Claim.objects.filter(holder_id=workspace.pk).update(booking=booking)
    assert "its GPUs are booked until" in words(browser(cast.bob).get(f"/workspaces/{workspace.pk}/"))
    Booking.objects.update(places=1)  # and that place is taken
    assert "Lecture" not in words(browser(cast.bob).post("/launch/answer/", SENT))


def test_a_name_that_is_taken_is_said_while_it_is_typed(cast: Cast) -> None:
    make_workspace(cast, cast.bob, name="exp")
    make_workspace(cast, cast.alice, name="hers")
    bob = browser(cast.bob)
    for name, is_said in (("exp", True), ("hers", False), ("", False), ("-", True)):
        answer = bob.post("/launch/answer/", SENT | {"name": name}).content.decode()
        faults = re.search(r'<div id="id_name_error"[^>]*>(.*)</div>\s*<div id="same"', answer, re.DOTALL)
        assert faults
        assert ("error" in faults[1]) == is_said, name
    assert bob.post("/launch/", SENT).context["form"].errors.keys() == {"name"}


def test_what_starts_now_comes_first_and_is_selected(cast: Cast) -> None:
    """Also instead of the last size, if that would wait; a link's size stays."""
    bob = browser(cast.bob)
    other = make_pool(cast, "other")
    Flavor.objects.create(
        slug="other-1", name="One", pool=other, units=1, cpu_millicores=1000, memory_mib=1024
    )
    assert chosen(bob.get("/launch/"), "flavor") == "other-1"  # the smallest
    make_workspace(cast, cast.bob)
    assert chosen(bob.get("/launch/"), "flavor") == "a100-1"  # the last one
    cast.cluster.nodes.filter(name__startswith="gpu-").update(unschedulable=True)
    page = bob.get("/launch/")
    assert chosen(page, "flavor") == "other-1"
    assert page.context["pools"][0].pool["slug"] == "other"
    assert "data-instead" in page.content.decode()
    assert chosen(bob.get("/launch/?flavor=a100-1"), "flavor") == "a100-1"


def test_a_launch_that_would_wait_says_why_and_what_starts_now(cast: Cast) -> None:
    make_flavor(cast, 4)
    make_workspace(cast, cast.alice)
    answer = browser(cast.bob).post("/launch/answer/", SENT | {"flavor": "a100-4"})
    assert "You would wait, as the next in the queue" in words(answer)
    assert 'data-code="quota_full"' in answer.content.decode()
    assert "1 GPU" not in words(answer)  # nobody is ahead
    assert "One A100" in words(answer) and "flavor=a100-1&amp;tenant=demo" in answer.content.decode()


def test_the_form_shows_what_the_tenant_may_still_use(cast: Cast) -> None:
    TenantLimit.objects.create(tenant=cast.demo, cpu_millicores=10_000, workspaces=3)
    make_workspace(cast, cast.alice)
    said = words(browser(cast.bob).get("/launch/"))
    assert "6 of 10 CPU cores" in said
    assert "2 of 3 workspaces" in said
    assert "your team uses 1 of 4" in said


def test_the_curl_line_has_the_names_of_secrets_and_not_their_values(cast: Cast) -> None:
    sent = SENT | {"env": "A=1", "secret_env": "TOKEN=s3cret-value", "max_runtime_minutes": "60"}
    page = browser(cast.bob).post("/launch/answer/", sent)
    assert "s3cret-value" not in page.content.decode()
    body = json.loads(re.search(r"-d '(.*?)'</pre>", text_of(page), re.DOTALL)[1])  # type: ignore[index]
    assert body == {
        "tenant": "demo",
        "name": "exp",
        "image": "jupyter",
        "flavor": "a100-1",
        "max_runtime_minutes": 60,
        "env": {"A": "1"},
        "secret_env": {"TOKEN": "…"},
    }


def test_the_curl_line_launches_the_same(cast: Cast) -> None:
    find = {"flavor": "*", "gpus": "2", "gpu_memory_gb": "40", "ecc": "", "cpu": "6", "memory_gib": "32"}
    bob = browser(cast.bob)
    page = bob.post("/launch/answer/", SENT | find)
    body = re.search(r"-d '(.*?)'</pre>", text_of(page), re.DOTALL)
    assert body
    assert bob.post("/api/v1/workspaces/", body[1], content_type="application/json").status_code == 201
    assert Workspace.objects.get().units == 2


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://bob:s3cret-value@e.org/a.git", "https://e.org/a.git"),
        ("https://s3cret-value@e.org/a.git", "https://e.org/a.git"),
        ("https://bob:s3cret-value@more@e.org/@team/a.git", "https://e.org/@team/a.git"),
        ("ssh://git:s3cret-value@e.org/a.git", "ssh://git@e.org/a.git"),
    ],
)
def test_credentials_of_a_repository_are_shown_to_nobody_else(cast: Cast, address: str, said: str) -> None:
    bob = browser(cast.bob)
    page = bob.post("/launch/answer/", SENT | {"repository": address})
    row = make_workspace(cast, cast.bob, repository=address)
    of_workspace = bob.get(f"/workspaces/{row.pk}/settings/")
    curl_line = re.search(r"-d '(.*?)'</pre>", text_of(of_workspace), re.DOTALL)
    link = re.search(r"http://testserver/launch/\?([^<]*)</pre>", text_of(page))
    assert curl_line
    assert link
    assert "s3cret-value" not in page.content.decode() + curl_line[1]
    assert parse_qs(link[1])["repository"] == [said]
    for shown in (text_of(page), curl_line[1]):
        assert f'"repository": "{said}"' in shown
    for told in (page, of_workspace):
        assert "data-without-credentials" in told.content.decode()


@pytest.mark.parametrize("address", ["https://e.org/@team/a.git", "ssh://git@e.org/a.git", "git@e.org:a.git"])
def test_an_address_without_credentials_stays_as_it_is(cast: Cast, address: str) -> None:
    page = browser(cast.bob).post("/launch/answer/", SENT | {"repository": address})
    assert f'"repository": "{address}"' in text_of(page)
    assert "data-without-credentials" not in page.content.decode()


def test_the_link_leads_to_the_same_form(cast: Cast) -> None:
    bob = browser(cast.bob)
    page = bob.post("/launch/answer/", SENT | {"name": "mine", "disk_gib": "3", "env": "A=1"})
    link = re.search(r"http://testserver(/launch/\?[^<]*)</pre>", text_of(page))
    assert link
    assert "A=1" not in link[1]
    again = bob.get(link[1])
    assert (value_of(again, "name"), value_of(again, "disk_gib")) == ("mine", "3")


# --- Growing


def test_the_form_takes_as_many_queries_for_forty_sizes_as_for_four(
    cast: Cast, django_assert_max_num_queries: Any
) -> None:
    make_workspace(cast, cast.alice)
    for number in range(40):
        Flavor.objects.create(
            slug=f"size-{number}",
            name=f"Size {number}",
            pool=cast.pool,
            units=4,
            cpu_millicores=1000 * (number + 1),
            memory_mib=1024,
        )
    bob = browser(cast.bob)
    with django_assert_max_num_queries(70):
        assert "You would wait" in words(bob.get("/launch/?flavor=size-3"))
