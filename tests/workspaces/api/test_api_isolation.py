"""Access to the endpoints of workspaces. `tests/portal/test_isolation_matrix.py` tries every address as everybody."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.test import Client

from accounts.models import Scope
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

NOBODY = UUID("00000000-0000-4000-8000-000000000000")
READS = ["", "events/"]
# Requests that a viewer or member may not make on another's workspace, with the body that they need.
OTHERS_WRITES = [
    ("PATCH", "", {"name": "mine"}),
    ("DELETE", "", None),
    ("POST", "start/", None),
    ("POST", "stop/", None),
    ("POST", "restart/", None),
    ("POST", "extend/", None),
    ("POST", "keep-alive/", None),
]
ONE = (
    [("GET", path, None) for path in (*READS, "logs/", "metrics/")]
    + OTHERS_WRITES
    + [("POST", "clone/", None)]
)
BODY = {"tenant": "demo", "name": "exp-9", "image": "jupyter", "flavor": "a100-1"}


def untouched(workspace: Workspace) -> bool:
    there = Workspace.objects.get(pk=workspace.pk)
    return (there.last_event, there.name, there.desired) == (
        workspace.last_event,
        workspace.name,
        workspace.desired,
    )


def test_a_stranger_gets_the_bytes_of_what_does_not_exist(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    cast.bob.user.memberships.create(tenant=cast.second)
    for stranger in (
        script(cast.carol),
        script(cast.admin, tenant=cast.second),
        script(cast.bob, tenant=cast.second),
    ):
        for method, path, body in ONE:
            there = ask(stranger, method, f"workspaces/{workspace.pk}/{path}", body)
            nowhere = ask(stranger, method, f"workspaces/{NOBODY}/{path}", body)
            assert there.status_code == nowhere.status_code == 404, (method, path)
            assert there.content == nowhere.content, (method, path)
            assert untouched(workspace), (method, path)


def test_a_viewer_and_another_member_may_not_write(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    for other in (script(cast.victor), script(cast.bob)):
        for method, path, body in OTHERS_WRITES:
            answer = ask(other, method, f"workspaces/{workspace.pk}/{path}", body)
            assert (answer.status_code, untouched(workspace)) == (403, True), (method, path)


def test_a_read_token_writes_nothing(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    reader = script(cast.bob, Scope.READ)
    for method, path, body in [*OTHERS_WRITES, ("POST", "clone/", None)]:
        answer = ask(reader, method, f"workspaces/{workspace.pk}/{path}", body)
        assert (answer.status_code, untouched(workspace)) == (403, True), (method, path)
    assert ask(reader, "POST", "workspaces/", BODY).status_code == 403
    assert Workspace.objects.count() == 1


def test_everybody_in_the_tenant_may_look(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    for actor in (cast.alice, cast.bob, cast.victor, cast.admin):
        looks = script(actor, Scope.READ)
        for path in READS:
            answer = ask(looks, "GET", f"workspaces/{workspace.pk}/{path}")
            assert answer.status_code == 200
            links = path == "" and actor == cast.bob
            assert (f"/workspaces/{workspace.pk}/open/" in answer.content.decode()) == links


def test_logs_are_for_its_person_and_the_owners(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    for other in (cast.victor, cast.bob):
        assert ask(script(other), "GET", f"workspaces/{workspace.pk}/logs/").status_code == 403


@pytest.mark.parametrize("verb", ["stop/", "restart/", "start/"])
def test_an_owner_and_an_admin_may_stop_but_not_start_for_others(cast: Cast, verb: str) -> None:
    for number, actor in enumerate((cast.alice, cast.admin)):
        workspace = make_workspace(cast, cast.bob, name=f"exp-{number}")
        expected = 202 if verb == "stop/" else 403
        assert ask(script(actor), "POST", f"workspaces/{workspace.pk}/{verb}").status_code == expected


def test_a_viewer_may_not_launch_and_a_stranger_does_not_find_the_tenant(cast: Cast) -> None:
    assert ask(script(cast.victor), "POST", "workspaces/", BODY).status_code == 403
    assert ask(script(cast.carol), "POST", "workspaces/", BODY).status_code == 404
    assert ask(script(cast.carol), "POST", "estimate/", BODY).status_code == 404
    assert not Workspace.objects.exists()


def test_lists_show_the_own_tenants_alone(cast: Cast) -> None:
    make_workspace(cast, cast.bob, name="of-demo")
    make_workspace(cast, cast.carol, name="of-second")
    cast.alice.user.memberships.create(tenant=cast.second)

    def names(client: Client) -> list[str]:
        return [row["name"] for row in ask(client, "GET", "workspaces/").json()["results"]]

    assert names(script(cast.carol)) == ["of-second"]
    assert names(script(cast.victor)) == ["of-demo"]
    assert names(script(cast.admin)) == ["of-second", "of-demo"]
    assert names(script(cast.admin, tenant=cast.demo)) == ["of-demo"]
    assert names(script(cast.alice, tenant=cast.second)) == ["of-second"]


def test_a_browser_session_needs_the_csrf_token_to_write(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(cast.bob.user)
    assert ask(browser, "GET", f"workspaces/{workspace.pk}/").status_code == 200
    assert ask(browser, "POST", f"workspaces/{workspace.pk}/stop/").status_code == 403
    assert browser.post(f"/workspaces/{workspace.pk}/stop/").status_code == 403


def test_who_was_taken_out_of_the_tenant_is_a_stranger_at_once(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    bob = script(cast.bob)
    cast.bob.user.memberships.all().delete()
    assert ask(bob, "GET", f"workspaces/{workspace.pk}/").status_code == 404
    assert ask(bob, "GET", "workspaces/").json()["results"] == []
    assert ask(script(cast.alice), "GET", f"workspaces/{workspace.pk}/").json()["owner"] == "bob"
