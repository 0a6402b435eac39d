"""Examples of workspaces: launches, templates, their life, ways into them, and people they are shared with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from tests.portal.parity.bodies import LAUNCH, SCHEDULE, TEMPLATE
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Schedule, Workspace

VERB = "workspaces/<uuid:id>/<str:verb>/"
APPS = "workspaces/<uuid:id>/apps/<int:port>/"
BOARD = {"name": "TensorBoard", "port": 6006, "shared_with": "me"}


@example("POST workspaces/", "launch/")
def a_workspace(scene: Scene) -> None:
    made = scene.alice.api("POST workspaces/", LAUNCH)
    assert scene.alice.get(f"workspaces/{made['id']}/")["desired"] == "running"


@example("POST templates/", "launch/templates/")
def a_template(scene: Scene) -> None:
    scene.alice.api("POST templates/", TEMPLATE)
    assert [one["name"] for one in scene.bob.list("templates/")] == ["Week 3"]


@example("DELETE templates/<uuid:id>/", "launch/templates/<uuid:id>/delete/")
def a_template_is_deleted(scene: Scene) -> None:
    made = scene.alice.api("POST templates/", TEMPLATE)
    scene.alice.api(f"DELETE templates/{made['id']}/")
    assert scene.alice.list("templates/") == []


@example("PATCH workspaces/<uuid:id>/", "workspaces/<uuid:id>/settings/")
def other_settings(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    wanted = {"name": "exp-7", "notify": False, "max_runtime_minutes": 90}
    scene.alice.api(f"PATCH {there}", wanted | {"env": {"A": "b"}})
    found = scene.alice.get(there)
    assert wanted.items() <= found.items()
    assert (found["pending_restart"], found["next_env"]) == (["env"], {"A": "b"})


@example("PATCH workspaces/<uuid:id>/", "workspaces/<uuid:id>/instead/")
def another_size_while_it_waits(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice, Phase.WAITING))
    scene.alice.api(f"PATCH {there}", {"pool": "a100", "gpus": 2})
    assert scene.alice.get(there)["gpus"] == 2


@example("DELETE workspaces/<uuid:id>/", "workspaces/bulk/", "workspaces/<uuid:id>/delete/")
def a_workspace_is_deleted(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    scene.alice.api(f"DELETE {there}?delete_disk=true")
    assert scene.alice.get(there)["desired"] == "deleted"


@example("POST workspaces/<uuid:id>/start/", VERB)
def a_workspace_is_started(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice, Phase.STOPPED))
    scene.alice.api(f"POST {there}start/")
    assert scene.alice.get(there)["desired"] == "running"


@example("POST workspaces/<uuid:id>/stop/", "workspaces/bulk/", VERB, "workspaces.workspace stop")
def a_workspace_is_stopped(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    scene.alice.api(f"POST {there}stop/")
    assert scene.alice.get(there)["desired"] == "stopped"


@example("POST workspaces/<uuid:id>/restart/", VERB)
def a_workspace_is_restarted(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    scene.alice.api(f"POST {there}restart/")
    assert "restarting" in [one["code"] for one in scene.alice.list(f"{there}events/")]


@example("POST workspaces/<uuid:id>/extend/", VERB)
def a_workspace_may_run_longer(scene: Scene) -> None:
    end = timezone.now() + timedelta(minutes=5)
    row = make_workspace(scene.cast, scene.cast.alice, max_runtime_minutes=60, stops_at=end)
    before = scene.alice.get(at(row))["stops_at"]
    scene.alice.api(f"POST {at(row)}extend/", {"minutes": 90})
    assert scene.alice.get(at(row))["stops_at"] > before


@example("POST workspaces/<uuid:id>/keep-alive/", VERB)
def an_idle_workspace_is_kept(scene: Scene) -> None:
    now = timezone.now()
    idle: dict[str, Any] = {
        "idle_since": now - timedelta(hours=1),
        "idle_warned_at": now,
        "idle_stops_at": now + timedelta(minutes=5),
    }
    there = at(make_workspace(scene.cast, scene.cast.alice, **idle))
    assert scene.alice.get(there)["idle"]["stops_at"]
    scene.alice.api(f"POST {there}keep-alive/")
    assert scene.alice.get(there)["idle"]["stops_at"] is None


@example("POST workspaces/<uuid:id>/clone/", "workspaces/<uuid:id>/clone/")
def a_workspace_is_cloned(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    made = scene.alice.api(f"POST {there}clone/", {"name": "copy"})
    assert scene.alice.get(f"workspaces/{made['id']}/")["env"] == {"GREETING": "hello"}


@example("POST workspaces/<uuid:id>/apps/", "workspaces/<uuid:id>/apps/")
def an_app(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    scene.alice.api(f"POST {there}apps/", BOARD)
    assert [one["port"] for one in apps(scene, there)] == [6006]


@example("PATCH workspaces/<uuid:id>/apps/<int:port>/", APPS)
def an_app_is_shared(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice, apps=[BOARD]))
    scene.alice.api(f"PATCH {there}apps/6006/", {"shared_with": "tenant"})
    assert [one["shared_with"] for one in apps(scene, there)] == ["tenant"]


@example("DELETE workspaces/<uuid:id>/apps/<int:port>/", APPS)
def an_app_is_removed(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice, apps=[BOARD]))
    scene.alice.api(f"DELETE {there}apps/6006/")
    assert apps(scene, there) == []


@example("POST workspaces/<uuid:id>/shares/", "workspaces/<uuid:id>/shares/")
def a_workspace_is_shared(scene: Scene) -> None:
    there, _share = shared(scene)
    assert scene.bob.get(there)["shared_with_me"] == "work"


@example("DELETE workspaces/<uuid:id>/shares/<uuid:share>/", "workspaces/<uuid:id>/shares/<uuid:share>/end/")
def a_share_ends(scene: Scene) -> None:
    there, share = shared(scene)
    scene.alice.api(f"DELETE {there}shares/{share}/")
    assert scene.bob.get(there)["shared_with_me"] is None


def shared(scene: Scene) -> tuple[str, str]:
    """Share a workspace with bob. Return its address, and the share."""
    there = at(make_workspace(scene.cast, scene.cast.alice))
    made = scene.alice.api(f"POST {there}shares/", {"username": "bob", "role": "work"})
    return there, str(made["id"])


@example("PUT workspaces/<uuid:id>/schedule/", "workspaces/<uuid:id>/schedule/")
def a_schedule(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    scene.alice.api(f"PUT {there}schedule/", SCHEDULE)
    assert SCHEDULE.items() <= scene.alice.get(f"{there}schedule/").items()


@example("DELETE workspaces/<uuid:id>/schedule/", "workspaces/<uuid:id>/schedule/")
def a_schedule_ends(scene: Scene) -> None:
    there = at(make_workspace(scene.cast, scene.cast.alice))
    scene.alice.api(f"PUT {there}schedule/", SCHEDULE)
    scene.alice.api(f"DELETE {there}schedule/")
    assert not Schedule.objects.exists()


def at(workspace: Workspace) -> str:
    return f"workspaces/{workspace.pk}/"


def apps(scene: Scene, there: str) -> list[Any]:
    found: list[Any] = scene.alice.get(there)["endpoints"]["apps"]
    return found
