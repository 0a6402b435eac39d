"""Share a workspace with named colleagues of its tenant, and end that: everything that they have open closes at once.

A row of `Share` is the right. It goes when the owner revokes it, the colleague gives it back, or either of both loses
their place in the tenant. Whatever stays open looks at the rows again when `user.<colleague>` hears of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from accounts.access import Actor, role_in
from accounts.errors import Conflict, Invalid, NotThere
from accounts.live import publish_to_all
from accounts.locks import locked, one_at_a_time
from accounts.models import Membership, Scope, User
from accounts.notices.kinds import Kind
from accounts.notices.notifying import notify
from accounts.trail import audit
from workspaces import enqueue
from workspaces.access import (
    LAUNCHES,
    may_launch,
    require_manage,
    require_own,
    share_of,
)
from workspaces.models import Desired, GatewayPass, Share, ShareRole, Workspace
from workspaces.notices import SUBJECT_OF_SHARES
from workspaces.state import jupyter

from . import lifecycle

MOST_SHARES = 20  # per workspace


def shares_of(actor: Actor, workspace: Workspace, *, manages: bool) -> list[Share]:
    """Return who has access: all, for those who manage the workspace; for a colleague, their own share alone."""
    rows = workspace.shares.filter(given_by=workspace.owner_id).select_related("user")
    return list(rows if manages else rows.filter(user=actor.user))


def share(actor: Actor, workspace: Workspace, username: str, role: str) -> tuple[Share, bool]:
    """Share the workspace, or change the role. Return the share, and True if anything changed.

    Raise Invalid or Conflict if this person cannot have that role.
    """
    with lifecycle.allowed(actor, workspace, "share"):
        require_own(actor, workspace)
        lifecycle.refuse_deleted(workspace)
        with transaction.atomic():
            one_at_a_time(f"shares {workspace.pk}")
            colleague = _colleague(actor, workspace, username, role)
            require_own(actor, workspace)
            return _write(actor, workspace, colleague, ShareRole(role))


def _colleague(actor: Actor, workspace: Workspace, username: str, role: str) -> User:
    """Return the person, who stays in the tenant, as its owner does, until the transaction ends."""
    of_both = Membership.objects.filter(tenant=workspace.tenant).filter(
        Q(user=actor.user) | Q(user__username=username)
    )
    found = {row.user_id: row for row in locked(of_both).select_related("user")}
    row = next((row for row in found.values() if row.user.username == username), None)
    if row is None or not row.user.is_active:
        text = _("Nobody in %(tenant)s has this user name.") % {"tenant": workspace.tenant.name}
        raise _refused("no_such_colleague", text, _("The members are on the page of your team."))
    if row.user_id == workspace.owner_id:
        raise _refused("is_owner", _("It is yours already."), _("Name a colleague."))
    if role == ShareRole.WORK and row.role not in LAUNCHES:
        text = _("%(person)s may only look in this team.") % {"person": username}
        raise _refused(
            "viewer_only_looks", text, _("Share it to look, or ask an owner to make them a member.")
        )
    if role == ShareRole.WORK and not (settings.WORKSPACE_DOMAIN or settings.SSH_JUMP_HOST):
        text = _("Colleagues reach a workspace through Berth only, which is not set up here.")
        raise Conflict("no_way_through_berth", text, _("Ask an admin to set a domain for workspaces."))
    return row.user


def _refused(code: str, text: str, hint: str) -> Invalid:
    return Invalid(code, text, hint, fields={"username": [text]})


def _write(actor: Actor, workspace: Workspace, colleague: User, role: ShareRole) -> tuple[Share, bool]:
    there = Share.objects.filter(workspace=workspace).select_related("user", "workspace")
    now = there.filter(user=colleague, given_by=actor.user).first()
    if now is not None and now.role == role:
        return now, False
    if now is None and there.exclude(user=colleague).count() >= MOST_SHARES:
        text = _("A workspace can be shared with at most %(most)d people.") % {"most": MOST_SHARES}
        raise Conflict("too_many_shares", text, _("Revoke one that is no longer needed."))
    if now is not None:
        _close([now])
    row, _is_new = Share.objects.update_or_create(
        workspace=workspace, user=colleague, defaults={"role": role, "given_by": actor.user}
    )
    if role == ShareRole.WORK:
        enqueue.reconcile([workspace.pk])  # brings the colleague's SSH keys
    publish_to_all([f"user.{colleague.pk}"], {"type": "access.changed"})  # their open lists show it
    _tell(actor, row, "share")
    return row, True


def end(actor: Actor, workspace: Workspace, share_id: UUID) -> None:
    """Revoke a share: by the owner, by those who manage the workspace, or by the colleague themself."""
    with lifecycle.allowed(actor, workspace, "unshare"):
        own = share_of(actor, workspace)
        if own is None or own.pk != share_id:
            require_manage(actor, workspace)
        else:
            actor.require(Scope.WORKSPACES)
    with transaction.atomic():
        rows = Share.objects.filter(pk=share_id, workspace=workspace).select_related("user", "workspace")
        row = locked(rows).first()
        if row is None:
            raise NotThere("not_found", _("There is no such share."), _("Look at the page of its workspace."))
        _close([row])
        Share.objects.filter(pk=share_id).delete()
        _tell(actor, row, "unshare")


@transaction.atomic
def end_unfounded(users: Collection[User]) -> set[UUID]:
    """End shares to and of these people that their place in the tenant no longer allows; narrow those of viewers.

    Return the workspaces in which somebody worked who may not any more. Part of the transaction that changed rights.
    """
    lost = set[UUID]()
    rows = Share.objects.filter(Q(user__in=users) | Q(given_by__in=users))
    for row in locked(rows).select_related("user", "given_by", "workspace__tenant"):
        tenant = row.workspace.tenant
        role = role_in(Actor(row.user), tenant) if row.user.is_active else None
        owner_stays = row.given_by.is_active and may_launch(Actor(row.given_by), tenant)
        if role is None or not owner_stays:
            Share.objects.filter(pk=row.pk).delete()
        elif row.role == ShareRole.WORK and role not in LAUNCHES:
            Share.objects.filter(pk=row.pk).update(role=ShareRole.LOOK)
        else:
            continue
        _show_out([row])
        if row.role == ShareRole.WORK:
            lost.add(row.workspace_id)
    return lost


def _close(rows: Iterable[Share]) -> None:
    """Close what these people have open, before the row changes. Who worked in it could read Jupyter's tokens."""
    rows = list(rows)
    _show_out(rows)
    worked = [row.workspace_id for row in rows if row.role == ShareRole.WORK]
    running = Workspace.objects.filter(pk__in=worked, desired=Desired.RUNNING)
    if ids := list(running.values_list("pk", flat=True)):
        enqueue.reconcile(ids)
        jupyter.replace(Workspace.objects.filter(pk__in=ids), left=ids)


