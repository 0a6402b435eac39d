"""Apps that the owner of a workspace declared: programs in it with a web page, each at a port of its own.

An image with code-server has one more, which Berth starts: VS Code, for its owner alone.

People open them through the gateway, each on its own host name. Declaring one changes nothing in the cluster: the
gateway reaches the port from inside the workspace (`start/berth_apps.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import Conflict, Invalid, NotThere
from accounts.text import is_visible
from quotas.namespaces.manifests import JUPYTER_PORT, SSH_PORT
from workspaces.models import Workspace

MOST_APPS = 8  # per workspace
LONGEST_NAME = 40
FIRST_PORT, LAST_PORT = 1024, 65535  # a container without root opens none below
OF_BERTH = (JUPYTER_PORT, SSH_PORT)
CODE_SERVER_PORT = 13337


class SharedWith(models.TextChoices):
    ME = "me", gettext_lazy("only me")
    TENANT = "tenant", gettext_lazy("my tenant")


@dataclass(frozen=True, kw_only=True)
class App:
    name: str
    port: int
    shared_with: str = SharedWith.ME

    @property
    def is_shared(self) -> bool:
        return self.shared_with == SharedWith.TENANT


def apps_of(workspace: Workspace) -> list[App]:
    return [App(**kept) for kept in workspace.apps]


def app_at(workspace: Workspace, port: int) -> App | None:
    """Return the app that opens at this port. VS Code comes before an app that was declared there."""
    if port == CODE_SERVER_PORT and (vs_code := code_server(workspace)):
        return vs_code
    return next((app for app in apps_of(workspace) if app.port == port), None)


def is_code_server(workspace: Workspace, app: App) -> bool:
    """Return True for VS Code, which works as its owner: nobody else may open it."""
    return app.port == CODE_SERVER_PORT and code_server(workspace) is not None


def code_server(workspace: Workspace) -> App | None:
    """Return VS Code in the browser; None if the image has no code-server, or no Jupyter as the way to it."""
    image = workspace.image
    return (
        App(name="VS Code", port=CODE_SERVER_PORT) if image.has_code_server and image.offers_jupyter else None
    )


def require_app(workspace: Workspace, port: int) -> App:
    """Return the app that was declared at this port."""
    if (app := next((app for app in apps_of(workspace) if app.port == port), None)) is None:
        raise NotThere("not_found", _("There is no such app."), _("Look at the page of its workspace."))
    return app


def group(workspace_id: UUID) -> str:
    """Group of open connections that hear when the apps of a workspace change, or who may open them."""
    return f"apps.{workspace_id}"


def kept(apps: Iterable[App]) -> list[dict[str, Any]]:
    """Return the apps as the row keeps them."""
    return [asdict(app) | {"shared_with": str(app.shared_with)} for app in apps]


def check(apps: Iterable[App]) -> dict[str, list[str]]:
    """Return what is wrong with these apps of one workspace, by field; nothing if they are valid."""
    apps = list(apps)
    if len(apps) > MOST_APPS:
        return {"apps": [_("A workspace has at most %(most)d apps.") % {"most": MOST_APPS}]}
    texts = [text for app in apps for found in faults(app).values() for text in found]
    if len({app.port for app in apps}) < len(apps):
        texts.append(_("Two apps have the same port."))
    return {"apps": texts} if texts else {}


def faults(app: App) -> dict[str, list[str]]:
    """Return what is wrong with one app, by its own fields."""
    found = {}
    if not app.name.strip() or len(app.name) > LONGEST_NAME or not is_visible(app.name):
        text = _("A name has 1 to %(most)d characters.") % {"most": LONGEST_NAME}
        found["name"] = [text]
    if not FIRST_PORT <= app.port <= LAST_PORT or app.port in OF_BERTH:
        text = _("Use a port from %(first)d to %(last)d, but not %(jupyter)d or %(ssh)d.")
        limits = {"first": FIRST_PORT, "last": LAST_PORT, "jupyter": JUPYTER_PORT, "ssh": SSH_PORT}
        found["port"] = [text % limits]
    return found


def refuse_faulty(app: App) -> None:
    if fields := faults(app):
        raise Invalid("invalid", _("It cannot have this app."), _("Correct the named fields."), fields=fields)


def with_app(workspace: Workspace, app: App) -> list[App]:
    """Return the workspace's apps with one more. Raise Invalid or Conflict if it cannot have it."""
    refuse_faulty(app)
    there = apps_of(workspace)
    if app_at(workspace, app.port) is not None:
        text = _("It already has an app at port %(port)d.") % {"port": app.port}
        raise Conflict(
            "port_taken", text, _("Change that one, or use another port."), fields={"port": [text]}
        )
    if len(there) >= MOST_APPS:
        text = _("A workspace has at most %(most)d apps.") % {"most": MOST_APPS}
        raise Conflict("too_many_apps", text, _("Remove one that you no longer need."))
    return [*there, app]
