"""Launches in a cluster that cannot isolate tenants: refused in the same words by pages, API and forecast."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.errors import Conflict
from accounts.models import AuditEntry
from clusters.models import Cluster
from quotas.models import Claim
from tests.cast import NETWORKS, Cast
from tests.shared.clients import ask, browser, script
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.reading import words
from tests.workspaces.specs import spec
from workspaces.launch.launch import launch
from workspaces.models import Phase, Workspace
from workspaces.runs.lifecycle import restart, start

pytestmark = pytest.mark.django_db

BODY = {"tenant": "demo", "name": "exp-9", "image": "jupyter", "flavor": "a100-1"}
FORM = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1", "name": "exp", "notify": "on"}


@pytest.fixture
def unknown(cast: Cast) -> Cast:
    """The cast, in a cluster whose networks are unknown."""
    Cluster.objects.update(**{name: [] for name in NETWORKS})
    cast.cluster.refresh_from_db()
    cast.pool.refresh_from_db()
    return cast


@pytest.mark.parametrize("gap", sorted(NETWORKS))
def test_a_launch_is_refused_with_what_to_fill_in(cast: Cast, gap: str) -> None:
    Cluster.objects.update(**{gap: []})
    answer = ask(script(cast.bob), "POST", "workspaces/", BODY)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (409, "isolation_unknown")
    assert str(Cluster._meta.get_field(gap).verbose_name) in error["message"]  # type: ignore[union-attr]
    assert error["hint"]
    assert not Workspace.objects.exists() and not Claim.objects.exists()
    refusals = AuditEntry.objects.filter(action="workspace.launch", outcome="refused")
    assert [entry.data["code"] for entry in refusals] == ["isolation_unknown"]


def test_the_form_and_its_forecast_say_it(unknown: Cast) -> None:
    page = browser(unknown.bob).get("/launch/")
    assert 'data-code="isolation_unknown"' in page.content.decode()
    assert "pod networks" in words(page)
    sent = browser(unknown.bob).post("/launch/", FORM)
    assert (sent.status_code, Workspace.objects.count()) == (422, 0)
    assert "pod networks" in words(sent)


def test_an_estimate_says_it_and_offers_nothing_in_that_cluster(unknown: Cast) -> None:
    told = ask(script(unknown.bob), "POST", "estimate/", BODY).json()
    assert (told["admissible"], told["starts_now"], told["alternatives"]) == (False, False, [])
    assert [reason["code"] for reason in told["reasons"]] == ["isolation_unknown"]


def test_a_stopped_workspace_is_not_started_and_a_running_one_goes_on(unknown: Cast) -> None:
    stopped = make_workspace(unknown, unknown.bob, Phase.STOPPED, name="stopped")
    with pytest.raises(Conflict) as refused:
        start(unknown.bob, stopped)
    assert refused.value.code == "isolation_unknown"
    running = make_workspace(unknown, unknown.bob, name="running")
    answer = ask(script(unknown.bob), "GET", f"workspaces/{running.pk}/").json()
    assert (answer["phase"], answer["desired"]) == ("ready", "running")


def test_a_run_is_not_ended_for_a_start_that_would_be_refused(unknown: Cast) -> None:
    ending = make_workspace(unknown, unknown.bob, Phase.STOPPING, name="ending", ending="stop")
    with pytest.raises(Conflict):
        start(unknown.bob, ending)
    larger = make_workspace(unknown, unknown.bob, name="larger", next_size={"units": 2})
    with pytest.raises(Conflict):
        restart(unknown.bob, larger)
    larger.refresh_from_db()
    assert (larger.phase, larger.ending) == (Phase.READY, "")
    same = make_workspace(unknown, unknown.bob, name="same")
    assert restart(unknown.bob, same)


@pytest.mark.parametrize(
    "cure",
    [
        {"without_isolation": True},
        {
            "found_networks": {
                "pods": ["10.42.0.0/16"],
                "services": ["10.43.0.0/16"],
                "api": ["192.0.2.10/32"],
            }
        },
        NETWORKS,
    ],
    ids=["an admin's word", "found", "filled in"],
)
def test_it_goes_on_once_they_are_known_or_an_admin_runs_without(unknown: Cast, cure: dict[str, Any]) -> None:
    Cluster.objects.update(**cure)
    assert launch(unknown.bob, spec()).phase == Phase.WAITING
