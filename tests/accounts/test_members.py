from collections.abc import Iterator

import pytest

from accounts import members, signals
from accounts.access import role_in
from accounts.credentials import tickets
from accounts.errors import Conflict, Invalid, NotAllowed, NotThere
from accounts.models import AuditEntry, IdempotentAnswer, Role, SocketTicket, Tenant
from tests.accounts.people import People, heard


@pytest.fixture
def told() -> Iterator[list[str]]:
    """Names of the people in each `access_changed` signal."""
    with heard(signals.access_changed) as names:
        yield names


def test_an_owner_adds_changes_and_removes_members(people: People, told: list[str]) -> None:
    members.set_role(people.alice, people.demo, "carol", Role.VIEWER)
    assert role_in(people.carol, people.demo) == Role.VIEWER
    members.set_role(people.alice, people.demo, "carol", Role.MEMBER)
    assert role_in(people.carol, people.demo) == Role.MEMBER
    members.remove(people.alice, people.demo, "carol")
    assert role_in(people.carol, people.demo) is None
    assert told == ["carol"] * 3
    trail = AuditEntry.objects.order_by("id").values_list("action", "tenant__slug")
    assert list(trail) == [("member.add", "demo"), ("member.change", "demo"), ("member.remove", "demo")]


@pytest.mark.parametrize("name", ["bob", "victor"])
def test_others_change_no_members(people: People, told: list[str], name: str) -> None:
    actor = getattr(people, name)
    with pytest.raises(NotAllowed):
        members.set_role(actor, people.demo, name, Role.OWNER)
    with pytest.raises(NotAllowed):
        members.remove(actor, people.demo, "alice")
    assert told == []


def test_a_tenant_keeps_an_owner(people: People) -> None:
    with pytest.raises(Conflict):
        members.remove(people.alice, people.demo, "alice")
    with pytest.raises(Conflict):
        members.set_role(people.alice, people.demo, "alice", Role.MEMBER)
    members.set_role(people.alice, people.demo, "bob", Role.OWNER)
    members.remove(people.alice, people.demo, "alice")
    assert role_in(people.alice, people.demo) is None


def test_somebody_unknown_cannot_be_let_in_and_who_is_not_in_cannot_be_taken_out(people: People) -> None:
    with pytest.raises(Invalid) as refusal:
        members.set_role(people.alice, people.demo, "nobody", Role.MEMBER)
    assert list(refusal.value.fields) == ["username"]
    with pytest.raises(NotThere):
        members.remove(people.alice, people.demo, "carol")


def test_only_admins_make_tenants(people: People) -> None:
    with pytest.raises(NotAllowed):
        members.create_tenant(people.alice, slug="third", name="Third")
    tenant = members.create_tenant(people.admin, slug="third", name="Third")
    assert tenant.namespace == "berth-third"
    with pytest.raises(Conflict):
        members.create_tenant(people.admin, slug="third", name="Other")


@pytest.mark.parametrize(
    "slug",
    ["", "Vision", "a" * 41, "-a", "a-", "a_b", "kube-x", "agent", "system", "default", "public", "a\n"],
)
def test_slugs_that_cannot_name_a_namespace_are_refused(people: People, slug: str) -> None:
    with pytest.raises(Invalid) as refusal:
        members.create_tenant(people.admin, slug=slug, name="x")
    assert list(refusal.value.fields) == ["slug"]
    assert Tenant.objects.count() == 2


def test_who_loses_access_loses_tickets_and_answers_kept_for_retries(people: People) -> None:
    tickets.issue(people.bob)
    IdempotentAnswer.objects.create(user=people.bob.user, key="k", request_digest="d", status=201, body="…")
    members.remove(people.alice, people.demo, "bob")
    assert not SocketTicket.objects.exists()
    assert not IdempotentAnswer.objects.exists()


def test_only_admins_deactivate_people(people: People, told: list[str]) -> None:
    with pytest.raises(NotAllowed):
        members.set_active(people.alice, people.bob.user, active=False)
    members.set_active(people.admin, people.bob.user, active=False)
    people.bob.user.refresh_from_db()
    assert not people.bob.user.is_active
    assert told == ["bob"]
