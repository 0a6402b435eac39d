from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from accounts import members, once
from accounts.credentials import ssh_keys
from accounts.errors import TooMany
from accounts.models import APIToken, AuditEntry, IdempotentAnswer, SSHKey, Tenant
from accounts.rest import idempotency
from tests.accounts.people import People
from tests.cast import KEY
from tests.shared.clients import api, ask, browser
from tests.shared.concurrency import at_once

TENANT = {"slug": "vision", "name": "Vision"}


def post(client: Any, path: str, body: Any, key: str = "key-1") -> Any:
    return ask(client, "POST", path, body, **{"Idempotency-Key": key})


def kept(people: People, key: str, body: str = "") -> IdempotentAnswer:
    return IdempotentAnswer.objects.create(user=people.bob.user, key=key, request_digest="d", body=body)


def test_a_retry_gets_the_first_answer_and_does_nothing(people: People) -> None:
    script = api(people.admin)
    first, second = (post(script, "tenants/", TENANT) for _time in range(2))
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert "Idempotency-Replayed" not in first
    assert second["Idempotency-Replayed"] == "true"
    assert Tenant.objects.filter(slug="vision").count() == 1
    assert AuditEntry.objects.filter(action="tenant.create").count() == 1


def test_a_refusal_is_not_kept_and_the_same_request_runs_again(people: People) -> None:
    script = api(people.admin)
    body = TENANT | {"slug": "demo"}
    assert post(script, "tenants/", body).status_code == 409
    assert not IdempotentAnswer.objects.exists()
    assert AuditEntry.objects.filter(action="tenants.post", outcome="refused").count() == 1
    Tenant.objects.filter(slug="demo").update(slug="other")
    again = post(script, "tenants/", body)
    assert again.status_code == 201
    assert "Idempotency-Replayed" not in again


@pytest.mark.parametrize("limit", ["MOST_ANSWERS", "MOST_BYTES"])
def test_a_person_keeps_so_many_answers_and_what_was_done_stays_done(
    people: People, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    script = api(people.admin)
    first = post(script, "tenants/", TENANT)
    monkeypatch.setattr(once, limit, 1)
    second = post(script, "tenants/", {"slug": "third", "name": "Third"}, key="key-2")
    assert (second.status_code, second.json()["error"]["code"]) == (429, "too_many_answers")
    assert timedelta(hours=23) < timedelta(seconds=int(second["Retry-After"])) <= timedelta(hours=24)
    assert not Tenant.objects.filter(slug="third").exists()
    assert post(script, "tenants/", TENANT).content == first.content
    assert post(api(people.alice), "ssh-keys/", {"name": "laptop", "public_key": KEY}).status_code == 201
    IdempotentAnswer.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
    third = post(script, "tenants/", {"slug": "third", "name": "Third"}, key="key-2")
    assert third.status_code == 201


def test_room_is_free_when_enough_of_the_oldest_answers_have_ended(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    for number, size in enumerate([10, 10, 80]):
        row = kept(people, f"k{number}", body="x" * size)
        IdempotentAnswer.objects.filter(pk=row.pk).update(created_at=now - timedelta(hours=20 - number))
    monkeypatch.setattr(once, "MOST_BYTES", 85)
    with pytest.raises(TooMany) as refused:
        once.check_room(kept(people, "new"))
    seconds = refused.value.retry_after_seconds or 0
    assert timedelta(hours=4, minutes=59) < timedelta(seconds=seconds) <= timedelta(hours=5)


def test_old_answers_are_forgotten_in_steps_and_an_old_one_never_answers(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "FORGOTTEN_AT_ONCE", 2)
    for number in range(5):
        kept(people, f"old-{number}")
    newest = post(api(people.alice), "ws-tickets/", {}, key="mine").json()
    IdempotentAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))
    IdempotentAnswer.objects.filter(key="mine").update(created_at=timezone.now() - timedelta(hours=24.5))
    again = post(api(people.alice), "ws-tickets/", {}, key="mine")
    assert again.status_code == 201
    assert again.json() != newest
    assert IdempotentAnswer.objects.count() == 3 + 1


