"""Declare the apps of a workspace: at any time, also while it runs, since nothing in the cluster changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from accounts.access import Actor
from accounts.live import publish
from workspaces.access import require_own
from workspaces.models import Workspace
from workspaces.state import declared
from workspaces.state.declared import App
from workspaces.state.story import add_event

from . import lifecycle

# The app, all apps of the workspace from now on, and the code of the event.
Decided = tuple[App, list[App], str]


def add(actor: Actor, workspace: Workspace, app: App) -> bool:
    """Declare one more app. Raise Invalid or Conflict if the workspace cannot have it."""
    return _write(
        actor, workspace, lambda row: (app, declared.with_app(row, app), _code(None, app, "app_added"))
    )


def change(
    actor: Actor, workspace: Workspace, port: int, *, name: str | None = None, shared_with: str | None = None
) -> bool:
    """Change the name of an app, or who may open it. None: leave as it is. Return True if anything changed."""

    def decide(row: Workspace) -> Decided:
        now = declared.require_app(row, port)
        wanted = replace(now, name=name or now.name, shared_with=shared_with or now.shared_with)
        declared.refuse_faulty(wanted)
        apps = [wanted if app == now else app for app in declared.apps_of(row)]
        return wanted, apps, _code(now, wanted, "app_renamed")

    return _write(actor, workspace, decide)


def remove(actor: Actor, workspace: Workspace, port: int) -> bool:
    """Close the way to an app. The program in the workspace runs on."""

    def decide(row: Workspace) -> Decided:
        app = declared.require_app(row, port)
        return app, [one for one in declared.apps_of(row) if one != app], "app_removed"

    return _write(actor, workspace, decide)


def _code(before: App | None, after: App, otherwise: str) -> str:
    """Code of the event: that others see the app, or no longer do, is what matters most."""
    was_shared = before is not None and before.is_shared
    if was_shared == after.is_shared:
        return otherwise
    return "app_shared" if after.is_shared else "app_private"


def _write(actor: Actor, workspace: Workspace, decide: Callable[[Workspace], Decided]) -> bool:
    """Write what is decided about the row, and let open connections check again whether they may stay."""
    data: dict[str, object] = {}
    with lifecycle.allowed(actor, workspace, "apps"):
        require_own(actor, workspace)
        with lifecycle.audited_change(actor, workspace, "apps", data) as row:
            lifecycle.refuse_deleted(row)
            app, apps, code = decide(row)
            kept = declared.kept(apps)
            if kept == row.apps:
                return False
            row.apps = kept
            data |= {"app": app.name, "port": app.port, "event": code}
            add_event(row, code, app=app.name, port=app.port)
            publish(declared.group(row.pk), {"type": "access.changed"})
    return True
