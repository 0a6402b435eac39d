"""Admin page of drift: open findings, refused actions, and the box to tick."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.errands import running
from monitoring.models import Finding, Look
from tests.admin_forms import confirm, preview, text_of
from tests.cast import Cast
from tests.monitoring.drift.findings import PAGE, finding
from tests.shared.clients import ask, browser, script
from tests.shared.parsed import samples
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

FIELD = {"path": "spec.type", "by": "kubectl-edit", "at": "2026-01-01T00:00:00Z", "value": "NodePort"}


@pytest.fixture
def client(cast: Cast) -> Client:
    return browser(cast.admin)


def test_the_list_shows_what_is_open_and_other_states_when_asked(cast: Cast, client: Client) -> None:
    now = timezone.now()
    finding(cast, "unwanted")
    finding(cast, "changed", "Service", data={"fields": [FIELD]})
    finding(cast, "unwanted", name="accepted-one", accepted_at=now)
    finding(cast, "unwanted", name="over-one", resolved_at=now)
    finding(cast, "unwanted", name="new-one", confirmed_at=None)
    Look.objects.create(cluster=cast.cluster, ended_at=now, error="Cannot reach it")
    text = text_of(client.get(PAGE))
    assert "unwanted-secret" in text and "type (kubectl-edit)" in text
    assert "The last check of Main did not finish: Cannot reach it" in text
    assert not any(name in text for name in ("accepted-one", "over-one", "new-one"))
    for state, name in (("accepted", "accepted-one"), ("over", "over-one"), ("new", "new-one")):
        assert name in text_of(client.get(PAGE, {"state": state}))


def test_rows_that_no_worker_did_are_said_each(
    cast: Cast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_name: str, **_arguments: Any) -> None:
        raise running.NoAnswer("Nobody did it.")

    rows = [finding(cast, "unwanted", name=name) for name in ("left-1", "left-2")]
    page = preview(client, PAGE, "delete_object", *rows)
    monkeypatch.setattr(running, "ask", silent)
    text = text_of(confirm(client, PAGE, page))
    assert text.count("Nobody did it.") == 2 and "The cluster rejected it" not in text


def test_each_action_says_what_it_will_do_or_why_not(cast: Cast, client: Client) -> None:
    workspace = make_workspace(cast, cast.bob, name="train")
    left = finding(cast, "unwanted")
    changed = finding(cast, "changed", "Service", workspace=workspace, data={"fields": [FIELD]})
    namespace = finding(cast, "unwanted", "Namespace", namespace="", name="berth-gone")
    pod = finding(cast, "changed", "Pod", workspace=workspace, data={"fields": [FIELD]})
    for action, row, words in (
        ("delete_object", left, "It is deleted."),
        ("delete_object", changed, "No change: Berth needs it."),
        ("delete_object", namespace, "kubectl delete namespace berth-gone"),
        ("delete_data", left, "It has no data"),
        ("accept", changed, "kubectl-edit set spec.type to NodePort"),
        ("recreate", changed, "Running workspaces are not affected."),
        ("recreate", pod, "The workspace is restarted"),
        ("recreate", left, "No change: Berth does not need it."),
    ):
        assert words in text_of(preview(client, PAGE, action, row)), action
    Finding.objects.filter(pk=changed.pk).update(accepted_at=timezone.now())
    assert "train of bob in Demo" in text_of(preview(client, PAGE, "recreate", changed))


def test_data_is_deleted_only_after_a_tick(cast: Cast, client: Client) -> None:
    kept = finding(cast, "unwanted", "PersistentVolumeClaim", workspace=make_workspace(cast, cast.bob))
    page = preview(client, PAGE, "delete_data", kept)
    assert 'name="ticked" value="yes" required' in text_of(page)
    again = confirm(client, PAGE, page)
    assert "Delete from the cluster, with the data" in text_of(again)  # asked again, nothing done
    assert Finding.objects.open().count() == 1


def test_a_cluster_that_does_not_answer_leaves_the_finding_and_says_why(cast: Cast, client: Client) -> None:
    left = finding(cast, "unwanted")
    page = preview(client, PAGE, "delete_object", left)
    assert "The cluster rejected it: No connection to main" in text_of(confirm(client, PAGE, page))
    assert Finding.objects.open().get() == left


def test_only_admins_see_the_page(cast: Cast) -> None:
    row = finding(cast, "unwanted")
    client = browser(cast.alice)
    for path in (PAGE, f"{PAGE}{row.pk}/change/"):
        assert client.get(path).status_code in (302, 403)
    assert client.post(f"{PAGE}look/").status_code in (302, 403)
    assert not Look.objects.exists()


def test_check_now_enqueues_a_look_at_every_cluster(
    cast: Cast, client: Client, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(f"{PAGE}look/", follow=True)
    assert "The clusters are being checked." in text_of(answer)
    look = Look.objects.get(cluster=cast.cluster)
    assert look.wanted_at is not None and look.queued_at is not None
    assert client.get(f"{PAGE}look/").status_code == 405


def test_the_overview_and_the_metrics_count_open_findings(cast: Cast, client: Client) -> None:
    finding(cast, "unwanted")
    finding(cast, "missing", name="new-one", confirmed_at=None)
    assert "1 object in the clusters differs from Berth" in text_of(client.get("/admin/"))
    read = samples(client)
    assert [read["berth_drift_findings", what] for what in ("unwanted", "missing")] == [1, 0]


def test_the_page_of_a_finding_shows_its_text_and_history(cast: Cast, client: Client) -> None:
    workspace = make_workspace(cast, cast.bob, name="train")
    row = finding(cast, "changed", "Service", workspace=workspace, data={"fields": [FIELD]})
    text = text_of(client.get(f"{PAGE}{row.pk}/change/"))
    assert "Somebody changed Service berth-demo/changed-service." in text
    assert "kubectl-edit set spec.type to NodePort on " in text
    assert "Recreate as it should be" in text and "Delete, keep data" not in text
    assert client.get(f"{PAGE}{row.pk}/history/").status_code == 200
    Workspace.objects.filter(pk=workspace.pk).update(deleted_at=timezone.now())
    assert "User view" not in text_of(client.get(f"{PAGE}{row.pk}/change/")).split("<main")[1]


def test_findings_are_listed_and_dealt_with_over_rest(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = finding(cast, "changed", "Service", data={"fields": [FIELD]})
    finding(cast, "unwanted", name="over-one", resolved_at=timezone.now())
    asked: list[str] = []

    def ask_worker(_name: str, *, verb: str, **_arguments: Any) -> bool:
        asked.append(verb)
        return True

    monkeypatch.setattr(running, "ask", ask_worker)
    admin = script(cast.admin)
    [line] = ask(admin, "GET", "drift/?state=open").json()["results"]
    assert (line["id"], line["what"], line["cluster"]) == (str(changed.pk), "changed", "main")
    assert "adopt" in line["may"] and line["message"] and line["differs"]
    assert len(ask(admin, "GET", "drift/").json()["results"]) == 2
    for verb, body in (
        ("adopt", None),
        ("recreate", None),
        ("delete", None),
        ("delete", {"with_data": True}),
    ):
        assert ask(admin, "POST", f"drift/{changed.pk}/{verb}/", body).status_code == 200
    assert asked == ["accept", "recreate", "delete", "delete_data"]
    assert ask(admin, "POST", f"drift/{changed.pk}/delete/", {"with_data": "perhaps"}).status_code == 400
    assert ask(admin, "POST", "drift/look/").status_code == 204
    assert Look.objects.get().wanted_at
