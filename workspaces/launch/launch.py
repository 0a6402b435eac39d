"""First step of a launch: check the request, then write workspace, claim and first event in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor, tenant_by_slug
from accounts.announcements.showing import refuse_in_maintenance
from accounts.errors import Conflict, Invalid, Refusal
from accounts.locks import locked
from accounts.models import AuditEntry, Tenant, User
from accounts.trail import audit
from quotas import admission
from quotas.allowed import storage
from quotas.models import Claim
from storage import connections
from storage.models import Kind, Volume
from storage.mounts import homes, mounting
from storage.mounts.mounting import MountWish
from workloads import drivers, images, longest
from workloads.asking import check_env, check_name, check_repository, refuse_unfair
from workloads.models import Exposition, Image
from workloads.repositories import as_secret, without_credentials
from workloads.sizes.sizing import Size, SizeAsked, resolve
from workspaces.access import require_launch
from workspaces.models import Phase, Step, Workspace, WorkspaceSecret
from workspaces.state import declared, runs
from workspaces.state.declared import App
from workspaces.state.live import announce, write_events
from workspaces.state.story import add_event

from . import keys

SMALLEST_DISK_MIB = 64
DONE = AuditEntry.Outcome.DONE
MOST_WAITING = 500  # per person: nobody may fill the queue
LARGEST_DISK_MIB = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class LaunchSpec:
    """Request for a workspace. `secret_env` leaves this object only encrypted."""

    tenant: str
    name: str
    image: str = ""
    image_reference: str = ""  # instead of an image of the catalogue
    size: SizeAsked
    disk_mib: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    repository: str = ""
    priority: int = 0
    max_runtime_minutes: int | None = None
    idle_minutes: int | None = None
    notify: bool = True
    volumes: Sequence[MountWish] = ()
    connections: Sequence[UUID] = ()
    exposition: Exposition | None = None
    apps: Sequence[App] = ()
    settings_of: Workspace | None = None  # source of a clone, named in an event
    with_files: bool = (
        False  # a copy of the source's home and disk, instead of the person's home and an empty disk
    )
    left_out: Sequence[str] = ()  # names of volumes that the clone does not mount
    given_by: Actor | None = (
        None  # owner of the tenant who launches it for its person, with a home of its own
    )


def launch(actor: Actor, spec: LaunchSpec) -> Workspace:
    """Create the workspace and put its claim into the queue. Raise a Refusal, which is also audited.

    The cluster's lock is not needed: no admission pass can be using rows that are new.
    """
    tenant = tenant_by_slug(actor, spec.tenant)
    try:
        with transaction.atomic():
            refuse_in_maintenance(actor)
            _lock(actor, tenant)
            refuse_unfair(actor, spec.priority)
            image, size = check(tenant, spec)
            minutes = longest.granted(tenant, spec.max_runtime_minutes)
            home = None if spec.given_by else homes.main_home(actor.user, tenant, size.pool.cluster)
            refuse_beyond_storage(tenant, actor.user, new_storage(spec, size, home))
            return _write(actor, tenant, image, size, home, replace(spec, max_runtime_minutes=minutes))
    except Refusal as refusal:
        _record(actor, spec, tenant, None, outcome="refused", code=refusal.code)
        raise


def _lock(actor: Actor, tenant: Tenant) -> None:
    """Let a person launch one workspace at a time, and hold their membership until the workspace is written.

    A concurrent removal from the tenant waits for the membership's lock and then finds the workspace, or came first.
    """
    list(locked(User.objects.filter(pk=actor.user.pk)).values_list("pk"))
    require_launch(actor, tenant, hold=True)


def check(tenant: Tenant, spec: LaunchSpec) -> tuple[Image, Size]:
    """Check what can be checked without writing. Raise Invalid with all faulty fields at once."""
    image, fields = images.asked(tenant, spec.image, spec.image_reference)
    fields |= check_name(spec.name)
    fields |= check_disk(spec.disk_mib)
    fields |= check_repository(spec.repository)
    fields |= check_env(spec.env, spec.secret_env)
    fields |= declared.check(spec.apps)
    if fields or image is None:
        raise Invalid(
            "invalid", _("Some fields are not valid."), _("Correct the named fields."), fields=fields
        )
    size = resolve(tenant, spec.size)
    drivers.refuse_too_old(image, size.pool, size.units)
    return image, size


def check_disk(disk_mib: int) -> dict[str, list[str]]:
    if disk_mib and not SMALLEST_DISK_MIB <= disk_mib <= LARGEST_DISK_MIB:
        return {"disk_mib": [_("Use 0 for none, or 64 MiB to 16 TiB.")]}
    return {}


def name_taken(name: str) -> Conflict:
    return Conflict(
        "name_taken",
        _("You already have a workspace “%(name)s” in this tenant.") % {"name": name},
        _("Start that one, delete it, or choose another name."),
        fields={"name": [_("Already taken.")]},
    )


def new_storage(spec: LaunchSpec, size: Size, home: Volume | None) -> dict[str, int]:
    """Return by kind how many MiB the launch adds to what there is."""
    if spec.settings_of is not None and spec.with_files:
        return homes.sizes_of_own(spec.settings_of.pk)
    return {Kind.DISK: spec.disk_mib, Kind.HOME: 0 if home else size.pool.cluster.home_mib}


def refuse_beyond_storage(tenant: Tenant, owner: User, asked: Mapping[str, int]) -> None:
    hint = _(
        "A first home counts too. Request a smaller disk, delete storage that nobody needs, or ask your admin for more "
        "quota."
    )
    storage.refuse_beyond(tenant, owner, asked, field="disk_mib", hint=hint)


def _write(
    actor: Actor, tenant: Tenant, image: Image, size: Size, home: Volume | None, spec: LaunchSpec
) -> Workspace:
    """Write each row once: all is decided before the first, and the claim's refusals come before the workspace."""
    workspace = Workspace(
        tenant=tenant,
        owner=actor.user,
        name=spec.name,
        image=images.kept(image),
        **size.fields,
        disk_mib=spec.disk_mib,
        env=dict(spec.env),
        repository=without_credentials(spec.repository),
        priority=spec.priority,
        max_runtime_minutes=spec.max_runtime_minutes,
        idle_minutes=spec.idle_minutes,
        notify=spec.notify,
        apps=declared.kept(spec.apps),
        **Exposition.fields(spec.exposition),
        phase=Phase.WAITING,
        step=Step.REQUEST,
        step_since=timezone.now(),
    )
    claim = admission.request(**needs(workspace, size), most_waiting=MOST_WAITING)
    runs.begin(workspace, claim, "requested")
    if spec.settings_of is not None:
        add_source_event(workspace, spec.settings_of, spec.with_files)
    if spec.given_by is not None:
        add_event(workspace, "launched_for_a_class", by=spec.given_by.user.get_username())
    if spec.left_out:
        add_event(workspace, "volumes_left_out", names=", ".join(spec.left_out))
    try:
        workspace.save(force_insert=True)
    except IntegrityError as error:
        if "one_workspace_of_a_name" not in str(error):
            raise
        raise name_taken(spec.name) from None
    secrets = keys.new_secrets(workspace, {**spec.secret_env, **as_secret(spec.repository)})
    WorkspaceSecret.objects.create(workspace=workspace, **secrets)
    give_storage(actor, workspace, home, spec)
    write_events(workspace)
    announce(workspace)
    _record(actor, spec, tenant, workspace)
    return workspace


