"""People and tenants in the admin: their access, and the previews before it changes."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.signals import pre_save
from django.test import Client

from accounts.credentials import sessions, tokens
from accounts.models import AuditEntry, Tenant, User
from accounts.trail.trail_words import sentence
from portal.admin.activation import ChangesOfAccess, Deactivate, Reactivate
from tests.admin_forms import confirm, hidden, preview, text_of
from tests.cast import Cast
from tests.shared.concurrency import at_once
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

pytestmark = pytest.mark.django_db

PEOPLE = "/admin/accounts/user/"
INLINES = ("memberships", "workspaces", "jobs", "tokens", "ssh_keys")


def empty(*inlines: str) -> dict[str, Any]:
    return {f"{name}-{count}_FORMS": "0" for name in inlines for count in ("TOTAL", "INITIAL")}


def form_of(person: User, **changes: Any) -> dict[str, Any]:
    """Form data as a browser sends it, with every box ticked."""
    shown = {f"initial-{name}": str(getattr(person, name)) for name in ("is_active", "is_staff")}
    shown |= {"username": person.username, "email": person.email, "is_active": "on", "is_staff": "on"}
    return {**shown, **empty(*INLINES), **changes}


def add(client: Client, **fields: str) -> Any:
    return client.post(f"{PEOPLE}add/", {"username": "dora", **empty("memberships"), **fields})


def test_a_new_person_signs_in_with_the_password_that_is_shown_once(cast: Cast, admin: Client) -> None:
    page = add(admin, way="password")
    password = text_of(page).split("<output>")[1].split("</output>")[0]
    assert Client().login(username="dora", password=password)
    entry = AuditEntry.objects.get(action="user.create")
    assert password not in str(entry.data)
    assert sentence(entry) == f"{cast.admin.user.username} created an account for dora."
    dora = User.objects.get(username="dora")
    assert dora.password_is_first
    assert password not in text_of(admin.get(f"{PEOPLE}{dora.pk}/change/"))


def test_a_person_of_the_sign_on_alone_has_no_password(admin: Client) -> None:
    assert "<output>" not in text_of(add(admin, way="sign-on"))
    dora = User.objects.get(username="dora")
    assert (dora.has_usable_password(), dora.password_is_first) == (False, False)


def test_a_new_person_may_be_put_into_a_tenant_at_once(cast: Cast, admin: Client) -> None:
    row = {
        "memberships-TOTAL_FORMS": "1",
        "memberships-0-tenant": str(cast.demo.pk),
        "memberships-0-role": "member",
    }
    add(admin, way="password", **row)
    assert cast.demo.memberships.filter(user__username="dora", role="member").exists()


def test_deactivation_says_what_runs_and_what_stops_working(cast: Cast, admin: Client) -> None:
    make_workspace(cast, cast.bob, name="train")
    tokens.issue(cast.bob.user, "laptop", ["read"])
    page = preview(admin, PEOPLE, "deactivate", cast.bob.user)
    assert "Workspaces and jobs that continue to run or wait: train in Demo." in text_of(page)
    assert "Tokens that stop working: laptop." in text_of(page)
    assert User.objects.get(username="bob").is_active
    assert "1 person is deactivated." in text_of(confirm(admin, PEOPLE, page))
    assert not User.objects.get(username="bob").is_active


def test_what_changed_since_the_look_is_shown_before_anything_is_done(cast: Cast, admin: Client) -> None:
    page = preview(admin, PEOPLE, "deactivate", cast.bob.user, cast.carol.user)
    make_workspace(cast, cast.bob, name="train")
    again = confirm(admin, PEOPLE, page)
    assert "Something changed since you opened this page. Nothing was done." in text_of(again)
    assert text_of(again).count('<span class="mark">') == 1
    assert User.objects.filter(is_active=False).count() == 0
    confirm(admin, PEOPLE, again)
    assert set(User.objects.filter(is_active=False)) == {cast.bob.user, cast.carol.user}


def test_deactivated_people_come_back_with_what_they_had(cast: Cast, admin: Client) -> None:
    User.objects.filter(username="bob").update(is_active=False)
    page = preview(admin, PEOPLE, "reactivate", cast.bob.user)
    assert "Tenants they are in: Demo." in text_of(page)
    confirm(admin, PEOPLE, page)
    assert User.objects.get(username="bob").is_active


def test_making_somebody_an_admin_is_on_record(cast: Cast, admin: Client) -> None:
    bob = cast.bob.user
    assert admin.post(f"{PEOPLE}{bob.pk}/change/", form_of(bob)).status_code == 302
    assert User.objects.get(pk=bob.pk).is_staff
    assert AuditEntry.objects.get(action="user.make_admin").target_id == str(bob.pk)


def test_who_is_signed_out_while_their_page_is_saved_stays_so(cast: Cast, admin: Client) -> None:
    bob = cast.bob.user

    def sign_out(instance: User, **_: Any) -> None:
        sessions.end_all(instance)

    pre_save.connect(sign_out, sender=User)
    try:
        admin.post(f"{PEOPLE}{bob.pk}/change/", form_of(bob, email="new@example.org"))
    finally:
        pre_save.disconnect(sign_out, sender=User)
    bob.refresh_from_db()
    assert (bob.email, bob.sign_outs) == ("new@example.org", 1)


@pytest.mark.parametrize("field", ["is_active", "is_staff"])
def test_a_form_from_before_access_was_taken_does_not_give_it_back(
    cast: Cast, admin: Client, field: str
) -> None:
    bob, page = cast.bob.user, f"{PEOPLE}{cast.bob.user.pk}/change/"
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    opened = {name: said for name, said in hidden(admin.get(page)).items() if name.startswith("initial-is_")}
    User.objects.filter(pk=bob.pk).update(**{field: False})
    admin.post(page, form_of(bob, email="new@example.org") | opened)
    assert User.objects.values("email", field).get(pk=bob.pk) == {"email": "new@example.org", field: False}


@pytest.mark.parametrize("field", ["is_active", "is_staff"])
def test_nobody_locks_themselves_out(cast: Cast, admin: Client, field: str) -> None:
    person = cast.admin.user
    form = form_of(person, email="new@example.org")
    del form[field]
    page = admin.post(f"{PEOPLE}{person.pk}/change/", form, follow=True)
    assert "You cannot remove your own access." in text_of(page)
    person.refresh_from_db()
    assert (person.is_active, person.is_staff, person.email) == (True, True, "admin@example.org")


def test_whoever_launched_something_is_deactivated_and_not_deleted(cast: Cast, admin: Client) -> None:
    make_workspace(cast, cast.bob, Phase.STOPPED)
    path = f"{PEOPLE}{cast.bob.user.pk}/delete/"
    assert "Deactivate them instead" in text_of(admin.get(path))
    admin.post(path, {"post": "yes"})
    assert User.objects.filter(username="bob").exists()


def test_whoever_never_did_anything_may_be_deleted_but_not_oneself(cast: Cast, admin: Client) -> None:
    for person in (cast.victor.user, cast.admin.user):
        admin.post(f"{PEOPLE}{person.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(username="victor").exists()
    assert User.objects.filter(username="admin").exists()
    assert AuditEntry.objects.filter(action="user.delete").count() == 1


def test_a_password_that_an_admin_sets_is_on_record_without_it(cast: Cast, admin: Client) -> None:
    secret = "entirely-new-7f"
    form = {"password1": secret, "password2": secret}
    admin.post(f"{PEOPLE}{cast.bob.user.pk}/password/", form)
    assert Client().login(username="bob", password=secret)
    assert secret not in str(list(AuditEntry.objects.values_list("action", "data")))
    assert AuditEntry.objects.filter(action="user.set_password").exists()


def test_no_other_page_sets_a_password_off_the_record(cast: Cast, admin: Client) -> None:
    answer = admin.get("/admin/password_change/")
    assert answer["Location"] == "/profile/password/"
    sent = {
        "old_password": "admin-password",
        "new_password1": "other-7f-pass",
        "new_password2": "other-7f-pass",
    }
    admin.post("/admin/password_change/", sent)
    assert Client().login(username="admin", password="admin-password")


def test_a_tenant_in_which_something_ran_is_kept(cast: Cast, admin: Client) -> None:
    make_workspace(cast, cast.bob, Phase.STOPPED)
    for tenant in (cast.demo, cast.second):
        admin.post(f"/admin/accounts/tenant/{tenant.pk}/delete/", {"post": "yes"})
    assert [tenant.slug for tenant in Tenant.objects.all()] == ["demo"]


def test_the_last_owner_of_a_tenant_stays(cast: Cast, admin: Client) -> None:
    path = f"/admin/accounts/tenant/{cast.demo.pk}/change/"
    owner = cast.demo.memberships.get(role="owner")
    form = {
        "name": "Demo",
        **empty("memberships", "quotas", "limit", "log_limit"),
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(owner.pk),
        "memberships-0-tenant": str(cast.demo.pk),
        "memberships-0-user": str(owner.user.pk),
        "memberships-0-role": "viewer",
    }
    assert "only owner" in text_of(admin.post(path, form, follow=True))
    owner.refresh_from_db()
    assert owner.role == "owner"


def test_an_action_needs_its_two_steps_and_the_form_of_this_site(cast: Cast) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(cast.admin.user)
    assert preview(strict, PEOPLE, "deactivate", cast.bob.user).status_code == 403
    plain = Client()
    plain.force_login(cast.admin.user)
    page = preview(plain, PEOPLE, "deactivate", cast.bob.user)
    plain.post(PEOPLE, hidden(page) | {"seen": ["0" * 32], "confirmed": ["yes"]})
    assert User.objects.get(username="bob").is_active


@pytest.mark.parametrize("deed", [Deactivate(), Reactivate()], ids=lambda deed: deed.name)
def test_what_one_admin_looks_at_is_not_told_to_another_who_looks_at_once(
    cast: Cast, deed: ChangesOfAccess
) -> None:
    """Requests share the action objects, so these must keep nothing of a request."""
    before = dict(vars(deed))
    assert deed.effects(cast.admin, [cast.bob.user])
    assert vars(deed) == before


CSV = """username;email;role;tenant
bob;;owner;demo
dora;dora@example.org;member;demo
dora;;viewer;second
carol;;king;demo
erin;;member;nowhere
alice;;owner;demo
"""


def test_people_come_in_bulk_after_a_preview_of_each_line_and_once(cast: Cast, admin: Client) -> None:
    page = admin.post(f"{PEOPLE}import/", {"text": CSV, "way": "password"})
    fates = page.context["fates"]
    assert [fate.does_something for fate in fates] == [True, True, True, False, False, False]
    assert [bool(fate.refused) for fate in fates] == [False, False, False, True, True, False]
    assert not User.objects.filter(username="dora").exists()

    shown = {name: values[0] for name, values in hidden(page).items()}
    done = admin.post(f"{PEOPLE}import/", shown)
    password = done.context["passwords"]["dora"]
    assert Client().login(username="dora", password=password)
    assert password not in "".join(str(entry.data) for entry in AuditEntry.objects.all())
    roles = dict(User.objects.get(username="dora").memberships.values_list("tenant__slug", "role"))
    assert roles == {"demo": "member", "second": "viewer"}
    assert cast.demo.memberships.get(user=cast.bob.user).role == "owner"

    assert (
        "nothing to do" in text_of(admin.post(f"{PEOPLE}import/", {"text": CSV, "way": "password"})).lower()
    )
    again = admin.post(f"{PEOPLE}import/", shown)  # a second press of the button loses no password
    assert again.context["passwords"] == done.context["passwords"]
    other = admin.post(
        f"{PEOPLE}import/", shown | {"once": "another page"}
    )  # nothing is done that was not shown
    assert other.context["has_changed"]
    assert User.objects.filter(username="dora").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_imports_at_once_one_is_done_and_the_other_is_told(cast: Cast, admin: Client) -> None:
    page = admin.post(f"{PEOPLE}import/", {"text": "dora;;member;demo", "way": "sign-on"})
    shown = {name: values[0] for name, values in hidden(page).items()}
    pages = at_once(lambda number: admin.post(f"{PEOPLE}import/", shown | {"once": f"page {number}"}), 2)
    assert sorted(b"callout-ok" in page.content for page in pages) == [False, True]
    assert User.objects.filter(username="dora").count() == 1


@pytest.mark.parametrize("text", ["", "username,surprise\nbob,x", "\n\n", "x\n" * 201, '"' + "a" * 200_000])
def test_a_text_that_is_no_list_of_people_is_refused(admin: Client, text: str) -> None:
    assert admin.post(f"{PEOPLE}import/", {"text": text, "way": "password"}).context["form"].errors


def test_deletion_names_what_goes_along_in_words(cast: Cast, admin: Client) -> None:
    tokens.issue(cast.victor.user, "laptop", ["read"])
    lines = admin.get(f"{PEOPLE}{cast.victor.user.pk}/delete/").context["deleted_objects"]
    assert {"Person “victor”", "1 membership: victor · Demo", "1 API token: laptop"} <= set(lines)


def test_deleted_workspaces_are_out_of_the_way_until_asked_for(cast: Cast, admin: Client) -> None:
    make_workspace(cast, cast.bob, name="kept")
    gone = make_workspace(cast, cast.bob, name="gone")
    type(gone).objects.filter(pk=gone.pk).update(deleted_at="2026-01-01T00:00:00Z")
    counts = [
        admin.get(f"/admin/workspaces/workspace/{query}").context["cl"].result_count
        for query in ("", "?deleted=yes", "?deleted=all")
    ]
    assert counts == [1, 1, 2]
