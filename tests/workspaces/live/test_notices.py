"""Notices to a workspace's owner: events, channels and words; and none to other people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from accounts import members
from accounts.access import Actor
from accounts.notices import inbox, outbox
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Event, Phase, Workspace
from workspaces.runs import lifecycle
from workspaces.state.live import changing
from workspaces.state.story import add_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(cast: Cast) -> Workspace:
    made = make_workspace(cast, cast.bob)
    Notice.objects.all().delete()
    return made


def happen(workspace: Workspace, code: str, **data: Any) -> None:
    with changing(workspace.pk) as row:
        add_event(row, code, **data)


def told(actor: Actor) -> list[str]:
    """Titles of a person's notices, oldest first."""
    lines, _last = inbox.page(actor.user)
    return [words.title for _notice, words in reversed(lines)]


def began(workspace: Workspace, ago: timedelta) -> None:
    """Move the workspace's events back, as if it had been asked for so long ago."""
    Event.objects.filter(workspace=workspace).update(at=timezone.now() - ago)


# --- Which events


@pytest.mark.parametrize(
    ("code", "data", "kind", "title"),
    [
        ("ready", {}, Kind.READY, "“exp-1” is ready"),
        ("given_up", {}, Kind.FAILED, "“exp-1” failed"),
        ("refused_again", {}, Kind.FAILED, "“exp-1” cannot start again"),
        ("stop_requested", {"by": "alice"}, Kind.STOPPED, "“exp-1” was stopped by alice"),
        ("delete_requested", {"by": "alice"}, Kind.STOPPED, "“exp-1” was deleted by alice"),
        ("given_back", {}, Kind.STOPPED, "“exp-1” returns its GPUs"),
        ("stopped_by_budget_spent", {}, Kind.STOPPED, "“exp-1” stopped: its GPU-hours are used up"),
        (
            "asked_back_owner_waits",
            {"minutes": 10, "at": "2026-01-01T00:00:00Z"},
            Kind.STOPS_SOON,
            "“exp-1” has to return its GPUs soon",
        ),
        ("spared", {}, Kind.STOPS_SOON, "“exp-1” continues: its GPUs are not needed elsewhere"),
        ("interrupted", {"reason": "Evicted"}, Kind.STOPPED, "“exp-1” was interrupted"),
        ("container_restarted", {"times": 1}, Kind.STOPPED, "“exp-1” was interrupted"),
        ("stopped_by_lifetime", {}, Kind.STOPPED, "“exp-1” stopped at the end of its lifetime"),
        ("stops_soon", {"minutes": 5}, Kind.STOPS_SOON, "“exp-1” stops soon"),
    ],
)
def test_its_person_alone_is_told(
    cast: Cast, workspace: Workspace, code: str, data: dict[str, Any], kind: Kind, title: str
) -> None:
    happen(workspace, code, **data)
    notice = Notice.objects.get()
    assert (notice.user, notice.kind) == (cast.bob.user, kind)
    assert told(cast.bob) == [title]


@pytest.mark.parametrize("code", ["stopping", "stopped", "admitted", "image_done", "renamed"])
def test_other_lines_are_for_its_page(cast: Cast, workspace: Workspace, code: str) -> None:
    happen(workspace, code, pool="a", node="b", old="c", new="d")
    assert told(cast.bob) == []


def test_nobody_is_told_what_they_did_themselves(cast: Cast, workspace: Workspace) -> None:
    lifecycle.stop(cast.bob, workspace)
    assert told(cast.bob) == []


def test_who_is_stopped_by_an_owner_is_told_by_whom(cast: Cast, workspace: Workspace) -> None:
    lifecycle.stop(cast.alice, workspace)
    assert told(cast.bob) == ["“exp-1” was stopped by alice"]
    assert told(cast.alice) == []


def test_who_wants_no_notices_of_a_workspace_gets_none(cast: Cast, workspace: Workspace) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(notify=False)
    happen(workspace, "given_up")
    assert told(cast.bob) == []


