"""Pages and API of records: who reads what, filters, notes, and runs that are alike."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from accounts.access import Actor
from accounts.models import AuditEntry
from monitoring.alerts import sources
from monitoring.alerts import words as alert_words
from monitoring.models import PostMortem
from monitoring.post_mortems import words
from tests.cast import Cast
from tests.shared.clients import script
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def browser(actor: Actor) -> Client:
    client = Client()
    client.force_login(actor.user, "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def record(cast: Cast) -> PostMortem:
    return make_post_mortem(make_workspace(cast, cast.bob))


def listed(actor: Actor, query: str = "") -> list[str]:
    answer = script(actor).get(f"/api/v1/post-mortems/{query}")
    assert answer.status_code == 200
    return [one["id"] for one in answer.json()["results"]]


def test_the_page_shows_what_is_known_and_what_is_missing(cast: Cast, record: PostMortem) -> None:
    page = browser(cast.bob).get(f"/post-mortems/{record.pk}/").content.decode()
    for text in (
        "GPU-0",
        "Xid 79",
        "137",
        "loading the whole data set",
        "/home/jovyan",
        "Back-off restarting",
    ):
        assert text in page
    assert str(words.MISSING["log_end"]) in page
    assert f"/post-mortems/{record.pk}/" in browser(cast.bob).get("/post-mortems/").content.decode()


def test_only_those_who_may_read_the_log_see_its_lines(cast: Cast, record: PostMortem) -> None:
    lines = {
        actor.user.username: script(actor).get(f"/api/v1/post-mortems/{record.pk}/").json()["log"]
        for actor in (cast.bob, cast.alice, cast.admin, cast.victor)
    }
    assert lines.pop("victor") is None
    assert all(found[0]["text"] == "loading the whole data set" for found in lines.values())
    assert b"loading the whole" not in browser(cast.victor).get(f"/post-mortems/{record.pk}/").content


def test_a_record_of_a_deleted_workspace_is_there_for_its_person_and_admins(
    cast: Cast, record: PostMortem
) -> None:
    Workspace.objects.update(deleted_at=timezone.now(), phase="deleted")
    assert {who.user.username for who in (cast.bob, cast.admin, cast.alice, cast.victor) if listed(who)} == {
        "bob",
        "admin",
    }
    assert script(cast.alice).get(f"/api/v1/post-mortems/{record.pk}/").status_code == 404


def test_filters_find_the_records_of_a_workspace_a_job_or_a_node(cast: Cast, record: PostMortem) -> None:
    workspace = str(record.holder_id)
    job = make_post_mortem(
        Workspace.objects.get(),
        id=uuid4(),
        holder_kind="job",
        holder_id=uuid4(),
        node="gpu-2",
        part=3,
        attempt=2,
    )
    assert listed(cast.bob, f"?workspace={workspace}") == [str(record.pk)]
    assert listed(cast.bob, f"?job={workspace}") == []
    assert listed(cast.bob, f"?job={job.holder_id}") == listed(cast.bob, "?node=gpu-2") == [str(job.pk)]
    assert listed(cast.bob, "?happened=lost") == []
    page = (
        browser(cast.bob).get("/post-mortems/?node=gpu-2&verdict=out_of_memory&within=day").content.decode()
    )
    assert str(job.pk) in page
    assert str(record.pk) not in page


def test_a_note_is_added_by_owners_and_admins_and_written_to_the_trail(
    cast: Cast, record: PostMortem
) -> None:
    answer = browser(cast.alice).post(f"/post-mortems/{record.pk}/", {"text": "It was the cable.\n<b>"})
    assert answer.status_code == 302
    api = script(cast.bob).post(
        f"/api/v1/post-mortems/{record.pk}/notes/", {"text": "Mended."}, content_type="application/json"
    )
    assert api.status_code == 201
    notes = script(cast.victor).get(f"/api/v1/post-mortems/{record.pk}/").json()["notes"]
    assert [(one["author"], one["text"]) for one in notes] == [
        ("alice", "It was the cable.\n<b>"),
        ("bob", "Mended."),
    ]
    assert AuditEntry.objects.filter(action="post_mortem.note").count() == 2
    assert b"&lt;b&gt;" in browser(cast.victor).get(f"/post-mortems/{record.pk}/").content
    assert browser(cast.victor).post(f"/post-mortems/{record.pk}/", {"text": "x"}).status_code == 403


def test_runs_that_are_alike_are_shown_and_those_of_other_teams_are_not(
    cast: Cast, record: PostMortem
) -> None:
    theirs = make_workspace(cast, cast.carol)
    for workspace in (Workspace.objects.get(pk=record.holder_id), theirs):
        for _ in range(3):
            make_post_mortem(workspace, id=uuid4(), verdict="node_lost", gpus=[])
    body: dict[str, Any] = script(cast.bob).get(f"/api/v1/post-mortems/{record.pk}/").json()
    assert len(body["alike"]) == 3
    assert {tuple(one["shares"]) for one in body["alike"]} == {("holder", "node")}
    page = browser(cast.victor).get("/post-mortems/?show=everyone")
    ((group, sentence, _hint),) = page.context["groups"]
    assert (group.code, group.data["count"]) == ("alike_node", 4)
    assert sentence in page.content.decode().replace("&#x27;", "'")
    (group, *_), *_others = browser(cast.admin).get("/post-mortems/?show=everyone").context["groups"]
    assert group.data["count"] == 7


def test_runs_that_are_alike_raise_an_alert_for_admins(cast: Cast, record: PostMortem) -> None:
    workspace = Workspace.objects.get(pk=record.holder_id)
    for _ in range(3):
        make_post_mortem(workspace, id=uuid4(), verdict="node_lost", gpus=[])
    found, failed = sources.read()
    assert failed == []
    (firing,) = [one for one in found if one.code == "alike_node"]
    assert (firing.node, firing.cluster_id, firing.data["count"]) == ("gpu-1", cast.cluster.pk, 4)
    assert "4 runs" in alert_words.sentence(firing.code, firing.data)
    assert browser(cast.admin).get(firing.link).status_code == 200


def test_every_verdict_has_words_without_the_data_of_a_run() -> None:
    for code in words.LINES:
        assert "%(" not in words.label(code)
