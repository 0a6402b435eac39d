"""Apps of a workspace in the API and in the launch form: declared at any time, seen by those who may open them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from workspaces.launch.clone import clone
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db

SENT = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1", "name": "exp"}


def ask(client: Client, method: str, path: str, body: str = "") -> Any:
    return client.generic(method, f"/api/v1/workspaces/{path}", body, content_type="application/json")


def seen(client: Client, row: Workspace) -> list[tuple[str, int, str, bool]]:
    apps = client.get(f"/api/v1/workspaces/{row.pk}/").json()["endpoints"]["apps"]
    return [(app["name"], app["port"], app["shared_with"], app["url"] is not None) for app in apps]


def test_an_app_is_declared_shared_and_removed_while_the_workspace_runs(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob, jupyter_port=8888)
    bob, victor = browser(cast.bob), browser(cast.victor)
    made = ask(bob, "POST", f"{row.pk}/apps/", '{"name": "TensorBoard", "port": 6006}')
    assert (made.status_code, made.json()["shared_with"]) == (201, "me")
    assert made.json()["url"].endswith(f"/workspaces/{row.pk}/apps/6006/open/")
    assert seen(bob, row) == [("TensorBoard", 6006, "me", True)]
    assert seen(victor, row) == []
    assert (
        ask(bob, "POST", f"{row.pk}/apps/", '{"name": "x", "port": 6006}').json()["error"]["code"]
        == "port_taken"
    )
    shared = ask(bob, "PATCH", f"{row.pk}/apps/6006/", '{"shared_with": "tenant", "name": "runs"}')
    assert shared.json()["shared_with"] == "tenant"
    assert seen(victor, row) == [("runs", 6006, "tenant", True)]
    assert "runs" in victor.get(f"/workspaces/{row.pk}/").content.decode()
    assert ask(bob, "DELETE", f"{row.pk}/apps/6006/").status_code == 204
    assert ask(bob, "DELETE", f"{row.pk}/apps/6006/").status_code == 404
    assert seen(bob, row) == []
    codes = list(row.events.order_by("number").values_list("code", flat=True))[-3:]
    assert codes == ["app_added", "app_shared", "app_removed"]
    assert AuditEntry.objects.filter(action="workspace.apps", outcome="done").count() == 3


def test_a_workspace_has_eight_apps_at_most(cast: Cast) -> None:
    apps = [{"name": f"app {n}", "port": 3000 + n, "shared_with": "me"} for n in range(8)]
    row = make_workspace(cast, cast.bob, Phase.STOPPED, apps=apps)
    one_more = ask(browser(cast.bob), "POST", f"{row.pk}/apps/", '{"name": "x", "port": 6006}')
    assert (one_more.status_code, one_more.json()["error"]["code"]) == (409, "too_many_apps")


@pytest.mark.slow
def test_the_launch_form_takes_apps_and_clones_of_others_do_not(cast: Cast) -> None:
    bob = browser(cast.bob)
    refused = bob.post("/launch/", SENT | {"apps": "TensorBoard"})
    assert set(refused.context["form"].errors) == {"apps"}
    bob.post("/launch/", SENT | {"apps": "Tensor Board 6006\ngradio=7860 tenant\n"})
    row = Workspace.objects.get()
    assert [(app["name"], app["port"], app["shared_with"]) for app in row.apps] == [
        ("Tensor Board", 6006, "me"),
        ("gradio", 7860, "tenant"),
    ]
    again = bob.get(f"/launch/?again={row.pk}").content.decode()
    assert "Tensor Board 6006\ngradio 7860 tenant" in again
    assert clone(cast.bob, row).apps == row.apps
    assert clone(cast.alice, row).apps == []


def test_the_buttons_of_the_page_do_the_same(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob, jupyter_port=8888)
    bob = browser(cast.bob)
    refused = bob.post(
        f"/workspaces/{row.pk}/apps/", {"name": "a", "port": "80", "shared_with": "me"}, follow=True
    )
    assert "1024" in refused.content.decode()
    bob.post(f"/workspaces/{row.pk}/apps/", {"name": "a", "port": "6006", "shared_with": "me"})
    bob.post(f"/workspaces/{row.pk}/apps/6006/", {"shared_with": "tenant"})
    row.refresh_from_db()
    assert row.apps == [{"name": "a", "port": 6006, "shared_with": "tenant"}]
    bob.post(f"/workspaces/{row.pk}/apps/6006/", {"remove": "1"})
    row.refresh_from_db()
    assert row.apps == []
