"""The launch of a workspace again, for a script."""

from __future__ import annotations

from typing import Any

from accounts.access import Actor
from storage.mounts.mounting import all_of, wished
from workloads import images
from workloads.pages.bodies import filled, mount_body, size_of_row
from workloads.repositories import without_credentials
from workspaces import access
from workspaces.models import Workspace


def body_of_workspace(actor: Actor, workspace: Workspace) -> dict[str, Any]:
    """Body of the workspace's launch. Environment and repository are included only for the owner."""
    own = access.is_own(actor, workspace)
    body = {"tenant": workspace.tenant.slug, "name": workspace.name, **images.named(workspace.image)}
    return {**body, **size_of_row(workspace)} | filled(
        disk_mib=workspace.disk_mib,
        volumes=[mount_body(wish) for _name, wish in wished(all_of([workspace.pk]).get(workspace.pk, ()))],
        max_runtime_minutes=workspace.max_runtime_minutes,
        idle_minutes=workspace.idle_minutes,
        env=workspace.env if own else None,
        apps=workspace.apps if own else None,
        repository=without_credentials(workspace.repository) if own else None,
        **({} if workspace.notify else {"notify": False}),
    )