def test_a_change_that_is_undone_was_never_told(cast: Cast, workspace: Workspace) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        happen(workspace, "given_up")
        raise RuntimeError
    assert told(cast.bob) == []


# --- By mail


def test_ready_is_worth_a_mail_after_ten_minutes_of_waiting(cast: Cast) -> None:
    quick, slow = (make_workspace(cast, cast.bob, Phase.STARTING, name=name) for name in ("quick", "slow"))
    began(quick, timedelta(minutes=9))
    began(slow, timedelta(minutes=11))
    for row in (quick, slow):
        happen(row, "ready")
    by_mail = {notice.subject_id: notice.mail for notice in Notice.objects.filter(kind="ready")}
    assert by_mail == {quick.pk: Notice.Mail.NONE, slow.pk: Notice.Mail.WAITING}


def test_the_wait_is_counted_from_the_last_time_that_it_was_ready(cast: Cast, workspace: Workspace) -> None:
    began(workspace, timedelta(hours=5))
    happen(workspace, "restart_requested", name="exp-1", size="a100-1")
    happen(workspace, "ready")
    assert Notice.objects.get().mail == Notice.Mail.NONE


def test_a_failure_is_mailed_with_its_cause_what_to_do_and_the_way_there(
    cast: Cast, workspace: Workspace
) -> None:
    with changing(workspace.pk) as row:
        row.failure = {"code": "ended_before_ready", "data": {"reason": "OOMKilled"}, "at": ""}
        add_event(row, "given_up")
    outbox.send_due()
    [sent] = mail.outbox
    assert (sent.subject, sent.to) == ("“exp-1” failed", ["bob@example.org"])
    assert "The container ended before it was ready (OOMKilled)." in sent.body
    assert "Check its logs, then start it again." in sent.body
    assert f"http://testserver/workspaces/{workspace.pk}/" in sent.body


def test_who_is_about_to_be_stopped_reads_when_in_their_own_time_zone(
    cast: Cast, workspace: Workspace
) -> None:
    stops_at = timezone.now().replace(hour=12, minute=34) + timedelta(days=1)
    Workspace.objects.filter(pk=workspace.pk).update(stops_at=stops_at)
    cast.bob.user.time_zone = "Asia/Seoul"
    cast.bob.user.save()
    happen(workspace, "stops_soon", minutes=30)
    outbox.send_due()
    assert "Its lifetime ends at 21:34 KST" in str(mail.outbox[0].body)


def test_who_was_given_more_time_meanwhile_is_not_warned_any_more(cast: Cast, workspace: Workspace) -> None:
    stops_at = timezone.now() + timedelta(minutes=5)
    Workspace.objects.filter(pk=workspace.pk).update(stops_at=stops_at)
    happen(workspace, "stops_soon", minutes=5)
    Workspace.objects.filter(pk=workspace.pk).update(stops_at=stops_at + timedelta(hours=1))
    outbox.send_due()
    assert mail.outbox == []


def test_what_is_not_ready_any_more_is_not_mailed_as_ready(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STARTING)
    began(workspace, timedelta(hours=1))
    happen(workspace, "ready")  # the row is still starting
    outbox.send_due()
    assert mail.outbox == []


# --- Recipients


def test_who_left_the_tenant_reads_and_gets_nothing_of_it_any_more(cast: Cast, workspace: Workspace) -> None:
    happen(workspace, "given_up")
    assert told(cast.bob) == ["“exp-1” failed"]
    members.remove(cast.alice, cast.demo, "bob")
    assert told(cast.bob) == []
    assert inbox.fresh(cast.bob.user) == []
    outbox.send_due()
    assert mail.outbox == []


def test_the_secrets_of_a_workspace_are_in_no_notice(cast: Cast, workspace: Workspace) -> None:
    happen(workspace, "given_up")
    outbox.send_due()
    parts = [str(mail.outbox[0].message()), str(Notice.objects.values())]
    for secret in ("s3cret-value", workspace.secret.jupyter_token):
        assert not any(secret in part for part in parts)