def test_a_form_counts_among_the_answers_that_are_kept(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = people.alice.user
    assert once.done_once(user, QueryDict("once=a"), lambda: "/first/") == "/first/"
    monkeypatch.setattr(once, "MOST_ANSWERS", 1)
    assert once.done_once(user, QueryDict("once=a"), lambda: "/second/") == "/first/"
    with pytest.raises(TooMany):
        once.done_once(user, QueryDict("once=b"), lambda: "/third/")
    assert IdempotentAnswer.objects.count() == 1


@pytest.mark.parametrize(("path", "body"), [("tenants/", TENANT | {"name": "Other"}), ("ws-tickets/", {})])
def test_the_same_key_for_something_else_is_409(people: People, path: str, body: Any) -> None:
    script = api(people.admin)
    post(script, "tenants/", TENANT)
    answer = post(script, path, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "idempotency_key_reused")


def test_keys_are_each_persons_own(people: People) -> None:
    body = {"name": "laptop", "public_key": KEY}
    assert post(api(people.alice), "ssh-keys/", body).status_code == 201
    assert post(api(people.bob), "ssh-keys/", body).status_code == 201
    assert SSHKey.objects.count() == 2


def test_another_token_of_the_person_does_not_get_the_answer(people: People) -> None:
    body = {"name": "child", "scopes": ["jobs"]}
    made = post(api(people.alice), "tokens/", body)
    assert made.status_code == 201
    other = post(api(people.alice, "read", "volumes"), "tokens/", body)
    assert other.status_code == 409
    assert made.json()["secret"] not in other.text


def test_a_secret_that_was_shown_is_not_kept_in_clear(people: People) -> None:
    script = api(people.alice)
    body = {"name": "child", "scopes": ["read"]}
    secret = post(script, "tokens/", body).json()["secret"]
    assert secret.split("_")[2] not in str(list(IdempotentAnswer.objects.values()))
    assert post(script, "tokens/", body).json()["secret"] == secret
    assert APIToken.objects.filter(name="child").count() == 1


def test_after_a_day_the_key_is_new_again(people: People) -> None:
    script = api(people.admin)
    post(script, "tenants/", TENANT)
    IdempotentAnswer.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
    answer = post(script, "tenants/", {"slug": "third", "name": "Third"})
    assert answer.status_code == 201
    assert IdempotentAnswer.objects.count() == 1


def test_without_a_key_each_request_counts(people: People) -> None:
    script = api(people.admin)
    assert [ask(script, "POST", "tenants/", TENANT).status_code for _time in range(2)] == [201, 409]
    assert not IdempotentAnswer.objects.exists()


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_key_that_cannot_be_kept_is_400(people: People, key: str) -> None:
    answer = post(api(people.admin), "tenants/", TENANT, key=key)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "idempotency_key_invalid")
    assert not Tenant.objects.filter(slug="vision").exists()


def test_who_is_not_signed_in_gets_401_and_a_session_still_needs_csrf(people: People) -> None:
    assert post(Client(), "tenants/", TENANT).status_code == 401
    assert post(browser(people.admin, checks_csrf=True), "tenants/", TENANT).status_code == 403
    assert not IdempotentAnswer.objects.exists()
    assert post(browser(people.admin), "tenants/", TENANT).status_code == 201


def test_our_own_faults_are_undone_and_can_be_retried(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = members.create_tenant

    def half_way(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        raise RuntimeError("boom")

    script = api(people.admin, raise_errors=False)
    with monkeypatch.context() as patch:
        patch.setattr(members, "create_tenant", half_way)
        assert post(script, "tenants/", TENANT).status_code == 500
    assert not Tenant.objects.filter(slug="vision").exists()
    assert post(script, "tenants/", TENANT).status_code == 201


def test_a_member_who_is_taken_out_no_longer_gets_old_answers(people: People) -> None:
    members.set_role(people.alice, people.demo, "bob", "owner")
    script = api(people.bob)
    body = {"username": "carol"}
    assert post(script, "tenants/demo/members/", body).status_code == 201
    members.remove(people.alice, people.demo, "bob")
    assert post(script, "tenants/demo/members/", body).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_ten_at_once_do_it_once_and_all_get_the_same_answer(people: People) -> None:
    script = api(people.alice)
    body = {"name": "child", "scopes": ["read"]}

    answers = at_once(lambda _number: post(script, "tokens/", body), 10)
    assert len({answer.content for answer in answers}) == 1
    assert {answer.status_code for answer in answers} == {201}
    assert APIToken.objects.filter(name="child").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_request_that_waits_too_long_is_refused(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "LONGEST_WAIT", "200ms")
    script = api(people.alice)
    body = {"name": "laptop", "public_key": KEY}
    at_work, go_on = Event(), Event()
    add = ssh_keys.add

    def slowly(*args: Any, **kwargs: Any) -> Any:
        at_work.set()
        go_on.wait(20)
        return add(*args, **kwargs)

    def send() -> Any:
        try:
            return post(script, "ssh-keys/", body)
        finally:
            connection.close()

    monkeypatch.setattr(ssh_keys, "add", slowly)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(send)
        assert at_work.wait(20)
        second = post(script, "ssh-keys/", body)
        go_on.set()
        assert first.result().status_code == 201
    assert (second.status_code, second.json()["error"]["code"]) == (409, "in_progress")
    assert second["Retry-After"] == "5"
    assert post(script, "ssh-keys/", body).content == first.result().content
