"""Tokens of a workspace's Jupyter: who gets them, and when they end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from aiohttp import WSMsgType
from django.utils import timezone

from accounts import members
from accounts.access import Actor
from accounts.credentials import sessions, ssh_keys, tokens
from accounts.errors import Conflict, NotAllowed
from accounts.models import APIToken, AuditEntry, Membership, Role, Scope, Tenant
from accounts.sign_on import groups
from accounts.sign_on.configuration import Grant
from tests.cast import Cast
from tests.shared.clients import api
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.ways_in.gateway_stage import Stage, staged
from workspaces import receivers
from workspaces.gateway.scripts import hand_out
from workspaces.models import Phase, Workspace
from workspaces.state import jupyter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKqP3Cr632C2dNhhgKVcon4ldUSAeKiku2yP9O9/bDtY"


@pytest.fixture
async def stage(cast: Cast) -> AsyncIterator[Stage]:
    async with staged(cast) as stage:
        yield stage


def fresh(workspace: Workspace) -> Workspace:
    return Workspace.objects.select_related("secret", "tenant", "owner", "pool__cluster").get(pk=workspace.pk)


def test_each_run_and_each_use_has_its_own_token(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    first = jupyter.token(workspace), jupyter.gateway_token(workspace)
    assert first == (jupyter.token(fresh(workspace)), jupyter.gateway_token(fresh(workspace)))
    workspace.run = uuid4()
    assert len({*first, jupyter.token(workspace), jupyter.gateway_token(workspace)}) == 4
    assert jupyter.ticket(workspace) != jupyter.ticket(workspace)


# --- Who gets it


def test_a_token_that_only_reads_sees_a_link_and_gets_no_token(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    reader = api(cast.bob, Scope.READ)
    shown = reader.get(f"/api/v1/workspaces/{workspace.pk}/")
    assert shown.json()["endpoints"]["jupyter"] == f"http://testserver/workspaces/{workspace.pk}/open/"
    for known in (jupyter.token(workspace), jupyter.gateway_token(workspace)):
        assert known not in shown.content.decode()
    assert reader.post(f"/api/v1/workspaces/{workspace.pk}/jupyter/").status_code == 403
    assert reader.get(f"/workspaces/{workspace.pk}/open/").status_code == 302  # to the sign-in page


def test_a_script_of_the_owner_gets_address_and_token_and_the_trail_says_so(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    answer = api(cast.bob, Scope.WORKSPACES).post(f"/api/v1/workspaces/{workspace.pk}/jupyter/")
    assert answer.status_code == 201
    assert answer.json() == {
        "url": f"http://{workspace.pk}.localhost/",
        "token": jupyter.token(workspace),
        "expires_at": APIToken.objects.get().expires_at.isoformat().replace("+00:00", "Z"),
    }
    assert answer["Cache-Control"] == "no-store"
    entry = AuditEntry.objects.get(action="workspace.jupyter")
    assert (entry.data["token"], entry.target_id) == (APIToken.objects.get().prefix, str(workspace.pk))


@pytest.mark.parametrize("domain", ["localhost", ""])
def test_without_a_domain_the_address_is_the_workspaces_own(
    cast: Cast, settings: object, domain: str
) -> None:
    settings.WORKSPACE_DOMAIN = domain  # type: ignore[attr-defined]
    workspace = make_workspace(cast, cast.bob, host="fd00::5")
    url, _, _ = hand_out(cast.bob, workspace, "berth.example:8443")
    assert url == (f"http://{workspace.pk}.localhost:8443/" if domain else "http://[fd00::5]:8888/")


def test_what_does_not_run_or_is_anothers_gives_no_token(cast: Cast) -> None:
    with pytest.raises(Conflict):
        hand_out(cast.bob, make_workspace(cast, cast.bob, Phase.STARTING), "testserver")
    for other in (cast.alice, cast.admin):
        with pytest.raises(NotAllowed):
            hand_out(other, make_workspace(cast, cast.bob, name=other.user.username), "testserver")


# --- When it ends


def remove(cast: Cast) -> None:
    members.remove(cast.alice, cast.demo, "bob")


def deactivate(cast: Cast) -> None:
    members.set_active(cast.admin, cast.bob.user, active=False)


def sign_out_everywhere(cast: Cast) -> None:
    sessions.sign_out_everywhere(cast.bob)


def make_viewer(cast: Cast) -> None:
    members.set_role(cast.alice, cast.demo, "bob", Role.VIEWER)


def lose_the_group(cast: Cast) -> None:
    """Sign in by a provider that no longer names the group that gave the role."""
    Membership.objects.filter(user=cast.bob.user).update(by_group=True)
    groups.follow(cast.bob.user, frozenset(), (Grant("gpu-users", "demo", Role.MEMBER),))


LOSES = (remove, deactivate, make_viewer, lose_the_group, sign_out_everywhere)


@pytest.mark.parametrize("loses", LOSES, ids=lambda loses: loses.__name__)
def test_a_lost_right_replaces_the_token_and_brings_it_to_the_cluster(
    cast: Cast, loses: Callable[[Cast], None]
) -> None:
    own, anothers = make_workspace(cast, cast.bob), make_workspace(cast, cast.alice)
    before = jupyter.token(own), jupyter.gateway_token(own), jupyter.token(anothers)
    loses(cast)
    own, anothers = fresh(own), fresh(anothers)
    assert jupyter.token(own) != before[0]
    assert (jupyter.gateway_token(own) != before[1]) == (loses is not sign_out_everywhere)
    assert jupyter.token(anothers) == before[2]
    assert (own.dirty_marks > 0, anothers.dirty_marks) == (True, 0)


def test_a_revoked_api_token_ends_what_it_was_exchanged_for_and_nothing_else(cast: Cast) -> None:
    asked, not_asked = make_workspace(cast, cast.bob), make_workspace(cast, cast.bob, name="exp-2")
    row, _ = tokens.issue(cast.bob.user, "script", [Scope.WORKSPACES])
    other, _ = tokens.issue(cast.bob.user, "other", [Scope.WORKSPACES])
    _, given, _ = hand_out(Actor(cast.bob.user, row), asked, "testserver")
    tokens.revoke(cast.bob, other.pk)
    assert jupyter.token(fresh(asked)) == given
    kept = jupyter.token(not_asked)
    tokens.revoke(cast.bob, row.pk)
    assert jupyter.token(fresh(asked)) != given
    assert jupyter.token(fresh(not_asked)) == kept
    assert fresh(asked).secret.handed_to == []


def expire(token: APIToken) -> None:
    APIToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())


def narrow_its_scopes(token: APIToken) -> None:
    APIToken.objects.filter(pk=token.pk).update(scopes=[Scope.READ])


def bind_it_elsewhere(token: APIToken) -> None:
    APIToken.objects.filter(pk=token.pk).update(tenant=Tenant.objects.get(slug="second"))


def delete_it(token: APIToken) -> None:
    APIToken.objects.filter(pk=token.pk).delete()


ENDS = (expire, narrow_its_scopes, bind_it_elsewhere, delete_it)


@pytest.mark.parametrize("ends", ENDS, ids=lambda ends: ends.__name__)
def test_an_api_token_that_ends_unsaid_ends_what_it_was_exchanged_for(
    cast: Cast, ends: Callable[[APIToken], None]
) -> None:
    asked, not_asked = make_workspace(cast, cast.bob), make_workspace(cast, cast.bob, name="exp-2")
    row, _ = tokens.issue(cast.bob.user, "script", [Scope.WORKSPACES])
    _, given, until = hand_out(Actor(cast.bob.user, row), asked, "testserver")
    kept = jupyter.token(not_asked)
    receivers.end_handed_out()
    assert (jupyter.token(fresh(asked)), until) == (given, row.expires_at)
    ends(row)
    receivers.on_tick()
    assert jupyter.token(fresh(asked)) != given
    assert jupyter.token(fresh(not_asked)) == kept
    assert (fresh(asked).dirty_marks > 0, fresh(not_asked).dirty_marks) == (True, 0)
    after = jupyter.token(fresh(asked))
    receivers.end_handed_out()
    assert jupyter.token(fresh(asked)) == after


def test_what_a_script_got_ends_with_the_run_or_with_its_token_whichever_is_first(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    row, _ = tokens.issue(cast.bob.user, "script", [Scope.WORKSPACES], days=2)
    assert hand_out(cast.bob, workspace, "testserver")[2] is None
    for hours in (1, 100):
        workspace.stops_at = timezone.now() + timedelta(hours=hours)
        ends = hand_out(Actor(cast.bob.user, row), workspace, "testserver")[2]
        assert ends == min(workspace.stops_at, row.expires_at)


def test_another_ssh_key_leaves_jupyters_token_alone(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    before = jupyter.token(workspace)
    ssh_keys.add(cast.bob, "laptop", KEY)
    assert jupyter.token(fresh(workspace)) == before


# --- Through the gateway


async def bearing(stage: Stage, token: str, path: str = "/api/kernels") -> int:
    status, _ = await stage.get(path, headers={"Authorization": f"token {token}"})
    return status


async def test_a_script_goes_through_the_gateway_until_its_owner_loses_the_right(stage: Stage) -> None:
    workspace = await in_thread(fresh)(stage.workspace)
    token = jupyter.token(workspace)
    assert [await bearing(stage, given) for given in (token, jupyter.gateway_token(workspace), "")] == [
        200,
        401,
        401,
    ]
    headers = {"Authorization": f"Bearer {token}"}
    async with stage.browser.ws_connect(stage.at("/socket"), headers=headers) as open_socket:
        told = await open_socket.receive_json()
        assert told["headers"]["Authorization"] == f"token {jupyter.gateway_token(workspace)}"
        await in_thread(remove)(stage.cast)
        closed = await open_socket.receive(10)
        assert (closed.type, open_socket.close_code) == (WSMsgType.CLOSE, 1008)
    assert await bearing(stage, token) == 401


async def test_jupyters_own_cookies_pass_in_neither_direction(stage: Stage) -> None:
    await stage.open()
    async with stage.browser.get(
        stage.at("/api"), headers={"Cookie": f"{pass_of(stage)}; username-x=1; _xsrf=2; a=3"}
    ) as answer:
        told = await answer.json()
    assert told["headers"]["Cookie"] == "a=3; berth_name=exp-1"  # the name of the browser's tab


def pass_of(stage: Stage) -> str:
    return "; ".join(f"{cookie.key}={cookie.value}" for cookie in stage.browser.cookie_jar)


async def test_addresses_of_berths_own_never_reach_jupyter(stage: Stage) -> None:
    await stage.open()
    for path in ("/_berth/", "/_berth/enter/x", "/_berth/status"):
        status, _ = await stage.get(path)
        assert status == 404