def _show_out(rows: Iterable[Share]) -> None:
    """Close what these people opened, and by Jupyter's token, by which the gateway takes them for the owner."""
    people = set[UUID]()
    for row in rows:
        GatewayPass.objects.filter(workspace=row.workspace_id, user=row.user_id).delete()
        people |= {row.user_id} | ({row.workspace.owner_id} if row.role == ShareRole.WORK else set())
    publish_to_all([f"user.{pk}" for pk in sorted(people)], {"type": "access.changed"})


def _tell(actor: Actor, row: Share, verb: str) -> None:
    """Record the change, and notify the colleague."""
    workspace = row.workspace
    facts = {"with": row.user.username, "role": str(row.role)}
    audit.record(actor, f"workspace.{verb}", target=workspace, tenant=workspace.tenant, data=facts)
    if row.user_id != actor.user.pk:
        data = {"code": verb, "role": str(row.role), "by": actor.user.get_username(), "name": workspace.name}
        key = f"{SUBJECT_OF_SHARES} {uuid4()}"
        notify(Kind.SHARE, [row.user], subject=SUBJECT_OF_SHARES, subject_id=workspace.pk, key=key, data=data)


def with_actor(actor: Actor) -> Q:
    """Condition of workspaces that are shared with the actor."""
    return Q(shares__user=actor.user, shares__given_by=F("owner"))
