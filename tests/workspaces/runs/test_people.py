"""Pages of tenants: members, what they run, and changes by owners."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts import members
from accounts.access import Actor, role_in
from accounts.errors import Refusal
from accounts.models import AuditEntry, Membership, Role, User
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.concurrency import at_once
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Desired, Phase
from workspaces.runs import people

pytestmark = pytest.mark.django_db


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_members_see_who_is_in_the_tenant_and_their_workspaces(cast: Cast) -> None:
    make_workspace(cast, cast.bob, name="sweep")
    make_workspace(cast, cast.bob, Phase.STOPPED, name="old")
    for actor in (cast.victor, cast.bob):
        page = text(browser(actor), "/tenants/demo/")
        assert "sweep" in page
        assert "1 stopped" in page
        assert "alice@example.org" not in page
        assert 'name="role"' not in page
        assert "/remove/" not in page
    assert "alice@example.org" in text(browser(cast.alice), "/tenants/demo/")


def test_an_owner_adds_somebody_by_name_or_e_mail(cast: Cast) -> None:
    client = browser(cast.alice)
    answer = client.post("/tenants/demo/members/", {"username": "CAROL@example.org", "role": "viewer"})
    assert answer["Location"] == "/tenants/demo/"
    assert role_in(cast.carol, cast.demo) == Role.VIEWER
    User.objects.create_user("dora", "dora@example.org")
    client.post("/tenants/demo/members/", {"username": "dora", "role": "owner"})
    assert Membership.objects.get(user__username="dora").role == Role.OWNER


@pytest.mark.parametrize(
    ("who", "status", "words"),
    [
        ("nobody", 422, "There is no person with this name."),
        ("bob", 409, "bob is already a member, with the role member."),
        ("shared@example.org", 422, "More than one person has this e-mail address."),
        ("", 422, "This field is required."),
    ],
)
def test_a_refused_addition_is_explained_at_its_field_and_keeps_the_input(
    cast: Cast, who: str, status: int, words: str
) -> None:
    for name in ("dora", "eve"):
        User.objects.create_user(name, "shared@example.org")
    answer = browser(cast.alice).post("/tenants/demo/members/", {"username": who, "role": "viewer"})
    assert answer.status_code == status
    page = answer.content.decode()
    assert words in page
    assert f'value="{who}"' in page or not who
    assert '<option value="viewer" selected>' in page


def test_a_role_changes_unless_somebody_changed_it_meanwhile(cast: Cast) -> None:
    client = browser(cast.alice)
    client.post("/tenants/demo/members/bob/", {"role": "viewer", "was": "member"})
    assert role_in(cast.bob, cast.demo) == Role.VIEWER
    members.set_role(cast.admin, cast.demo, "bob", Role.OWNER)
    answer = client.post("/tenants/demo/members/bob/", {"role": "member", "was": "viewer"})
    assert answer.status_code == 409
    assert role_in(cast.bob, cast.demo) == Role.OWNER


def test_the_last_owner_stays(cast: Cast) -> None:
    client = browser(cast.alice)
    answer = client.post("/tenants/demo/members/alice/", {"role": "viewer", "was": "owner"})
    assert answer.status_code == 409
    assert "alice is the only owner of Demo." in answer.content.decode()
    assert client.post("/tenants/demo/members/alice/remove/").status_code == 409
    refused = AuditEntry.objects.filter(outcome="refused").values_list("data__code", flat=True)
    assert set(refused) == {"last_owner"}
    dora = User.objects.create_user("dora", is_active=False)
    Membership.objects.create(tenant=cast.demo, user=dora, role=Role.OWNER)
    assert client.post("/tenants/demo/members/alice/remove/").status_code == 409  # dora is deactivated


def test_a_removal_shows_what_runs_and_may_stop_it(cast: Cast) -> None:
    running = make_workspace(cast, cast.bob, name="sweep")
    client = browser(cast.alice)
    page = text(client, "/tenants/demo/members/bob/remove/")
    assert "Remove bob from Demo?" in page
    assert "sweep" in page
    assert role_in(cast.bob, cast.demo) == Role.MEMBER
    assert client.post("/tenants/demo/members/bob/remove/", {"stop": "on"})["Location"] == "/tenants/demo/"
    assert role_in(cast.bob, cast.demo) is None
    running.refresh_from_db()
    assert running.desired == Desired.STOPPED
    trail = AuditEntry.objects.filter(actor=cast.alice.user).order_by("id")
    assert list(trail.values_list("action", flat=True)) == ["member.remove", "workspace.stop"]


def test_a_role_from_a_group_is_marked_until_it_is_changed_by_hand(cast: Cast) -> None:
    Membership.objects.filter(user=cast.bob.user).update(by_group=True)
    client = browser(cast.alice)
    assert "from a single sign-on group" in text(client, "/tenants/demo/")
    assert "added again at their next sign-in" in text(client, "/tenants/demo/members/bob/remove/")
    client.post("/tenants/demo/members/bob/", {"role": "viewer", "was": "member"})
    assert not Membership.objects.get(user=cast.bob.user).by_group


def test_a_person_who_leaves_lands_on_the_list_of_tenants(cast: Cast) -> None:
    Membership.objects.filter(user=cast.bob.user).update(role=Role.OWNER)
    client = browser(cast.bob)
    assert "Leave Demo?" in text(client, "/tenants/demo/members/bob/remove/")
    assert client.post("/tenants/demo/members/bob/remove/")["Location"] == "/tenants/"
    assert client.get("/tenants/demo/").status_code == 404


def test_inaccessible_workspaces_are_shown_to_owners_alone(cast: Cast) -> None:
    make_workspace(cast, cast.bob, name="sweep")
    make_workspace(cast, cast.victor, name="looked")
    stopped = make_workspace(cast, cast.bob, Phase.STOPPED, name="old")
    make_workspace(cast, cast.admin, name="of-an-admin")
    members.remove(cast.alice, cast.demo, "bob")
    members.set_active(cast.admin, cast.victor.user, active=False)
    left = {
        seat.user.username: [row.name for row in seat.running]
        for seat in people.inaccessible_workspaces(cast.demo)
    }
    assert left == {"bob": ["sweep"], "victor": ["looked"]}
    page = text(browser(cast.alice), "/tenants/demo/")
    assert "Without a member" in page
    assert str(stopped.pk) in page  # an owner finds it, to delete it
    User.objects.filter(username="victor").update(is_active=True)
    assert "Without a member" not in text(
        browser(Actor(User.objects.get(username="victor"))), "/tenants/demo/"
    )


def test_the_list_has_a_persons_own_tenants_and_all_for_admins(cast: Cast) -> None:
    make_workspace(cast, cast.carol, name="elsewhere")
    page = text(browser(cast.bob), "/tenants/")
    assert "/tenants/demo/" in page
    assert "second" not in page
    page = text(browser(cast.admin), "/tenants/?search=SECO")
    assert "/tenants/second/" in page
    assert "/tenants/demo/" not in page


def test_a_page_of_a_tenant_takes_as_many_queries_for_many_people(
    cast: Cast, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        user = User.objects.create_user(f"person-{number}")
        Membership.objects.create(tenant=cast.demo, user=user)
        make_workspace(cast, Actor(user), name=f"exp-{number}")
    client = browser(cast.alice)
    with django_assert_max_num_queries(25):
        assert client.get("/tenants/demo/").status_code == 200


@pytest.mark.parametrize("name", ["a\0b", "a" * 300, "\u202ebob", "bob\nalice"])
def test_a_malformed_name_or_role_is_refused_at_its_field(cast: Cast, name: str) -> None:
    client = browser(cast.alice)
    for field, data in (
        ("username", {"username": name, "role": "viewer"}),
        ("role", {"username": "carol", "role": name}),
    ):
        answer = client.post("/tenants/demo/members/", data)
        assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/tenants/?search=%00&page=x", 200),
        ("/tenants/?page=99999999999999999999", 200),
        ("/tenants/demo/?page=-1", 200),
        ("/audit/?cursor=%00", 200),
        ("/audit/?since=0001-01-01&until=9999-12-31", 200),
        ("/audit/?search=%F0%9F%92%A9+%25+_+%5C", 200),
        ("/audit/?search=%00", 422),
        ("/audit/?since=2026-02-30", 422),
        ("/audit/?until=yesterday", 422),
        ("/audit/?outcome=maybe", 422),
    ],
)
def test_a_made_up_query_is_ignored_or_refused_on_its_page(cast: Cast, address: str, status: int) -> None:
    assert browser(cast.alice).get(address, follow=True).status_code == status


def outcomes_at_once(*actions: Callable[[], object]) -> list[str]:
    """Run the actions at once. Return the codes of their refusals, and "done" for the others, sorted."""

    def outcome(number: int) -> str:
        try:
            actions[number]()
        except Refusal as refusal:
            return refusal.code
        return "done"

    return sorted(at_once(outcome, len(actions)))


@pytest.mark.django_db(transaction=True)
def test_of_two_owners_who_remove_each_other_at_once_one_stays(cast: Cast) -> None:
    for name in ("bob", "victor"):
        Membership.objects.filter(user__username=name).update(role=Role.OWNER)
    outcomes = outcomes_at_once(
        lambda: members.remove(cast.bob, cast.demo, "victor"),
        lambda: members.remove(cast.victor, cast.demo, "bob"),
    )
    assert outcomes == ["done", "not_found"]
    assert cast.demo.memberships.filter(role=Role.OWNER).count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_two_admins_who_deactivate_each_other_at_once_one_stays(cast: Cast) -> None:
    other = Actor(User.objects.create_user("root", is_staff=True))
    outcomes = outcomes_at_once(
        lambda: members.set_active(cast.admin, other.user, active=False),
        lambda: members.set_active(other, cast.admin.user, active=False),
    )
    assert outcomes == ["admins_only", "done"]
    assert User.objects.filter(is_staff=True, is_active=True).count() == 1


def test_deactivation_ends_sessions_for_good(cast: Cast) -> None:
    client = browser(cast.bob)
    for active in (False, True):
        members.set_active(cast.admin, cast.bob.user, active=active)
        assert client.get("/profile/")["Location"].startswith("/sign-in/")
