"""Lookup of the person of a key, and of their workspace by name. From rows alone, in synchronous code.

A colleague with whom a workspace is shared to work comes in through its Jupyter, as apps do: their key is taken only
from inside the pod, so Berth alone opens that way, and ends it. The answer is the same for a workspace of another
person, one that does not exist and one that does not run.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import override

from accounts.access import Actor
from accounts.models import AuditEntry, SSHKey, User
from accounts.trail import audit
from workspaces import access
from workspaces.api.ssh_config import SSH_PORT, domain_of, host_alias, host_nickname
from workspaces.models import Phase, ShareRole, Workspace
from workspaces.naming import host_label
from workspaces.state import jupyter

OPENED = "workspace.ssh"
NOTED_ONCE_IN = timedelta(minutes=10)


@dataclass(frozen=True)
class Person:
    """Person who signed in, and the key that they used: it must stay theirs."""

    user_id: UUID
    username: str
    language: str
    fingerprint: str
    volume: str = ""  # whose files they came for, as they named it

    def speaking(self) -> AbstractContextManager[None]:
        """Speak the person's language meanwhile."""
        return override(self.language or "en")


@dataclass(frozen=True)
class Target:
    """Destination of a tunnel. Another run, or another address, is another target."""

    workspace_id: UUID
    run: UUID | None
    host: str
    port: int
    # For a colleague, who comes in through Jupyter: what to send it first. Empty: the address is that of SSH.
    request: bytes = field(default=b"", repr=False)


def person_with(username: str, fingerprint: str) -> Person | None:
    """Return the person of a name and a key. The name may be followed by `+` and a volume's: names have a `+` too."""
    before, _plus, after = username.rpartition("+")
    for name, volume in ((username, ""), (before, after)):
        key = _keys(name, fingerprint).select_related("user").first() if name else None
        if key is not None:
            return Person(key.user.pk, key.user.get_username(), key.user.language, fingerprint, volume)
    return None


def _keys(username: str, fingerprint: str) -> QuerySet[SSHKey]:
    return SSHKey.objects.filter(user__username=username, user__is_active=True, fingerprint=fingerprint)


def target_named(person: Person, name: str, port: int) -> Target | None:
    """Find the target by id, `berth-<id>`, or a name that only one workspace has; None if it is not ready, or none.

    Any of these may stand before the person's own domain, as in the config for all of their workspaces.
    """
    wanted = name.lower().removesuffix(f".{domain_of(person.username, person.user_id)}")
    there = Workspace.objects.filter(deleted_at=None)
    names = dict(there.filter(owner_id=person.user_id).values_list("pk", "name"))
    shared = there.filter(_shared_with(person)).values_list("pk", flat=True)
    by_id = [pk for pk in (*names, *shared) if wanted in (str(pk), host_alias(pk))]
    by_name = [pk for pk, name in names.items() if wanted in (name.lower(), host_label(name))]
    by_nickname = [pk for pk, name in names.items() if wanted == host_nickname(name)]
    found = by_id or by_name or by_nickname
    ready = _open_to(person, there.filter(pk__in=found)) if len(found) == 1 else []
    target = ready[0] if ready else None
    return target if target and port in (SSH_PORT, target.port) else None


def still(person: Person, workspace_ids: Iterable[UUID]) -> dict[UUID, Target] | None:
    """Return the present targets of these workspaces; None if the person may not stay."""
    if not _keys(person.username, person.fingerprint).filter(user_id=person.user_id).exists():
        return None
    rows = Workspace.objects.filter(pk__in=workspace_ids)
    return {target.workspace_id: target for target in _open_to(person, rows)}


def _shared_with(person: Person) -> Q:
    return Q(shares__user=person.user_id, shares__role=ShareRole.WORK)


def _open_to(person: Person, among: QuerySet[Workspace]) -> list[Target]:
    """Return the targets in workspaces that are ready and in which the person may work now."""
    ready = among.filter(
        Q(owner_id=person.user_id) | Q(pk__in=among.filter(_shared_with(person)).values("pk"))
    )
    rows = list(ready.filter(phase=Phase.READY).select_related("tenant", "owner", "secret"))
    if not rows:
        return []
    actor = Actor(User.objects.get(pk=person.user_id))
    return [
        target
        for row in rows
        if access.may_work(actor, row) and (target := _target(row, is_own=access.is_own(actor, row)))
    ]


def _target(workspace: Workspace, *, is_own: bool) -> Target | None:
    if not workspace.host or not workspace.ssh_port:
        return None
    if is_own:
        return Target(workspace.pk, workspace.run, workspace.host, workspace.ssh_port)
    at = urlsplit(jupyter.address(workspace))
    if not at.hostname or not at.port:
        return None
    request = jupyter.request_for_tunnel("/berth/ssh", at.netloc, jupyter.gateway_token(workspace))
    return Target(workspace.pk, workspace.run, at.hostname, at.port, request)


def note_opening(person: Person, target: Target, address: str | None) -> None:
    """Audit the opening, once in NOTED_ONCE_IN per address: editors open a tunnel for every window and try."""
    same = AuditEntry.objects.filter(
        at__gt=timezone.now() - NOTED_ONCE_IN,
        actor_id=person.user_id,
        action=OPENED,
        target_id=str(target.workspace_id),
        address=address,
    )
    if same.exists():
        return
    workspace = Workspace.objects.select_related("tenant").get(pk=target.workspace_id)
    audit.client_address.set(address)
    audit.record(
        Actor(User.objects.get(pk=person.user_id)),
        OPENED,
        target=workspace,
        tenant=workspace.tenant,
        data={"name": workspace.name, "fingerprint": person.fingerprint},
    )
