"""JSON of a workspace: the contract's shape, and its private parts for the owner alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from workspaces.api.representation import event_json, workspace_json
from workspaces.models import Event, Phase
from workspaces.state import jupyter
from workspaces.state.story import add_event

pytestmark = pytest.mark.django_db

CLOSED: dict[str, Any] = {"jupyter": None, "ssh": None, "code_server": None, "apps": []}


@pytest.mark.parametrize("domain", ["ws.example", ""])
def test_through_the_portal_alone_the_link_is_the_portals_own(cast: Cast, settings: Any, domain: str) -> None:
    settings.WORKSPACE_DOMAIN = domain
    cast.cluster.exposure = cast.cluster.Exposure.PORTAL
    cast.cluster.save()
    workspace = make_workspace(cast, cast.bob)
    link = f"http://testserver/workspaces/{workspace.pk}/open/" if domain else None
    assert workspace_json(workspace, cast.bob)["endpoints"] == CLOSED | {"jupyter": link}


@pytest.mark.parametrize("domain", ["ws.example", ""])
def test_at_ports_of_the_nodes_jupyter_is_offered_through_berth_alone(
    cast: Cast, settings: Any, domain: str
) -> None:
    settings.WORKSPACE_DOMAIN = domain
    cast.cluster.exposure = cast.cluster.Exposure.NODE_PORT
    cast.cluster.save()
    workspace = make_workspace(cast, cast.bob, host="gpu.example", jupyter_host="fd00::9", ssh_port=30022)
    shown = workspace_json(workspace, cast.bob)["endpoints"]
    assert bool(shown["jupyter"]) == bool(domain)
    assert (shown["ssh"]["host"], shown["ssh"]["port"]) == ("gpu.example", 30022)
    assert jupyter.address(workspace) == "http://[fd00::9]:8888/"


def test_a_ready_one_as_its_own_person_sees_it(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    shown = workspace_json(workspace, cast.bob)
    assert shown["endpoints"] == {
        "jupyter": f"http://testserver/workspaces/{workspace.pk}/open/",
        "ssh": {
            "host": "127.0.1.5",
            "port": 22,
            "user": "jovyan",
            "command": f"ssh -o HostKeyAlias=berth-{workspace.pk} jovyan@127.0.1.5",
            "config": (
                "Host berth-exp-1\n    HostName 127.0.1.5\n    Port 22\n    User jovyan\n"
                f"    HostKeyAlias berth-{workspace.pk}\n"
            ),
            "nickname": "berth-exp-1",
            "known_hosts": f"berth-{workspace.pk} {workspace.secret.host_key_public}\n",
            "host_key_fingerprint": workspace.secret.host_key_fingerprint,
            "vscode": "vscode://vscode-remote/ssh-remote+jovyan@127.0.1.5:22/home/jovyan",
            "jump": None,
            "by_name": None,
        },
        "code_server": None,
        "apps": [],
    }
    del shown["endpoints"], shown["created_at"], shown["started_at"], shown["ready_at"]
    since = shown["progress"].pop("since")
    assert since.endswith("Z")
    assert shown == {
        "id": str(workspace.pk),
        "tenant": "demo",
        "owner": "bob",
        "name": "exp-1",
        "shared_with_me": None,
        "image": "jupyter",
        "image_reference": None,
        "pool": "a100",
        "flavor": "a100-1",
        "gpus": 1,
        "gpu_memory_mib": 81_920,
        "cpu": 4,
        "memory_mib": 16_384,
        "disk_mib": 0,
        "env": {"GREETING": "hello"},
        "repository": "",
        "priority": 0,
        "desired": "running",
        "phase": "ready",
        "message": "Ready to use.",
        "queue": None,
        "progress": {"step": "ready", "index": 10, "total": 10},
        "failure": None,
        "problem": None,
        "volumes": [],
        "node": "gpu-1",
        "deleted_at": None,
        "stops_at": None,
        "reclaim": None,
        "max_runtime_minutes": None,
        "idle_minutes": None,
        "metrics": None,
        "notify": True,
        "restart_needed": False,
        "pending_restart": [],
        "next_size": None,
        "next_volumes": None,
        "next_image": None,
        "next_image_reference": None,
        "next_env": None,
        "next_repository": None,
        "previous_image": None,
        "idle": {"since": None, "stops_at": None, "busy_by": []},
        "last_event": 10,
    }


def test_an_image_with_code_server_has_a_link_to_vs_code(cast: Cast, settings: Any) -> None:
    settings.WORKSPACE_DOMAIN = "localhost"
    cast.image.has_code_server = True
    cast.image.save()
    workspace = make_workspace(cast, cast.bob)
    link = f"http://testserver/workspaces/{workspace.pk}/apps/13337/open/"
    shown = workspace_json(workspace, cast.bob)["endpoints"]
    assert shown["code_server"] == link
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/").content.decode()
    assert page.count('id="open-code-server" href="' + link.removeprefix("http://testserver")) == 1
    assert workspace_json(workspace, cast.victor)["endpoints"]["code_server"] is None


def test_nobody_else_sees_how_to_get_in_nor_its_environment(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, repository="https://user:secret@example.org/a.git")
    for other in (cast.alice, cast.victor, cast.admin):
        shown = workspace_json(workspace, other)
        assert shown["endpoints"] == CLOSED
        assert (shown["env"], shown["repository"]) == (None, None)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase != Phase.READY])
def test_only_a_ready_one_has_endpoints(cast: Cast, phase: Phase) -> None:
    workspace = make_workspace(cast, cast.bob, phase, host="127.0.1.5", jupyter_port=8888, ssh_port=22)
    assert workspace_json(workspace, cast.bob)["endpoints"] == CLOSED


def test_a_waiting_one_says_where_it_stands_and_why(cast: Cast) -> None:
    make_workspace(cast, cast.alice, Phase.WAITING, name="before")
    queue = workspace_json(make_workspace(cast, cast.bob, Phase.WAITING), cast.bob)["queue"]
    assert (queue["position"], queue["ahead"], queue["estimated_start"]) == (2, 1, None)
    assert set(queue["reason"]) == {"code", "message", "hint"}
    assert queue["reason"]["message"]


def test_a_failed_one_says_what_and_what_to_do(cast: Cast) -> None:
    failure = workspace_json(make_workspace(cast, cast.bob, Phase.FAILED), cast.bob)["failure"]
    assert set(failure) == {"code", "message", "hint", "at", "post_mortem"}
    assert "Back-off pulling image" in failure["message"]
    assert failure["hint"]


def test_a_shared_gpu_is_a_fraction(cast: Cast) -> None:
    cast.pool.units_per_gpu = 4
    cast.pool.unit_memory_mib = 4096
    cast.pool.save()
    shown = workspace_json(make_workspace(cast, cast.bob), cast.bob)
    assert (shown["gpus"], shown["gpu_memory_mib"]) == (0.25, 4096)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("exp-1", "berth-exp-1"),
        ("My Second Try", "berth-my-second-try"),
        ("a\nProxyCommand rm -rf ~", "berth-a-proxycommand-rm--rf"),
    ],
)
def test_a_name_cannot_add_lines_to_the_ssh_config(cast: Cast, name: str, host: str) -> None:
    config = workspace_json(make_workspace(cast, cast.bob, name=name), cast.bob)["endpoints"]["ssh"]["config"]
    assert config.splitlines()[0] == f"Host {host}"
    assert len(config.splitlines()) == 5


def test_an_address_of_version_6_and_another_port(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, host="fd00::5", ssh_port=2222)
    endpoints = workspace_json(workspace, cast.bob)["endpoints"]
    assert endpoints["ssh"]["command"].startswith("ssh -p 2222 -o HostKeyAlias=berth-")
    assert endpoints["ssh"]["command"].endswith(" jovyan@fd00::5")


def test_an_event_in_words(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    event = add_event(workspace, "interrupted", level=Event.Level.WARNING, reason="OOMKilled")
    told = event_json(event)
    assert told.pop("at").endswith("Z")
    assert told == {
        "id": 11,
        "run": str(workspace.run),
        "step": None,
        "level": "warning",
        "code": "interrupted",
        "message": "The container was stopped from outside (OOMKilled).",
        "hint": "It restarts automatically; files are kept.",
        "data": {"reason": "OOMKilled"},
        "post_mortem": str(workspace.run),
    }
