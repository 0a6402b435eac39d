import re

import pytest
from django.test import Client

from accounts.access import Actor
from accounts.credentials import tokens
from accounts.models import APIToken, AuditEntry, SSHKey, User
from tests.accounts.people import People
from tests.cast import KEY
from tests.shared.clients import browser

PASSWORD = {"username": "alice", "password": "alice-password"}


def test_signing_in_leads_to_the_workspaces_and_out_again(people: People) -> None:
    client = Client(enforce_csrf_checks=True)
    page = client.get("/sign-in/")
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    answer = client.post("/sign-in/", PASSWORD | {"csrfmiddlewaretoken": client.cookies["berth_csrf"].value})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/profile/").status_code == 200
    assert client.get("/sign-out/").status_code == 405
    csrf = {"csrfmiddlewaretoken": client.cookies["berth_csrf"].value}
    assert client.post("/sign-out/", csrf)["Location"] == "/sign-in/"
    assert client.get("/profile/")["Location"] == "/sign-in/?next=/profile/"


@pytest.mark.parametrize(
    ("target", "goes_to"),
    [
        ("/profile/", "/profile/"),
        ("/profile/?a=1#b", "/profile/?a=1#b"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("http://testserver/profile/", "http://testserver/profile/"),
        ("nothing", "/"),
        ("sign-out", "/"),
    ],
)
def test_sign_in_leads_to_a_page_of_ours(people: People, target: str, goes_to: str) -> None:
    assert Client().post("/sign-in/", PASSWORD | {"next": target})["Location"] == goes_to
    assert browser(people.alice).get("/sign-in/", {"next": target})["Location"] == goes_to


def test_a_wrong_password_is_said_and_not_given_back(people: People) -> None:
    answer = Client().post("/sign-in/", {"username": "alice", "password": "hunter2"})
    assert answer.status_code == 401
    text = answer.text
    assert "Incorrect user name or password" in text
    assert "hunter2" not in text
    assert 'value="alice"' in text


def test_too_many_attempts_are_429_with_when_to_come_back(people: People) -> None:
    for _number in range(5):
        Client().post("/sign-in/", {"username": "alice", "password": "wrong"})
    answer = Client().post("/sign-in/", PASSWORD)
    assert answer.status_code == 429
    assert 800 < int(answer["Retry-After"]) <= 900
    assert "Wait 15 minutes" in answer.text


def test_the_admin_site_has_no_sign_in_of_its_own(people: People) -> None:
    assert Client().get("/admin/")["Location"] == "/admin/login/?next=/admin/"
    assert Client().get("/admin/login/?next=/admin/")["Location"] == "/sign-in/?next=/admin/"
    assert Client().post("/admin/login/", PASSWORD).status_code == 302
    assert browser(people.alice).get("/admin/login/?next=/admin/").status_code == 403


def test_a_key_is_added_and_removed_on_the_profile(people: People) -> None:
    client = browser(people.bob)
    assert client.post("/profile/ssh-keys/", {"key-name": "laptop", "key-public_key": KEY}).status_code == 302
    key = SSHKey.objects.get(user=people.bob.user)
    assert key.fingerprint in client.get("/profile/").text
    assert client.post(f"/profile/ssh-keys/{key.pk}/remove/").status_code == 302
    assert not SSHKey.objects.exists()


def test_what_is_wrong_with_a_key_stands_at_its_field(people: People) -> None:
    form = {"key-name": "laptop", "key-public_key": "-----BEGIN OPENSSH PRIVATE KEY-----"}
    answer = browser(people.bob).post("/profile/ssh-keys/", form)
    assert answer.status_code == 422
    page = answer.text
    assert "This is a private key" in page
    assert 'value="laptop"' in page
    assert "BEGIN OPENSSH" not in page  # the next person at this desk must not see it
    assert AuditEntry.objects.get(outcome="refused").data["code"] == "ssh_key_refused"


def test_what_else_is_wrong_with_a_key_comes_back_to_be_mended(people: People) -> None:
    form = {"key-name": "laptop", "key-public_key": "ssh-ed25519 AAAA-damaged"}
    page = browser(people.bob).post("/profile/ssh-keys/", form).text
    assert "The key&#x27;s body is damaged." in page
    assert "AAAA-damaged" in page


def test_the_profile_says_who_one_is_and_what_one_may_where(people: People) -> None:
    page = browser(people.victor).get("/profile/").text
    assert "View only" in page
    assert 'href="/tenants/demo/"' in page
    newcomer = Actor(User.objects.create_user("newcomer"))
    assert "You are not in a tenant yet" in browser(newcomer).get("/profile/").text


def test_preferences_are_kept_for_the_next_browser_and_for_the_sign_in_page(people: People) -> None:
    client = browser(people.bob)
    chosen = {"language": "ko", "time_zone": "Asia/Seoul", "theme": "dark"}
    answer = client.post("/profile/preferences/", chosen)
    assert answer["Location"] == "/profile/"
    elsewhere = browser(people.bob).get("/profile/").text
    assert '<html lang="ko" data-theme="dark">' in elsewhere
    assert '<option value="Asia/Seoul" selected>' in elsewhere
    client.post("/sign-out/")
    assert '<html lang="ko" data-theme="dark">' in client.get("/sign-in/").text


def test_what_is_not_sent_stays_and_what_there_is_not_is_refused_at_its_field(people: People) -> None:
    client = browser(people.bob)
    client.post("/profile/preferences/", {"theme": "dark", "language": "ko"})
    client.post("/profile/language/", {"language": "zh-hans"})
    people.bob.user.refresh_from_db()
    assert (people.bob.user.language, people.bob.user.theme) == ("zh-hans", "dark")
    client.post("/profile/preferences/", {"theme": "", "language": ""})
    people.bob.user.refresh_from_db()
    assert (people.bob.user.language, people.bob.user.theme) == ("", "")
    answer = client.post("/profile/preferences/", {"time_zone": "Europe/Nowhere"})
    assert answer.status_code == 422
    assert list(answer.context["preferences_form"].errors) == ["time_zone"]


def test_signing_out_everywhere_ends_every_browser_and_spares_tokens(people: People) -> None:
    here, elsewhere, other = browser(people.bob), browser(people.bob), browser(people.alice)
    _token, secret = tokens.issue(people.bob.user, "script", ["read"])
    assert here.post("/profile/sign-out-everywhere/")["Location"] == "/sign-in/"
    for client in (here, elsewhere):
        assert client.get("/profile/")["Location"].startswith("/sign-in/")
    assert other.get("/profile/").status_code == 200
    assert tokens.authenticate(secret).user == people.bob.user
    assert browser(Actor(User.objects.get(username="bob"))).get("/profile/").status_code == 200
    assert AuditEntry.objects.filter(action="user.sign-out-everywhere", actor=people.bob.user).exists()


def test_keys_and_tokens_of_others_cannot_be_removed(people: People) -> None:
    key = SSHKey.objects.create(user=people.alice.user, name="x", fingerprint="x")
    token, _secret = tokens.issue(people.alice.user, "x", ["read"])
    client = browser(people.bob)
    assert client.post(f"/profile/ssh-keys/{key.pk}/remove/").status_code == 404
    assert client.post(f"/profile/tokens/{token.pk}/revoke/").status_code == 404
    assert client.get(f"/profile/tokens/{token.pk}/revoke/").status_code == 404
    assert SSHKey.objects.exists()


def test_a_new_token_is_shown_once(people: People) -> None:
    client = browser(people.bob)
    form = {"name": "nightly", "scopes": ["read", "workspaces"], "tenant": "demo", "days": "7"}
    page = client.post("/profile/tokens/", {f"token-{name}": value for name, value in form.items()})
    (secret,) = set(re.findall(r"brt_[a-z0-9]{12}_[A-Za-z0-9]{40}", page.text))
    assert tokens.authenticate(secret).tenant == people.demo
    assert "no-store" in page["Cache-Control"]
    assert secret not in client.get("/profile/").text
    token = APIToken.objects.get(name="nightly")
    assert client.get(f"/profile/tokens/{token.pk}/revoke/").context["title"] == "Revoke the token “nightly”?"
    assert tokens.authenticate(secret) == token
    client.post(f"/profile/tokens/{token.pk}/revoke/")
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_the_form_offers_only_what_the_person_may_have(people: People) -> None:
    page = browser(people.bob).get("/profile/").text
    assert 'value="jobs"' in page
    assert 'value="admin"' not in page
    assert 'value="second"' not in page
    assert 'value="admin"' in browser(people.admin).get("/profile/").text


def test_a_form_s_address_that_is_reloaded_leads_to_the_profile(people: People) -> None:
    assert browser(people.bob).get("/profile/tokens/")["Location"] == "/profile/"


def test_every_form_is_behind_sign_in_and_csrf(people: People) -> None:
    for path in ("ssh-keys", "tokens", "preferences", "sign-out-everywhere"):
        assert Client().post(f"/profile/{path}/")["Location"].startswith("/sign-in/")
        assert browser(people.bob, checks_csrf=True).post(f"/profile/{path}/").status_code == 403
