"""Launch with the settings of another workspace, for anyone who may launch in its tenant. Its files are copied only if
that is asked for, by who may read them.

The owner's private settings (environment, repository, apps) are copied only into the owner's own clones.
"""

from __future__ import annotations

import re
from itertools import chain, count

from accounts.access import Actor
from storage import connections
from storage.mounts import homes, mounting
from storage.mounts.mounting import MountWish
from workloads import longest
from workloads.asking import LONGEST_NAME
from workspaces import access
from workspaces.models import Workspace
from workspaces.state import declared, settings
from workspaces.state.runs import next_size

from .launch import LaunchSpec, launch


def clone(actor: Actor, source: Workspace, name: str | None = None, *, files: bool = False) -> Workspace:
    """Launch a copy like any new workspace: with the same checks, limits and queue.

    `files`: with a copy of its home and disk, and with the volumes that it mounts, as far as the actor may.
    """
    volumes: list[MountWish] = []
    left_out: list[str] = []
    mounts = mounting.all_of([source.pk]).get(source.pk, [])
    if files:
        access.require_files(actor, source)
        volumes, left_out = mounting.mountable(actor, source.tenant, source.pool.cluster, mounts)
    own = access.is_own(actor, source)
    values = settings.coming(source) if own else None
    return launch(
        actor,
        LaunchSpec(
            tenant=source.tenant.slug,
            name=name or free_name(actor, source),
            image=settings.coming_image(source).slug,
            size=next_size(source).asked(),
            disk_mib=homes.disk_mib(mounts) or source.disk_mib,
            env=values.env if values else {},
            secret_env=values.secret_env if values else {},
            repository=values.whole_address if values else "",
            priority=source.priority if actor.is_admin else min(source.priority, 0),
            max_runtime_minutes=longest.at_most(source.tenant, source.max_runtime_minutes),
            idle_minutes=source.idle_minutes,
            notify=source.notify,
            exposition=source.exposition,
            apps=declared.apps_of(source) if own else (),
            volumes=volumes,
            connections=connections.used_by(actor, source.pk) if own else (),
            settings_of=source,
            with_files=files,
            left_out=left_out,
        ),
    )


def free_name(actor: Actor, source: Workspace) -> str:
    """Return the first of `exp`, `exp-2`, `exp-3` … that is free among the person's names in this tenant."""
    mine = Workspace.objects.filter(owner=actor.user, tenant=source.tenant, deleted_at__isnull=True)
    taken = set(mine.values_list("name", flat=True))
    stem = re.sub(r"-\d+$", "", source.name)
    endings = (f"-{number}" for number in count(2))
    numbered = (stem[: LONGEST_NAME - len(ending)].rstrip(" ._-") + ending for ending in endings)
    return next(name for name in chain([source.name], numbered) if name not in taken)
