"""What admins do with people, and what a person chooses for themself, over REST."""

from typing import Any

import pytest
from django.test import Client

from accounts.announcements.models import Announcement
from accounts.models import AuditEntry, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.service_accounts import changing
from tests.accounts.people import People
from tests.shared.clients import api, ask, browser


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_an_admin_creates_a_person_who_signs_in_with_the_first_password(people: People) -> None:
    admin = api(people.admin)
    body = {"username": "frida", "email": "frida@example.org", "last_name": "Baker"}
    first = ask(admin, "POST", "people/", body, **{"Idempotency-Key": "frida"})
    assert ask(admin, "POST", "people/", body, **{"Idempotency-Key": "frida"}).json() == first.json()
    assert first.status_code == 201
    frida = User.objects.get(username="frida")
    assert frida.password_is_first
    assert frida.check_password(first.json()["first_password"])
    assert first.json()["memberships"] == []
    assert code(ask(admin, "POST", "people/", body)) == (409, "person_exists")
    by_sign_on = ask(admin, "POST", "people/", {"username": "gerd", "sign_in": "sign-on"}).json()
    assert by_sign_on["first_password"] is None
    assert not User.objects.get(username="gerd").has_usable_password()
    second = ask(admin, "POST", "people/frida/password/").json()["first_password"]
    assert User.objects.get(username="frida").check_password(second)
    assert ask(admin, "DELETE", "people/gerd/").status_code == 204


def test_an_admin_changes_all_that_is_wanted_or_nothing(people: People) -> None:
    admin, bob = api(people.admin), api(people.bob)
    answer = ask(admin, "PATCH", "people/bob/", {"last_name": "Baker", "is_active": False, "is_admin": True})
    assert answer.status_code == 200
    found = answer.json()
    assert (found["last_name"], found["is_active"], found["is_admin"]) == ("Baker", False, True)
    assert found["memberships"] == [{"tenant": "demo", "role": "member", "by_group": False}]
    assert ask(bob, "GET", "me/").status_code == 401
    actions = AuditEntry.objects.filter(target_id=str(people.bob.user.pk)).values_list("action", flat=True)
    assert {"user.change", "user.deactivate", "user.make_admin"} <= set(actions)
    turned = ask(admin, "PATCH", "people/admin/", {"last_name": "a\u202eb"})
    assert (turned.status_code, list(turned.json()["error"]["fields"])) == (422, ["last_name"])
    refused = ask(admin, "PATCH", "people/admin/", {"last_name": "Boss", "is_active": False})
    assert code(refused) == (409, "yourself")
    assert User.objects.get(username="admin").last_name == ""
    active = ask(admin, "GET", "people/?is_active=false").json()["results"]
    assert [person["username"] for person in active] == ["bob"]


def test_a_token_does_not_become_a_sign_in_of_an_admin(people: People) -> None:
    admin = api(people.admin)
    for what in ("password", "reset-second-factor"):
        assert code(ask(admin, "POST", f"people/admin/{what}/")) == (409, "yourself")
    User.objects.filter(username="bob").update(is_staff=True)
    for what in ("password", "reset-second-factor"):
        assert code(ask(admin, "POST", f"people/bob/{what}/")) == (403, "no_token_for_admins")
    session = browser(people.carol)
    assert ask(admin, "POST", "people/carol/reset-second-factor/").status_code == 204
    assert session.get("/profile/").status_code == 302


def test_service_accounts_are_no_people(people: People) -> None:
    account = changing.create(people.alice, tenant="demo", name="ci", role="member")
    admin = api(people.admin)
    assert "svc.demo.ci" not in ask(admin, "GET", "people/").content.decode()
    for path in ("", "password/"):
        method = "POST" if path else "PATCH"
        assert ask(admin, method, f"people/{account.username}/{path}", {}).status_code == 404


