"""Address and tokens of a workspace's Jupyter. The tokens are made from one stored seed, and are new for every run.

- The gateway's token stays between the workspace and Berth, which checks the person of each request itself. The owner
  can read it in the workspace, so it is replaced when they lose the right to that.
- The token for scripts, and for the workspace's own address, is replaced as soon as its person loses a right or signs
  out, or an API token ends that it was handed to: Jupyter reads its Secret again and again (`start/jupyter_config.py`).
- A ticket, made from that token, lets one browser in once.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from accounts.access import Actor
from accounts.addresses import bracketed
from accounts.credentials.secrets import decrypt
from accounts.credentials.tokens import is_usable
from accounts.locks import for_change
from accounts.models import APIToken, Scope
from clusters.own_place import only_berth_opens_jupyter
from workspaces.access import may_launch, owner_may_use
from workspaces.models import Phase, Workspace, WorkspaceSecret

# Lifetime of a ticket. The clocks of Berth and the node may differ a little.
TICKET_SECONDS = 120
TUNNEL = "berth-app"  # as start/berth_apps.py has it


def address(workspace: Workspace) -> str:
    """Return Jupyter's own address; empty while it does not run."""
    host = workspace.jupyter_host or workspace.host
    if workspace.phase != Phase.READY or not host or not workspace.jupyter_port:
        return ""
    return f"http://{bracketed(host)}:{workspace.jupyter_port}/"


def gateway_token(workspace: Workspace) -> str:
    seed = decrypt(workspace.secret.jupyter_token)
    return _made(seed, f"{workspace.run} gateway {workspace.secret.gateway_replaced}")


def token(workspace: Workspace) -> str:
    """Return the token for scripts and for the workspace's own address."""
    seed = decrypt(workspace.secret.jupyter_token)
    return _made(seed, f"{workspace.run} direct {workspace.secret.replaced}")


def request_for_tunnel(path: str, authority: str, token: str) -> bytes:
    """Return the request by which Jupyter becomes a plain connection to what is in the workspace
    (`start/berth_apps.py`)."""
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {authority}",
        f"Authorization: token {token}",
        "Connection: Upgrade",
        f"Upgrade: {TUNNEL}",
    )
    return "\r\n".join([*lines, "", ""]).encode()


def ticket(workspace: Workspace) -> str:
    """Return a ticket, for one browser and one use."""
    what = f"{int(time.time()) + TICKET_SECONDS}.{secrets.token_hex(16)}"
    return f"{what}.{_made(token(workspace), what)}"


@transaction.atomic
def replace(workspaces: QuerySet[Workspace], *, left: Collection[UUID] = ()) -> None:
    """End all uses of these workspaces' tokens. A reconcile brings the new ones to the cluster.

    The gateway's, by which the owner works too, only where its owner has no right to the workspace now; or, of `left`,
    which a colleague left who could read it, where others than Berth reach Jupyter's port.
    """
    rows = WorkspaceSecret.objects.filter(workspace__in=workspaces)
    for_change(rows).update(replaced=F("replaced") + 1, handed_to=[])
    lost = [
        row.pk
        for row in workspaces.select_related("owner", "tenant", "pool__cluster")
        if not owner_may_use(row) or (row.pk in left and not only_berth_opens_jupyter(row.pool.cluster))
    ]
    for_change(rows.filter(workspace__in=lost)).update(gateway_replaced=F("gateway_replaced") + 1)


def handed_to_ended() -> list[Workspace]:
    """Workspaces whose token was handed to an API token that could not ask for it now: expired, revoked, narrowed.

    Nothing signals that a token expires, so this is asked again and again.
    """
    rows = Workspace.objects.exclude(secret__handed_to=[]).filter(secret__isnull=False)
    given = [
        (row, UUID(token))
        for row in rows.select_related("secret", "tenant")
        for token in row.secret.handed_to
    ]
    tokens = APIToken.objects.select_related("user", "tenant").in_bulk({token for _row, token in given})
    may: dict[tuple[UUID, UUID], bool] = {}  # by token and tenant: one script opens many workspaces
    for row, token in given:
        key = token, row.tenant_id
        if key not in may:
            may[key] = token in tokens and _may_ask(tokens[token], row)
    return list(dict.fromkeys(row for row, token in given if not may[token, row.tenant_id]))


def _may_ask(token: APIToken, workspace: Workspace) -> bool:
    actor = Actor(token.user, token)
    return is_usable(token) and actor.may(Scope.WORKSPACES) and may_launch(actor, workspace.tenant)


def _made(key: str, what: str) -> str:
    return hmac.new(key.encode(), what.encode(), "sha256").hexdigest()