def _record(
    actor: Actor, spec: LaunchSpec, tenant: Tenant, target: Workspace | None, outcome: str = DONE, **data: str
) -> None:
    action = "workspace.launch"
    if spec.given_by is not None:
        actor, action, data["for"] = spec.given_by, "workspace.launch-for", actor.user.get_username()
    audit.record(actor, action, target=target, tenant=tenant, outcome=outcome, data=data)


def give_storage(actor: Actor, workspace: Workspace, home: Volume | None, spec: LaunchSpec) -> None:
    tenant, cluster = workspace.tenant, workspace.pool.cluster
    if spec.settings_of is not None and spec.with_files:
        homes.copy_own(actor, workspace.pk, workspace.name, spec.settings_of.pk)
    else:
        if spec.given_by is not None:
            homes.add_home(actor.user, tenant, cluster, workspace.pk, workspace.name)
        else:
            homes.mount_home(actor.user, tenant, cluster, workspace.pk, home)
        if workspace.disk_mib:
            homes.add_disk(actor.user, tenant, cluster, workspace.pk, workspace.name, workspace.disk_mib)
    mounting.mount(actor, tenant, cluster, workspace.pk, spec.volumes, [workspace.image.home])
    connections.use(actor, tenant, workspace.pk, spec.connections)


def add_source_event(workspace: Workspace, source: Workspace, with_files: bool) -> None:
    files = "_with_files" if with_files else ""
    if source.owner_id == workspace.owner_id:
        add_event(workspace, f"cloned{files}", name=source.name)
    else:
        owner = source.owner.get_username()
        add_event(workspace, f"cloned{files}_of_another", name=source.name, owner=owner)


def claim_for(workspace: Workspace) -> Claim:
    """Ask the queue for what the workspace needs, as the pod will request it."""
    return admission.request(**needs(workspace, Size.of(workspace)))


def needs(workspace: Workspace, size: Size) -> dict[str, Any]:
    """Arguments of a claim: who asks, and for how much."""
    return {
        "tenant": workspace.tenant,
        "user": workspace.owner,
        "pool": size.pool,
        "portion": size.portion,
        "cpu_millicores": size.requested_cpu_millicores,
        "memory_mib": size.requested_memory_mib,
        "holder_kind": Claim.Holder.WORKSPACE,
        "holder_id": workspace.pk,
        "priority": workspace.priority,
        "max_runtime_minutes": workspace.max_runtime_minutes,
    }
