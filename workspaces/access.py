"""Access rules for workspaces. A workspace that the actor may not see is answered like one that does not exist."""

from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor, role_in, visible_tenants
from accounts.errors import NotAllowed, NotThere
from accounts.models import Role, Scope, Tenant

from .models import Desired, Share, ShareRole, Workspace

LAUNCHES = (Role.OWNER, Role.MEMBER)


def visible(actor: Actor) -> QuerySet[Workspace]:
    """Workspaces of the actor's tenants, deleted ones included (their events stay readable)."""
    return Workspace.objects.filter(tenant__in=visible_tenants(actor))


def get(actor: Actor, workspace_id: UUID | str) -> Workspace:
    """Return the workspace or raise NotThere."""
    related = ("tenant", "owner", "image", "pool__cluster", "flavor")
    return require_there(actor, visible(actor).select_related(*related).filter(pk=workspace_id).first())


def require_there(actor: Actor, workspace: Workspace | None) -> Workspace:
    """Return the workspace. Raise NotThere if it is None, or deleted and not the actor's own."""
    if workspace is None or (workspace.deleted_at and not is_own(actor, workspace)):
        raise NotThere("not_found", _("There is no such workspace."), _("Look in the list of workspaces."))
    return workspace


def is_own(actor: Actor, workspace: Workspace) -> bool:
    return workspace.owner_id == actor.user.pk


def may_launch(actor: Actor, tenant: Tenant, *, hold: bool = False) -> bool:
    """Return True for members and owners. `hold`: they stay so until the transaction ends."""
    return role_in(actor, tenant, hold=hold) in LAUNCHES


def owner_may_use(workspace: Workspace) -> bool:
    """Return False once the owner was deactivated, removed from the tenant, or became a viewer."""
    return workspace.owner.is_active and may_launch(Actor(workspace.owner), workspace.tenant)


def require_launch(actor: Actor, tenant: Tenant, *, hold: bool = False) -> None:
    """Refuse viewers: only members and owners of the tenant may launch. `hold` as in `may_launch`."""
    actor.require(Scope.WORKSPACES)
    if not may_launch(actor, tenant, hold=hold):
        raise NotAllowed(
            "viewer_only_looks",
            _("You may look at this tenant's workspaces, not start any."),
            _("Ask an owner of the tenant to make you a member."),
        )


def share_of(actor: Actor, workspace: Workspace) -> Share | None:
    """Return the share by which the workspace is open to the actor beside its owner; None if there is none."""
    if is_own(actor, workspace) or workspace.desired == Desired.DELETED:
        return None
    found = (share for share in workspace.shares.all() if share.user_id == actor.user.pk)
    return next((share for share in found if share.given_by_id == workspace.owner_id), None)


def may_work(actor: Actor, workspace: Workspace) -> bool:
    """Return True if the actor may open Jupyter and SSH: its owner, or a colleague with whom it is shared to work."""
    if not may_launch(actor, workspace.tenant):
        return False
    if is_own(actor, workspace):
        return True
    share = share_of(actor, workspace)
    return share is not None and share.role == ShareRole.WORK and owner_may_use(workspace)


def require_work(actor: Actor, workspace: Workspace) -> None:
    if is_own(actor, workspace) or not may_work(actor, workspace):
        require_own(actor, workspace)
    else:
        actor.require(Scope.WORKSPACES)


def require_own(actor: Actor, workspace: Workspace) -> None:
    """Refuse anybody but the workspace's owner, who must still be allowed to launch in the tenant."""
    require_launch(actor, workspace.tenant)
    if not is_own(actor, workspace):
        raise NotAllowed(
            "not_yours",
            _("Only %(owner)s can do this with this workspace.") % {"owner": workspace.owner.get_username()},
            _("Launch one of your own with the same settings."),
        )


def may_open_app(actor: Actor, workspace: Workspace, *, is_shared: bool, for_owner: bool = False) -> bool:
    """Return True for the owner, for colleagues who may work in it, and for the whole tenant if the app is shared with
    it. `for_owner`: for the owner alone.

    Nobody gets in once the owner has no right to the workspace: what the app shows is theirs.
    """
    if not owner_may_use(workspace) or workspace.deleted_at:
        return False
    if is_own(actor, workspace):
        return may_launch(actor, workspace.tenant)
    is_open = not for_owner and (is_shared or may_work(actor, workspace))
    return is_open and role_in(actor, workspace.tenant) is not None


def require_app(actor: Actor, workspace: Workspace, *, is_shared: bool, for_owner: bool = False) -> None:
    if not may_open_app(actor, workspace, is_shared=is_shared, for_owner=for_owner):
        raise NotAllowed(
            "not_shared",
            _("This app is private: only %(owner)s can open it.") % {"owner": workspace.owner.get_username()},
            _("Ask them to share it with the tenant."),
        )


def may_copy_files(actor: Actor, workspace: Workspace) -> bool:
    """Return True if the actor may read the workspace's home and disk: its owner, or an owner of the tenant."""
    return may_launch(actor, workspace.tenant) and may_manage(actor, workspace) and not workspace.deleted_at


def require_files(actor: Actor, workspace: Workspace) -> None:
    if not may_copy_files(actor, workspace):
        raise NotAllowed(
            "not_your_files",
            _("Only %(owner)s or an owner of the tenant can copy these files.")
            % {"owner": workspace.owner.get_username()},
            _("Clone it without its files, or ask them."),
        )


def may_manage(actor: Actor, workspace: Workspace) -> bool:
    """Return True if the actor may stop, extend and delete the workspace."""
    return manages(role_in(actor, workspace.tenant), is_own=is_own(actor, workspace))


def manages(role: Role | None, *, is_own: bool) -> bool:
    """Return the same for a role in the workspace's tenant that is known."""
    return role == Role.OWNER or (is_own and role == Role.MEMBER)


def require_manage(actor: Actor, workspace: Workspace) -> None:
    actor.require(Scope.WORKSPACES)
    _require(may_manage(actor, workspace), workspace)


def may_read_log(actor: Actor, workspace: Workspace) -> bool:
    """Return True for those who manage the workspace, and for colleagues with whom it is shared."""
    return may_manage(actor, workspace) or share_of(actor, workspace) is not None


def require_log(actor: Actor, workspace: Workspace) -> None:
    """Refuse actors that may not read its log. A read-only token is enough here."""
    _require(may_read_log(actor, workspace), workspace)


def _require(is_allowed: bool, workspace: Workspace) -> None:
    if not is_allowed:
        raise NotAllowed(
            "not_yours",
            _("This workspace belongs to %(owner)s.") % {"owner": workspace.owner.get_username()},
            _("Ask them or an owner of the tenant."),
        )