def test_a_person_chooses_language_time_zone_and_theme(people: People) -> None:
    bob = api(people.bob)
    wanted = {"language": "ko", "time_zone": "Europe/Berlin", "theme": "dark"}
    answer = ask(bob, "PATCH", "me/", wanted).json()
    assert {name: answer[name] for name in wanted} == wanted
    for wrong in ({"language": "tlh"}, {"time_zone": "Mars/Base"}, {"theme": "pink"}, {"is_staff": True}):
        assert ask(bob, "PATCH", "me/", wrong).status_code == 400
    session = browser(people.bob)
    assert ask(bob, "DELETE", "me/sessions/").status_code == 204
    assert session.get("/profile/").status_code == 302
    assert ask(bob, "GET", "me/").status_code == 200


def test_a_person_reads_their_notices_and_chooses_their_ways(people: People) -> None:
    account = changing.create(people.alice, tenant="demo", name="ci", role="member")
    for kind in (Kind.SERVICE, Kind.READY):  # nobody has words for the second
        Notice.objects.create(
            user=people.alice.user, kind=kind, key=kind, in_berth=True, data={"by": "bob"},
            subject="service-account" if kind == Kind.SERVICE else "nothing", subject_id=account.pk,
        )  # fmt: skip
    alice = api(people.alice)
    [line] = ask(alice, "GET", "notices/?unread=true").json()["results"]
    assert (line["kind"], line["read_at"]) == ("service", None)
    assert line["path"].endswith(f"{account.pk}/")
    assert ask(alice, "POST", f"notices/{line['id']}/read/").status_code == 204
    assert ask(api(people.bob), "POST", f"notices/{line['id']}/read/").status_code == 404
    assert Notice.objects.filter(read_at=None).count() == 1
    assert ask(alice, "POST", "notices/read/").status_code == 204
    assert not Notice.objects.filter(read_at=None).exists()
    wanted = {"kind": "ready", "in_berth": True, "by_mail": False}
    chosen = ask(alice, "PATCH", "notices/preferences/", {"results": [wanted]}).json()["results"]
    assert wanted in chosen
    assert {"kind": "failed", "in_berth": True, "by_mail": True} in chosen


def test_an_admin_changes_an_announcement_that_is_shown(people: People) -> None:
    admin = api(people.admin)
    made = ask(admin, "POST", "announcements/", {"text": "Maintenance soon"}).json()
    path = f"announcements/{made['id']}/"
    changed = ask(admin, "PATCH", path, {"no_launches_from": "2127-01-01T00:00:00Z"})
    assert (changed.status_code, changed.json()["text"]) == (200, "Maintenance soon")
    refused = ask(admin, "PATCH", path, {"shown_until": "2001-01-01T00:00:00Z"})
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (
        422,
        ["shown_until", "no_launches_from"],
    )
    assert Announcement.objects.get().shown_until is None


@pytest.mark.parametrize("confirm", [False, True])
def test_an_action_of_the_admins_lists_is_shown_and_done(people: People, confirm: bool) -> None:
    script = Client()
    admin = api(people.admin)
    ids = [str(people.bob.user.pk), str(people.admin.user.pk)]
    body = {"ids": ids, "confirm": confirm}
    answer = ask(admin, "POST", "admin-actions/accounts.user/deactivate/", body, **{"Idempotency-Key": "x"})
    of_bob, of_admin = answer.json()["results"]
    assert (of_bob["whom"], bool(of_bob["what"]), of_bob["done"]) == ("bob", True, confirm)
    assert (of_admin["done"], bool(of_admin["refused"])) == (False, True)
    assert User.objects.get(username="bob").is_active is not confirm
    again = ask(admin, "POST", "admin-actions/accounts.user/deactivate/", body, **{"Idempotency-Key": "x"})
    assert again.json() == answer.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    other = body | {"ids": ids[:1]}
    reused = ask(admin, "POST", "admin-actions/accounts.user/deactivate/", other, **{"Idempotency-Key": "x"})
    assert code(reused) == (409, "idempotency_key_reused")
    listed = ask(admin, "GET", "admin-actions/").json()["results"]
    assert {"accounts.user", "clusters.node", "quotas.claim"} <= {line["of"] for line in listed}
    assert ask(script, "GET", "admin-actions/").status_code == 401
