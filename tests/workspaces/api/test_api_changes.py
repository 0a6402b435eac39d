"""Changes to a workspace after its launch: settings, copies, keep-alive."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from clusters.models import Cluster
from quotas.models import Claim, Flavor, Pool
from storage import changes
from storage.models import Volume
from tests.cast import NETWORKS, Cast
from tests.shared.clients import ask, script
from tests.shared.workspace_rows import make_flavor, make_workspace
from tests.workspaces.play import Play
from workloads.sizes.sizing import SizeAsked
from workspaces.models import Phase, Workspace
from workspaces.runs import lifecycle
from workspaces.runs.changes import Change, change

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def two(cast: Cast) -> Flavor:
    return make_flavor(cast, 2)


def patch(cast: Cast, workspace: Workspace, body: Any) -> Any:
    return ask(script(cast.bob), "PATCH", f"workspaces/{workspace.pk}/", body)


# --- Sizes


def test_the_size_of_a_stopped_one_changes_at_once(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    shown = patch(cast, workspace, {"flavor": "a100-2"}).json()
    assert (shown["flavor"], shown["gpus"], shown["memory_mib"]) == ("a100-2", 2, 32_768)
    assert (shown["restart_needed"], shown["next_size"]) == (False, None)


def test_the_size_of_a_running_one_changes_with_the_next_start_and_says_so(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    shown = patch(cast, workspace, {"flavor": "a100-2", "cpu": 6}).json()
    assert (shown["flavor"], shown["gpus"], shown["restart_needed"]) == ("a100-1", 1, True)
    message = shown["next_size"].pop("message")
    assert "next start" in message
    assert shown["next_size"] == {
        "pool": "a100", "flavor": "a100-2", "gpus": 2, "cpu": 6, "memory_mib": 32_768
    }  # fmt: skip
    back = patch(cast, workspace, {"flavor": "a100-1"}).json()
    assert (back["restart_needed"], back["next_size"]) == (False, None)


@pytest.mark.parametrize(
    ("body", "becomes"),
    [
        ({"memory_mib": 20_000}, ("a100-1", 1, 4, 20_000)),
        ({"gpus": 3}, (None, 3, 4, 16_384)),
        ({"gpus": 2, "cpu": 1.5}, (None, 2, 1.5, 16_384)),
        ({"pool": "a100", "gpus": 2}, (None, 2, 2, 4096)),
        ({"gpu": {"min_memory_mib": 40_000}}, (None, 1, 2, 4096)),
    ],
)
def test_figures_alone_change_what_it_has_and_a_place_asks_anew(
    cast: Cast, body: Any, becomes: tuple[Any, ...]
) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    shown = patch(cast, workspace, body).json()
    assert (shown["flavor"], shown["gpus"], shown["cpu"], shown["memory_mib"]) == becomes


def test_a_stop_and_a_start_take_the_new_size_up(play: Play) -> None:
    row = play.begin_ready()
    assert change(play.cast.alice, row, Change(size=SizeAsked(flavor="a100-2")))
    assert (play.claim().units, play.row.units) == (1, 1)
    lifecycle.stop(play.cast.alice, row)
    play.until_phase("stopped")
    assert (play.row.units, play.row.next_size) == (2, None)
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")
    assert play.claim().units == 2


def test_a_restart_takes_the_new_size_up_under_a_claim_of_its_own(play: Play) -> None:
    row = play.begin_ready()
    change(play.cast.alice, row, Change(size=SizeAsked(flavor="a100-2")))
    lifecycle.restart(play.cast.alice, row)
    play.until(lambda now: now.phase == "ready" and now.run != row.run)
    assert (play.row.units, play.row.next_size, play.claim().units) == (2, None, 2)
    assert Claim.objects.exclude(state="released").count() == 1


def test_an_interruption_brings_it_back_as_it_was(play: Play) -> None:
    row = play.begin_ready()
    change(play.cast.alice, row, Change(size=SizeAsked(flavor="a100-2")))
    play.api.end_pod(play.pod(), "Evicted")
    play.until(lambda now: now.phase == "ready" and now.run != row.run)
    assert (play.claim().units, play.row.next_size is None) == (1, False)


def test_what_would_never_start_is_refused_as_at_launch(cast: Cast) -> None:
    for phase in (Phase.READY, Phase.STOPPED):
        workspace = make_workspace(cast, cast.bob, phase, name=str(phase))
        for body, field in (
            ({"gpus": 400}, "gpus"), ({"flavor": "none"}, "flavor"), ({"pool": "none"}, "pool"),
            ({"memory_mib": 10**7}, "memory_mib"), ({"flavor": "a100-1", "pool": "a100"}, "flavor"),
        ):  # fmt: skip
            answer = patch(cast, workspace, body | {"name": "changed"})
            assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, [field])
            workspace.refresh_from_db()
            assert (workspace.units, workspace.name, workspace.next_size) == (1, str(phase), None)


def test_it_does_not_move_to_a_cluster_without_its_files(cast: Cast) -> None:
    far = Cluster.objects.create(slug="far", name="Far", connection=Cluster.Connection.KUBECONFIG, **NETWORKS)
    Pool.objects.create(slug="far-cpu", name="Far CPU", cluster=far, resource_name="")
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    answer = patch(cast, workspace, {"pool": "far-cpu", "gpus": 0})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "other_cluster")


# --- Disk, lifetime, notify


def test_a_disk_can_be_added_while_it_is_stopped_and_then_grows(cast: Cast) -> None:
    stopped = make_workspace(cast, cast.bob, Phase.STOPPED)
    assert patch(cast, stopped, {"disk_mib": 1}).status_code == 422
    assert patch(cast, stopped, {"disk_mib": 2048}).json()["disk_mib"] == 2048
    for other, code in ((0, "invalid"), (1024, "cannot_shrink")):
        answer = patch(cast, stopped, {"disk_mib": other})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, code)
        assert list(answer.json()["error"]["fields"]) == ["disk_mib"]
    assert patch(cast, stopped, {"disk_mib": 2048}).status_code == 200
    assert patch(cast, stopped, {"disk_mib": 4096}).json()["disk_mib"] == 4096
    disk = Volume.objects.get(made_for=stopped.pk)
    assert (disk.requested_mib, stopped.events.filter(code="disk_grown").count()) == (4096, 1)
    changes.change(cast.bob, disk, {"size_mib": 8192})  # by itself, on its own page
    assert patch(cast, stopped, {}).json()["disk_mib"] == 8192
    running = make_workspace(cast, cast.bob, name="running")
    answer = patch(cast, running, {"disk_mib": 2048})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "stop_first")


def test_a_new_lifetime_of_a_running_one_counts_from_now_and_none_ends_the_clock(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, ready_at=timezone.now() - timedelta(days=5))
    patch(cast, workspace, {"max_runtime_minutes": 30})
    workspace.refresh_from_db()
    assert workspace.stops_at is not None
    assert abs(workspace.stops_at - timezone.now() - timedelta(minutes=30)) < timedelta(seconds=30)
    same = patch(cast, workspace, {"max_runtime_minutes": 30}).json()
    assert same["last_event"] == workspace.last_event
    none = patch(cast, workspace, {"max_runtime_minutes": None}).json()
    assert (none["stops_at"], none["max_runtime_minutes"]) == (None, None)
    workspace.refresh_from_db()
    assert workspace.lifetime_due_at is None


def test_a_stopped_ones_lifetime_waits_for_its_start(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    shown = patch(cast, workspace, {"max_runtime_minutes": 30, "notify": False}).json()
    assert (shown["stops_at"], shown["max_runtime_minutes"], shown["notify"]) == (None, 30, False)
    assert AuditEntry.objects.get(action="workspace.change").data["changed"] == ["lifetime", "notify"]


def test_idle_minutes_are_set_and_taken_back(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    assert patch(cast, workspace, {"idle_minutes": 10}).json()["idle_minutes"] == 10
    assert patch(cast, workspace, {"idle_minutes": 10}).status_code == 200
    assert patch(cast, workspace, {"idle_minutes": None}).json()["idle_minutes"] is None
    assert list(workspace.events.order_by("number").values_list("code", flat=True))[-2:] == [
        "idle_minutes_changed",
        "idle_minutes_removed",
    ]


def test_nothing_asked_changes_nothing(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    answer = patch(cast, workspace, {})
    assert (answer.status_code, answer.json()["last_event"]) == (200, workspace.last_event)
    assert not AuditEntry.objects.filter(action="workspace.change").exists()


# --- Clone


def clone(cast: Cast, who: str, workspace: Workspace, body: Any = None) -> Any:
    return ask(script(getattr(cast, who)), "POST", f"workspaces/{workspace.pk}/clone/", body)


def test_a_clone_has_the_settings_and_a_name_that_is_free(cast: Cast) -> None:
    settings: dict[str, Any] = {
        "repository": "https://example.org/a.git",
        "disk_mib": 1024,
        "max_runtime_minutes": 60,
        "notify": False,
    }
    source = make_workspace(cast, cast.bob, Phase.STOPPED, **settings)
    first, second = (clone(cast, "bob", source) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert (first.json()["name"], second.json()["name"]) == ("exp-2", "exp-3")
    shown = first.json()
    assert {name: shown[name] for name in settings} == settings
    assert (shown["flavor"], shown["env"], shown["phase"]) == ("a100-1", {"GREETING": "hello"}, "waiting")
    copy = Workspace.objects.get(pk=shown["id"])
    assert copy.secret.clear_env() == {"TOKEN": "s3cret-value"}
    assert copy.secret.host_key_public != source.secret.host_key_public
    assert copy.events.filter(code="cloned", data={"name": "exp-1"}).exists()


def test_a_clone_of_anothers_leaves_out_what_is_theirs_alone_and_says_so(cast: Cast) -> None:
    source = make_workspace(cast, cast.bob, repository="https://user:pw@example.org/a.git")
    answer = clone(cast, "alice", source, {"name": "mine"})
    assert (answer.status_code, answer.json()["owner"], answer.json()["name"]) == (202, "alice", "mine")
    copy = Workspace.objects.get(pk=answer.json()["id"])
    assert (copy.env, copy.repository, copy.secret.clear_env()) == ({}, "", {})
    event = copy.events.get(code="cloned_of_another")
    assert event.data == {"name": "exp-1", "owner": "bob"}


def test_a_clone_has_the_size_that_its_source_will_have(cast: Cast) -> None:
    source = make_workspace(cast, cast.bob)
    patch(cast, source, {"gpus": 2, "memory_mib": 8192})
    shown = clone(cast, "bob", source).json()
    assert (shown["gpus"], shown["cpu"], shown["memory_mib"]) == (2, 4, 8192)


def test_a_clone_is_checked_as_a_launch_is(cast: Cast) -> None:
    source = make_workspace(cast, cast.bob)
    assert clone(cast, "bob", source, {"name": "exp-1"}).json()["error"]["code"] == "name_taken"
    assert clone(cast, "bob", source, {"name": "-"}).status_code == 422
    assert clone(cast, "bob", source, {"env": {}}).status_code == 400
    cast.image.is_active = False
    cast.image.save()
    assert list(clone(cast, "bob", source).json()["error"]["fields"]) == ["image"]


def test_a_long_name_is_shortened_for_its_clone(cast: Cast) -> None:
    source = make_workspace(cast, cast.bob, name="x" * 63)
    assert clone(cast, "bob", source).json()["name"] == "x" * 61 + "-2"


# --- Keep alive


def test_keep_alive_is_remembered_and_tells_nothing_while_no_stop_was_announced(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    answer = ask(script(cast.bob), "POST", f"workspaces/{workspace.pk}/keep-alive/")
    assert (answer.status_code, answer.json()["last_event"]) == (200, workspace.last_event)
    workspace.refresh_from_db()
    assert workspace.kept_alive_at is not None


def test_keep_alive_takes_an_announced_stop_back(cast: Cast) -> None:
    now = timezone.now()
    soon: dict[str, Any] = {
        "idle_since": now,
        "idle_warned_at": now,
        "idle_stops_at": now + timedelta(minutes=5),
    }
    workspace = make_workspace(cast, cast.bob, **soon)
    answer = ask(script(cast.bob), "POST", f"workspaces/{workspace.pk}/keep-alive/")
    assert (answer.status_code, answer.json()["idle"]["stops_at"]) == (202, None)
    assert workspace.events.order_by("-number")[0].code == "kept_alive"


def test_what_does_not_run_cannot_be_kept_alive(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    answer = ask(script(cast.bob), "POST", f"workspaces/{workspace.pk}/keep-alive/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_running")


# --- Metrics


def announced(play: Play) -> dict[str, str]:
    annotations = play.pod()["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name.startswith("prometheus.io/")}


def test_the_place_of_metrics_changes_while_it_runs(play: Play) -> None:
    run = play.begin_ready().run
    owner = script(play.cast.alice)
    for port in (9090, 9091):
        body = {"metrics": {"port": port, "path": "/figures"}}
        shown = ask(owner, "PATCH", f"workspaces/{play.row.pk}/", body).json()
        assert (shown["metrics"], shown["pending_restart"]) == (body["metrics"], [])
        play.look()
        assert announced(play) == {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(port),
            "prometheus.io/path": "/figures",
        }
    assert ask(owner, "PATCH", f"workspaces/{play.row.pk}/", {"metrics": None}).json()["metrics"] is None
    play.look()
    assert announced(play) == {}
    assert (play.row.phase, play.row.run) == ("ready", run)
    assert [play.told(code) for code in ("metrics_changed", "metrics_removed")] == [2, 1]


def test_what_others_announce_in_a_pod_stays(play: Play) -> None:
    play.begin_ready()
    mesh = {"prometheus.io/scrape": "true", "prometheus.io/port": "15020"}
    play.pod()["metadata"].setdefault("annotations", {}).update(mesh)
    play.look()
    assert announced(play) == mesh
