"""JSON of workspaces and events for the API, the websockets and the pages. From rows alone, never the cluster.

The private parts of a workspace (Jupyter link, SSH endpoint, its own apps, environment, repository) are for its owner
alone, the first three also for colleagues with whom it is shared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Set
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access import Actor
from clusters.models import Cluster, Installation
from quotas import reasons, reclaim
from quotas.queries import Queue, queues_of
from quotas.reclaim import Asked
from storage.models import Mount, Turn
from storage.mounts import homes, mounting
from workloads import images
from workloads.failures import is_past, post_mortem_of
from workloads.figures import exposition, moment, number
from workloads.sizes.sizing import Size
from workspaces.access import is_own, share_of
from workspaces.gateway import hosts
from workspaces.models import STEPS, Event, Phase, Share, ShareRole, Step, Workspace
from workspaces.naming import host_label
from workspaces.state import declared, jupyter, story
from workspaces.state import settings as next_settings
from workspaces.state.declared import App

from . import ssh_config
from .ssh_config import Jump

MAY_WAIT = (Phase.WAITING, Phase.STARTING, Phase.STOPPING, Phase.DELETING)
CLOSED = {"jupyter": None, "ssh": None, "code_server": None}
SHARED = ("tenant", "owner", "image", "pool__cluster", "flavor")
Json = dict[str, Any]


def with_related(rows: QuerySet[Workspace]) -> QuerySet[Workspace]:
    """Load all that a workspace's JSON needs, in eight queries for any number.

    Shared rows are read once for all: joined, they would come with each row, and a join of eight tables takes
    PostgreSQL ten times longer to plan than to run.
    """
    return rows.select_related("secret").prefetch_related(*SHARED, "shares")


def joined(rows: QuerySet[Workspace]) -> QuerySet[Workspace]:
    """Load the same for a few rows that are known by their ids, in two queries."""
    return rows.select_related("secret", *SHARED).prefetch_related("shares")


def workspace_json(workspace: Workspace, actor: Actor) -> Json:
    return workspaces_json([workspace], actor)[0]


def workspaces_json(workspaces: Iterable[Workspace], actor: Actor) -> list[Json]:
    """JSON of many workspaces, with as many queries as for one. The rows come from `with_related`."""
    workspaces = list(workspaces)
    describe = describing(workspaces)
    return [describe(workspace, actor) for workspace in workspaces]


def describing(workspaces: Iterable[Workspace]) -> Callable[[Workspace, Actor], Json]:
    """Return a function for the JSON of any of these for any actor, without further queries."""
    workspaces = list(workspaces)
    queues = queues_of(one.run for one in workspaces if one.run and one.phase in MAY_WAIT)
    # A claim that waits holds nothing to return.
    asked = reclaim.asked(one.run for one in workspaces if one.phase != Phase.WAITING or one.ending)
    jump = known_jump()
    shared = shared_names(workspaces) if jump else frozenset()
    mounts = mounting.all_of(one.pk for one in workspaces)

    def describe(workspace: Workspace, actor: Actor) -> Json:
        queue = queues.get(workspace.run) if workspace.run else None
        is_shared = (workspace.owner_id, host_label(workspace.name)) in shared
        if is_own(actor, workspace):
            ways_in = endpoints(workspace, jump, is_shared=is_shared)
        else:
            ways_in = shared_endpoints(workspace, share_of(actor, workspace), actor, jump)
        body = _workspace_json(workspace, actor, queue, asked.get(workspace.run))
        return {**body, "endpoints": ways_in, **_changes(workspace, mounts.get(workspace.pk, []))}

    return describe


def seen_as(workspace: Workspace, actor: Actor) -> object:
    """Return a value that is the same for all actors to whom the JSON is the same."""
    if share_of(actor, workspace) is not None:
        return actor.user.pk
    return is_own(actor, workspace)


def _changes(workspace: Workspace, mounts: list[Mount]) -> Json:
    """What it mounts, the size of its own disk, which grows by itself too, and what the next start changes."""
    remounts = any(one.turn for one in mounts)
    is_pending = {"size": workspace.next_size is not None, "volumes": remounts}
    pending = [name for name, is_so in is_pending.items() if is_so] + next_settings.changes_of(workspace)
    return {
        "disk_mib": homes.disk_mib(mounts) or workspace.disk_mib,
        "volumes": mounting.as_json(one for one in mounts if one.turn != Turn.COMING),
        "restart_needed": bool(pending),
        "pending_restart": pending,
        "next_volumes": mounting.as_json(one for one in mounts if one.turn != Turn.GOING)
        if remounts
        else None,
    }


def _workspace_json(workspace: Workspace, actor: Actor, queue: Queue | None, asked: Asked | None) -> Json:
    own, share = is_own(actor, workspace), share_of(actor, workspace)
    return {
        "id": str(workspace.pk),
        "tenant": workspace.tenant.slug,
        "owner": workspace.owner.get_username(),
        "name": workspace.name,
        "shared_with_me": share.role if share else None,
        "image": workspace.image.slug,
        "image_reference": workspace.image.reference if workspace.image.is_own else None,
        "pool": workspace.pool.slug,
        "flavor": workspace.flavor.slug if workspace.flavor else None,
        "gpus": gpus(workspace),
        "gpu_memory_mib": gpu_memory_mib(workspace),
        "cpu": number(workspace.cpu_millicores / 1000),
        "memory_mib": workspace.memory_mib,
        "env": workspace.env if own else None,
        "repository": workspace.repository if own else None,
        "priority": workspace.priority,
        "desired": workspace.desired,
        "phase": workspace.phase,
        "message": message(workspace),
        "queue": {name: moment(value) for name, value in queue.items()} if queue else None,
        "progress": {
            "step": workspace.step,
            "index": STEPS.index(Step(workspace.step)) + 1,
            "total": len(STEPS),
            "since": moment(workspace.step_since),
        },
        "failure": failure_json(workspace.failure),
        "problem": problem_json(workspace),
        "node": workspace.node or None,
        "created_at": moment(workspace.created_at),
        "started_at": moment(workspace.started_at),
        "ready_at": moment(workspace.ready_at),
        "deleted_at": moment(workspace.deleted_at),
        "stops_at": moment(workspace.stops_at),
        "reclaim": reclaim_json(asked) if asked else None,
        "max_runtime_minutes": workspace.max_runtime_minutes,
        "idle_minutes": workspace.idle_minutes,
        "notify": workspace.notify,
        "metrics": exposition(workspace.exposition),
        "next_size": next_size_json(workspace),
        "next_image": workspace.next_settings.get("image"),
        "next_image_reference": images.reference_of(workspace.next_settings.get("image")),
        "next_env": workspace.next_settings.get("env") if own else None,
        "next_repository": workspace.next_settings.get("repository") if own else None,
        "previous_image": workspace.previous_image or None,
        "idle": {
            "since": moment(workspace.idle_since),
            "stops_at": moment(workspace.idle_stops_at),
            "busy_by": workspace.idle_busy_by,
        },
        "last_event": workspace.last_event,
    }


def message(workspace: Workspace) -> str:
    """Current action or trouble. While the cluster does not answer, its absence replaces what was last seen."""
    at_rest = workspace.deleted_at or workspace.phase in (Phase.STOPPED, Phase.FAILED)
    if workspace.pool.cluster.unreachable_since and not at_rest:
        return story.sentence("cluster_unavailable", {})
    return story.sentence(workspace.message_code, workspace.message_data)


def problem_json(workspace: Workspace) -> Json | None:
    """What is in the way of a start, or wrong with what runs. A step that is under way is no problem."""
    if workspace.phase not in (Phase.STARTING, Phase.READY) or workspace.ending:
        return None
    if (since := workspace.pool.cluster.unreachable_since) is not None:
        return {**explained("cluster_unavailable", {}), "since": moment(since), "gives_up_at": None}
    code = workspace.message_code
    if code in ("", "ready") or code.startswith("doing_"):
        return None
    times = {"since": moment(workspace.trouble_since), "gives_up_at": moment(workspace.gives_up_at)}
    return {**explained(code, workspace.message_data), **times}


def event_json(event: Event) -> Json:
    return {
        "id": event.number,
        "run": str(event.run) if event.run else None,
        "at": moment(event.at),
        "step": event.step or None,
        "level": event.level,
        **explained(event.code, event.data),
        "data": event.data,
        "post_mortem": str(event.run) if story.is_recorded(event) and not is_past(event.at) else None,
    }


def next_size_json(workspace: Workspace) -> Json | None:
    """Size that takes effect at the next start; None if the size stays."""
    kept = workspace.next_size
    if kept is None:
        return None
    return {
        "pool": kept["pool"],
        "flavor": kept["flavor"],
        "gpus": number(kept["gpus"]),
        "cpu": number(kept["cpu_millicores"] / 1000),
        "memory_mib": kept["memory_mib"],
        "message": _("This size takes effect at the next start. Restart it to have it now."),
    }


def reclaim_json(asked: Asked) -> Json:
    """Time at which the run must give its GPUs back, and the reason."""
    return {
        "at": moment(asked.at),
        "code": asked.code,
        "message": reasons.sentence(asked.code, {}),
        "hint": reasons.hint(asked.code, {}),
    }


def failure_json(failure: Json | None) -> Json | None:
    if failure is None:
        return None
    explanation = explained(failure["code"], failure.get("data") or {})
    return {**explanation, "at": failure["at"], "post_mortem": post_mortem_of(failure)}


def explained(code: str, data: Json) -> Json:
    return {"code": code, "message": story.sentence(code, data), "hint": story.hint(code, data)}


# --- Endpoints


def endpoints(workspace: Workspace, jump: Jump | None, *, is_shared: bool) -> Json:
    """Link to Jupyter and address of SSH, only while it is ready, and its apps. `jump`: Berth's own SSH address, see
    `known_jump`; `is_shared`: its name does not identify it."""
    apps = [app_json(workspace, app) for app in declared.apps_of(workspace)]
    if workspace.phase != Phase.READY or not workspace.host:
        return {**CLOSED, "apps": apps}
    link = f"{settings.BASE_URL}{reverse('workspace-open', args=[workspace.pk])}"
    ssh = ssh_endpoint(workspace, jump, is_shared=is_shared)
    vs_code = declared.code_server(workspace)
    return {
        "jupyter": link if hosts.jupyter_of(workspace) else None,
        "ssh": ssh,
        "code_server": app_json(workspace, vs_code)["url"] if vs_code else None,
        "apps": apps,
    }


def shared_endpoints(workspace: Workspace, share: Share | None, actor: Actor, jump: Jump | None) -> Json:
    """Return what others in the tenant may open: its shared apps. Colleagues who may work in it: all apps, and what
    Berth itself carries, Jupyter through the gateway and SSH through the jump."""
    works = share is not None and share.role == ShareRole.WORK
    apps = [app_json(workspace, app) for app in declared.apps_of(workspace) if app.is_shared or works]
    found: Json = {**CLOSED, "apps": apps}
    if not works or not jupyter.address(workspace):
        return found
    if hosts.is_on():
        found["jupyter"] = f"{settings.BASE_URL}{reverse('workspace-open', args=[workspace.pk])}"
    if jump is not None and workspace.ssh_port:
        name = ssh_config.host_nickname(f"{workspace.owner.get_username()}-{workspace.name}")
        by_jump = ssh_config.through(workspace, jump, nickname=name, person=actor.user.get_username())
        found["ssh"] = by_jump | {"jump": None, "by_name": None}
    return found


def app_json(workspace: Workspace, app: App) -> Json:
    """App with its link, which is None while it cannot be opened."""
    link = f"{settings.BASE_URL}{reverse('workspace-app-open', args=[workspace.pk, app.port])}"
    can_open = hosts.is_on() and jupyter.address(workspace) != ""
    return {
        "name": app.name,
        "port": app.port,
        "url": link if can_open else None,
        "shared_with": app.shared_with,
    }


def ssh_endpoint(workspace: Workspace, jump: Jump | None, *, is_shared: bool) -> Json | None:
    """SSH at the workspace's own address if it has one; else, and in `jump` and `by_name`, through Berth."""
    if not workspace.ssh_port:
        return None
    nickname = ssh_config.host_nickname(workspace.name)
    is_direct = workspace.pool.cluster.exposure != Cluster.Exposure.PORTAL
    if not is_direct and jump is None:
        return None
    ways: Json = {"jump": None, "by_name": None}
    if jump is not None:
        by_jump = ssh_config.through(
            workspace,
            jump,
            nickname=f"{nickname}-jump" if is_direct else nickname,
            person=workspace.owner.get_username(),
        )
        ways = {"jump": by_jump, "by_name": ssh_config.by_name(workspace, jump, is_shared=is_shared)}
    return (ssh_config.direct(workspace) if is_direct else ways["jump"]) | ways


def shared_names(workspaces: Iterable[Workspace]) -> Set[tuple[UUID, str]]:
    """Return owners and names that stand for several workspaces, as far as these are ready and need a name."""
    owners = {one.owner_id for one in workspaces if one.phase == Phase.READY}
    rows = Workspace.objects.filter(owner__in=owners, deleted_at=None).values_list("owner", "name")
    counted = Counter((owner, host_label(name)) for owner, name in rows)
    return {key for key, count in counted.items() if count > 1}


def known_jump() -> Jump | None:
    """Berth's SSH address as people reach it; None if it is not set up or has never run."""
    if not settings.SSH_JUMP_HOST:
        return None
    row = Installation.objects.get()
    if not row.ssh_jump_public_key:
        return None
    return Jump(
        f"berth-jump-{row.pk.hex[:8]}",
        settings.SSH_JUMP_HOST,
        settings.SSH_JUMP_PORT,
        row.ssh_jump_public_key,
    )


# --- Figures


def gpus(workspace: Workspace) -> int | float:
    return number(round(float(workspace.pool.gpus(workspace.units)), 4))


def gpu_memory_mib(workspace: Workspace) -> int | None:
    return Size.of(workspace).gpu_memory_mib
