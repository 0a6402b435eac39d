import pytest

from accounts.access import Actor, owned_tenants, role_in, sight, tenant_by_slug, visible_tenants
from accounts.credentials import tokens
from accounts.errors import NotAllowed, NotThere
from accounts.models import Membership, Role, Scope
from tests.accounts.people import People


def slugs(actor: Actor) -> set[str]:
    return {tenant.slug for tenant in visible_tenants(actor)}


def with_token(actor: Actor, *scopes: str, **limits: object) -> Actor:
    token, _secret = tokens.issue(actor.user, "script", scopes or ["read"], **limits)  # type: ignore[arg-type]
    return Actor(actor.user, token)


def test_people_see_their_own_tenants_and_admins_all(people: People) -> None:
    assert slugs(people.alice) == slugs(people.victor) == {"demo"}
    assert slugs(people.carol) == {"second"}
    assert slugs(people.admin) == {"demo", "second"}


def test_a_token_bound_to_a_tenant_sees_that_one_alone(people: People) -> None:
    bound = with_token(people.admin, "admin", tenant=people.second)
    assert slugs(bound) == {"second"}
    assert role_in(bound, people.demo) is None
    assert role_in(bound, people.second) == Role.OWNER


def test_what_each_of_many_sees_is_what_they_see_alone(people: People) -> None:
    actors = [people.alice, people.carol, people.admin]
    actors += [with_token(actor) for actor in actors]
    tenants = (people.demo, people.second)
    actors += [
        with_token(people.alice, tenant=people.demo),
        with_token(people.admin, "admin", tenant=people.second),
    ]
    sees = sight(actors, {tenant.pk for tenant in tenants})
    for actor in actors:
        assert {tenant.slug for tenant in tenants if sees(actor, tenant.pk)} == slugs(actor)


def test_roles_are_those_of_the_membership_and_admins_act_as_owners(people: People) -> None:
    roles = {
        name: role_in(getattr(people, name), people.demo)
        for name in ("alice", "bob", "victor", "carol", "admin")
    }
    assert roles == {"alice": "owner", "bob": "member", "victor": "viewer", "carol": None, "admin": "owner"}


def test_owned_tenants_are_where_one_decides_about_others(people: People) -> None:
    assert list(owned_tenants(people.alice)) == [people.demo]
    assert not owned_tenants(people.bob).exists()
    assert owned_tenants(people.admin).count() == 2


def test_a_foreign_tenant_is_refused_in_the_words_of_one_that_does_not_exist(people: People) -> None:
    with pytest.raises(NotThere) as foreign:
        tenant_by_slug(people.carol, "demo")
    with pytest.raises(NotThere) as missing:
        tenant_by_slug(people.carol, "nothing")
    assert vars(foreign.value) == vars(missing.value)
    assert tenant_by_slug(people.bob, "demo") == people.demo


def test_a_session_has_every_scope_but_admin(people: People) -> None:
    for scope in (Scope.READ, Scope.WORKSPACES, Scope.JOBS, Scope.VOLUMES):
        people.victor.require(scope)
    with pytest.raises(NotAllowed) as refusal:
        people.alice.require(Scope.ADMIN)
    assert refusal.value.code == "admins_only"
    people.admin.require(Scope.ADMIN)


def test_a_token_has_its_own_scopes_only_even_of_an_admin(people: People) -> None:
    script = with_token(people.admin, "read", "jobs")
    script.require(Scope.JOBS)
    for scope in (Scope.WORKSPACES, Scope.ADMIN):
        with pytest.raises(NotAllowed) as refusal:
            script.require(scope)
        assert refusal.value.code == "scope_missing"


def test_an_admins_token_without_that_scope_has_the_rights_of_their_memberships(people: People) -> None:
    script = with_token(people.admin, "read", "workspaces")
    assert (slugs(script), role_in(script, people.demo), owned_tenants(script).count()) == (set(), None, 0)
    assert not sight([script], {people.demo.pk})(script, people.demo.pk)
    Membership.objects.create(user=people.admin.user, tenant=people.demo, role=Role.MEMBER)
    assert (slugs(script), role_in(script, people.demo)) == ({"demo"}, Role.MEMBER)
    assert role_in(with_token(people.admin, "admin"), people.second) == Role.OWNER


def test_who_is_no_longer_staff_loses_the_admin_scope_of_old_tokens(people: People) -> None:
    script = with_token(people.admin, "admin")
    people.admin.user.is_staff = False
    assert not script.may(Scope.ADMIN)
