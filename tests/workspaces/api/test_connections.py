"""Connections: keys come in by API and page, arrive in a workspace's Secret, and never go out."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from accounts.models import AuditEntry
from storage.models import Connection, ConnectionUse
from tests.cast import Cast
from tests.shared.clients import EVERY_SCOPE, ask, script
from tests.shared.played_api import PlayedApi
from tests.workspaces.play import Play
from workspaces.launch.clone import clone
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db
KEYS = {"access_key": "AKIA-visible-to-nobody", "secret_key": "s3cr3t/visible+to=nobody"}
BODY = {
    "tenant": "demo",
    "name": "lab-store",
    "endpoint": "https://s3.example.org",
    "bucket": "scans",
    **KEYS,
}


def made(cast: Cast, **values: str) -> str:
    answer = ask(script(cast.alice, *EVERY_SCOPE), "POST", "connections/", BODY | values)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def launched(cast: Cast, *connections: str, **more: Any) -> Any:
    body = {"tenant": "demo", "name": "exp", "image": "jupyter", "flavor": "a100-1", **more}
    return ask(
        script(cast.alice, *EVERY_SCOPE), "POST", "workspaces/", body | {"connections": list(connections)}
    )


def started(cast: Cast, *connections: str, **more: Any) -> Play:
    play = Play(cast, PlayedApi(), connections=[UUID(one) for one in connections], **more)
    play.begin_ready()
    return play


def environment(play: Play) -> dict[str, str]:
    """Return what the pod's container gets from the Secret."""
    [secret] = play.api.of("Secret")
    data = {name: base64.b64decode(value).decode() for name, value in secret.get("data", {}).items()}
    data |= secret.get("stringData", {})
    entries = play.pod()["spec"]["containers"][0]["env"]
    return {
        one["name"]: data[one["valueFrom"]["secretKeyRef"]["key"]]
        for one in entries
        if "secretKeyRef" in one.get("valueFrom", {})
    }


def test_the_first_has_the_names_of_the_tools_and_each_its_own(cast: Cast) -> None:
    one, two = made(cast), made(cast, name="other", bucket="models", access_key="AK2")
    play = started(cast, one, two, secret_env={"AWS_S3_BUCKET": "mine"})
    found = environment(play)
    assert found["AWS_ACCESS_KEY_ID"] == found["CONNECTION_LAB_STORE_ACCESS_KEY"] == KEYS["access_key"]
    assert found["AWS_SECRET_ACCESS_KEY"] == KEYS["secret_key"]
    assert found["AWS_ENDPOINT_URL"] == found["CONNECTION_OTHER_ENDPOINT"] == "https://s3.example.org"
    assert (found["CONNECTION_OTHER_ACCESS_KEY"], found["CONNECTION_OTHER_BUCKET"]) == ("AK2", "models")
    assert found["AWS_S3_BUCKET"] == "mine"  # what the person set comes first


def test_a_change_arrives_at_the_next_start_and_a_deletion_too(cast: Cast) -> None:
    one, two = made(cast), made(cast, name="other")
    play = started(cast, one, two)
    client = script(cast.alice, *EVERY_SCOPE)
    assert ask(client, "PATCH", f"connections/{two}/", {"bucket": "newer"}).json()["bucket"] == "newer"
    assert ask(client, "DELETE", f"connections/{one}/").status_code == 204
    lifecycle.restart(cast.alice, play.row)
    play.until(lambda row: row.phase != "ready", between=play.api.settle)
    play.begin_ready()
    found = environment(play)
    assert (found["AWS_S3_BUCKET"], found["AWS_ACCESS_KEY_ID"]) == ("newer", KEYS["access_key"])
    assert "CONNECTION_LAB_STORE_BUCKET" not in found


def test_keys_never_go_out(cast: Cast) -> None:
    one = made(cast)
    play = started(cast, one)
    client, browser = script(cast.alice, *EVERY_SCOPE), Client()
    browser.force_login(cast.alice.user)
    said = [
        ask(client, "GET", "connections/").content,
        ask(client, "GET", f"connections/{one}/").content,
        ask(client, "GET", f"workspaces/{play.id}/").content,
        ask(client, "GET", f"workspaces/{play.id}/events/").content,
        browser.get("/connections/").content,
        browser.get(f"/connections/{one}/").content,
        browser.get(f"/launch/?again={play.id}").content,
        Connection.objects.get().keys.encode(),
        str([entry.data for entry in AuditEntry.objects.all()]).encode(),
        str([body for body in play.api.objects.values() if body["kind"] != "Secret"]).encode(),
    ]
    for text in said:
        assert not any(key.encode() in text for key in KEYS.values())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "With Space"),
        ("endpoint", "s3.example.org"),
        ("endpoint", "https://user:pw@s3.example.org"),
        ("endpoint", "https://s3.example.org/a/path"),
        ("endpoint", "file:///etc/passwd"),
        ("endpoint", "https://[broken"),
        ("bucket", "../x"),
        ("access_key", "two\nlines"),
        ("secret_key", "with space"),
    ],
)
def test_a_faulty_field_is_named(cast: Cast, field: str, value: str) -> None:
    answer = ask(script(cast.alice, *EVERY_SCOPE), "POST", "connections/", BODY | {field: value})
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, [field])


def test_names_are_unique_and_somebody_elses_cannot_be_used(cast: Cast) -> None:
    one = made(cast)
    assert ask(script(cast.alice, *EVERY_SCOPE), "POST", "connections/", BODY).status_code == 409
    theirs = ask(script(cast.bob, *EVERY_SCOPE), "POST", "connections/", BODY).json()["id"]
    answer = launched(cast, one, theirs)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, ["connections"])
    assert not ConnectionUse.objects.exists()


@pytest.mark.slow
def test_a_clone_of_ones_own_has_them_and_a_deleted_workspace_forgets_them(cast: Cast) -> None:
    one = made(cast)
    play = started(cast, one)
    copy = clone(cast.alice, play.row, "copy")
    assert ConnectionUse.objects.filter(holder=copy.pk, connection_id=one).exists()
    others = clone(cast.bob, play.row, "bobs")
    assert not ConnectionUse.objects.filter(holder=others.pk).exists()
    lifecycle.delete(cast.alice, play.row, delete_disk=True)
    play.until(lambda row: row.deleted_at is not None, between=play.api.settle)
    assert not ConnectionUse.objects.filter(holder=play.id).exists()


def test_the_page_adds_changes_and_deletes(cast: Cast) -> None:
    browser = Client()
    browser.force_login(cast.alice.user)
    assert browser.post("/connections/", BODY).status_code == 302
    row = Connection.objects.get()
    before = row.keys
    answer = browser.post(
        f"/connections/{row.pk}/",
        {"name": "lab", "endpoint": row.endpoint, "bucket": "b-2", "access_key": ""},
    )
    assert answer.status_code == 302
    row.refresh_from_db()
    assert (row.name, row.bucket) == ("lab", "b-2")
    assert before != row.keys  # sealed anew, with the same keys
    sent = {
        "tenant": "demo",
        "image": "jupyter",
        "flavor": "a100-1",
        "name": "x",
        "connections": [str(row.pk)],
    }
    page = browser.get("/launch/").context["form"]
    assert page.fields["connections"].choices == [(str(row.pk), "lab · Demo")]
    launch = browser.post("/launch/", sent | {"once": page.initial["once"], "disk_gib": 0})
    assert launch.status_code == 302, launch.context["form"].errors
    assert ConnectionUse.objects.get().connection_id == row.pk
    assert browser.post(f"/connections/{row.pk}/delete/").status_code == 302
    assert not Connection.objects.exists()
