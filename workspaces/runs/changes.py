"""Change an existing workspace: its name, size, disk, lifetime, volumes, settings. All of it or nothing.

A size that is changed during a run is kept beside the row until the next start, and so are mounts and settings; an
event says so: the run goes on as it was admitted, under its own claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, Invalid
from quotas import admission, passes
from quotas.allowed.limits import refuse_what_never_fits
from quotas.models import Claim
from quotas.queries import has_others_behind, queues_of
from storage.models import Kind
from storage.mounts import homes, mounting
from storage.mounts.mounting import MountWish
from workloads import drivers, longest
from workloads.asking import check_name
from workloads.models import Exposition
from workloads.sizes.sizing import Size, SizeAsked, resolve
from workspaces import enqueue
from workspaces.access import require_own
from workspaces.launch.keys import keep_host_key, take_host_key
from workspaces.launch.launch import check_disk, name_taken, needs, refuse_beyond_storage
from workspaces.models import Desired, Phase, Workspace
from workspaces.state import runs, settings
from workspaces.state.story import add_event

from . import lifecycle, lifetime
from .settings import NewSettings, has_run, set_settings


@dataclass(frozen=True, kw_only=True)
class Lifetime:
    minutes: int | None  # None: until somebody stops it


@dataclass(frozen=True, kw_only=True)
class Metrics:
    at: Exposition | None  # None: nowhere


@dataclass(frozen=True, kw_only=True)
class Change:
    """Requested values. None: leave as it is."""

    name: str | None = None
    size: SizeAsked | None = None
    disk_mib: int | None = None
    lifetime: Lifetime | None = None
    idle: Lifetime | None = None  # how long it may be idle
    notify: bool | None = None
    volumes: Sequence[MountWish] | None = None
    metrics: Metrics | None = None
    settings: NewSettings | None = None
    undo_size: bool = False  # back to the size, and the place, of the request that was replaced last
    new_disk: bool = False  # an empty one instead of its own, which ties it to a node

    @property
    def named(self) -> dict[str, object]:
        """Requested fields, and the new name, for the audit trail."""
        fields = ("size", "disk_mib", "lifetime", "idle", "notify", "volumes", "metrics")
        names = [name for name in fields if getattr(self, name) is not None]
        names += self.settings.named if self.settings is not None else []
        names += [name for name in ("new_disk", "undo_size") if getattr(self, name)]
        image = self.settings and (self.settings.image or self.settings.image_reference)
        values = {"name": self.name, "image": image or None}
        return {"changed": names} | {name: value for name, value in values.items() if value is not None}


def change(actor: Actor, workspace: Workspace, wanted: Change) -> bool:
    """Return True if anything changed. Raise a Refusal that names the field; then nothing is changed."""
    with lifecycle.allowed(actor, workspace, "change"):
        require_own(actor, workspace)
        _check(wanted)
        size = _new_size(workspace, wanted.size) if wanted.size is not None else None
    try:
        with lifecycle.audited_change(actor, workspace, "change", wanted.named) as row:
            lifecycle.refuse_deleted(row)
            changed = [
                wanted.name is not None and _rename(row, wanted.name),
                size is not None and _resize(row, size),
                wanted.disk_mib is not None and _add_disk(row, wanted.disk_mib),
                wanted.lifetime is not None and _give_lifetime(row, wanted.lifetime),
                wanted.idle is not None and _stop_when_idle(row, wanted.idle.minutes),
                wanted.notify is not None and _notify(row, wanted.notify),
                wanted.volumes is not None and _mount(actor, row, wanted.volumes),
                wanted.new_disk and _leave_disk(row),
                wanted.metrics is not None and _expose(row, wanted.metrics),
                wanted.settings is not None and set_settings(row, wanted.settings),
                wanted.undo_size and _undo_size(row),
            ]
            if size is not None or (wanted.settings is not None and wanted.settings.names_image):
                coming = runs.next_size(row)
                drivers.refuse_too_old(settings.coming_image(row), coming.pool, coming.units)
            return any(changed)
    except IntegrityError as error:
        if wanted.name is None or "one_workspace_of_a_name" not in str(error):
            raise
        raise name_taken(wanted.name) from None


def _check(wanted: Change) -> None:
    if wanted.name is not None and (faults := check_name(wanted.name)):
        raise Invalid("invalid", _("It cannot have this name."), _("Choose another one."), fields=faults)
    if wanted.lifetime is not None:
        lifetime.refuse_too_long(wanted.lifetime.minutes, "max_runtime_minutes")


def _new_size(workspace: Workspace, asked: SizeAsked) -> Size:
    """Resolve and check the size, as at launch."""
    size = resolve(workspace.tenant, asked)
    if size.pool.cluster_id != workspace.pool.cluster_id:
        text = _("Its files are in %(here)s, and %(pool)s is in %(there)s.") % {
            "here": workspace.pool.cluster.name,
            "pool": size.pool.name,
            "there": size.pool.cluster.name,
        }
        hint = _("Choose a pool of the same cluster, or launch a new workspace there.")
        raise Invalid("other_cluster", text, hint, fields={"pool": [text]})
    would_claim = size.asked_by(workspace.tenant, workspace.owner, workspace.max_runtime_minutes)
    refuse_what_never_fits(would_claim)
    return size


# --- One function per field, inside `changing`. Each returns True if the field changed.


def _rename(row: Workspace, name: str) -> bool:
    """Change the name that people see. Objects in the cluster are named by id and stay."""
    if row.name == name:
        return False
    add_event(row, "renamed", old=row.name, new=name)
    keep_host_key(row)
    row.name = name
    keep_host_key(row)
    if not has_run(row):
        take_host_key(row)
    return True


def _resize(row: Workspace, size: Size) -> bool:
    if row.phase == Phase.WAITING and not row.ending:
        return _ask_anew(row, size)
    pending = size.to_keep() if size != Size.of(row) else None
    if pending == row.next_size:
        return False
    row.next_size = pending
    if row.desired == Desired.STOPPED and not row.ending:
        runs.take_up_size(row)
        add_event(row, "resized", size=size.describe())
    else:
        add_event(row, "resized_later" if pending else "size_stays", size=size.describe())
    return True


def _ask_anew(row: Workspace, size: Size) -> bool:
    """Replace the waiting claim by a claim for the new size. If that asks for no more, it keeps the place."""
    if size == Size.of(row) and row.next_size is None:
        return False
    waiting = runs.claim_of(row, Claim.State.WAITING)
    if waiting is None or not admission.release(waiting.pk, "resized"):
        return False
    former = row.former_size
    wanted = needs(row, size)
    place = _place_kept(wanted, waiting, former if former and _is_former(former, size) else None)
    replaced = {"size": Size.of(row).to_keep(), "place": waiting.place, "is_lost": place is None}
    row.next_size = size.to_keep()
    runs.take_up_size(row)
    claim = admission.request(**wanted, place=place)
    runs.begin(row, claim, "requested")
    row.former_size = replaced
    return True


def _place_kept(wanted: dict[str, Any], waiting: Claim, former: dict[str, Any] | None) -> int | None:
    """Return the place of the new request: the present one if it asks for no more, that which it had before if it is
    the former request again; None: the end of the queue. Nobody loses by either: they stood behind it all the time."""
    if former is not None:
        place: int = former["place"]
        return place
    return waiting.place if _asks_no_more(wanted, waiting) else None


def _is_former(former: dict[str, Any], size: Size) -> bool:
    return Size.kept(former["size"]) == size


def _undo_size(row: Workspace) -> bool:
    """Ask for the former size again. Its place comes back if nothing was admitted since."""
    former = row.former_size and Size.kept(row.former_size["size"])
    if former is None or row.phase not in (Phase.WAITING, Phase.STARTING):
        text = _("There is no change of its size to undo.")
        raise Conflict("nothing_to_undo", text, _("Choose a size in its settings."))
    refuse_what_never_fits(former.asked_by(row.tenant, row.owner, row.max_runtime_minutes))
    changed = _resize(row, former)
    row.former_size = None
    return changed


def place_at_stake(workspace: Workspace, asked: SizeAsked | None = None) -> int | None:
    """Return the place in the queue that a request for another size gives up; None if others lose and win nothing by
    it. `asked`: that size, else any that asks for more."""
    waiting = runs.claim_of(workspace, Claim.State.WAITING)
    if waiting is None or workspace.phase != Phase.WAITING or not has_others_behind(waiting):
        return None
    if asked is not None:
        size = resolve(workspace.tenant, asked)
        if size == Size.of(workspace) or _asks_no_more(needs(workspace, size), waiting):
            return None
    return queues_of([waiting.pk])[waiting.pk]["position"]


def _asks_no_more(wanted: dict[str, Any], waiting: Claim) -> bool:
    units: int = wanted["portion"].units
    return (
        wanted["pool"].pk == waiting.pool_id
        and units <= waiting.units
        and wanted["cpu_millicores"] <= waiting.cpu_millicores
        and wanted["memory_mib"] <= waiting.memory_mib
    )


def _add_disk(row: Workspace, disk_mib: int) -> bool:
    there = homes.disk_mib(mounting.mounts_of([row.pk]).get(row.pk, ()))
    if there == disk_mib:
        return False
    if there:
        return _grow_disk(row, disk_mib)
    if faults := check_disk(disk_mib):
        raise Invalid("invalid", _("It cannot have this disk."), _("Choose another size."), fields=faults)
    if row.desired != Desired.STOPPED or row.ending:
        text = _("A local disk can be added while it is stopped.")
        raise Conflict("stop_first", text, _("Stop it, add the disk, start it."), fields={"disk_mib": [text]})
    refuse_beyond_storage(row.tenant, row.owner, {Kind.DISK: disk_mib})
    homes.add_disk(row.owner, row.tenant, row.pool.cluster, row.pk, row.name, disk_mib)
    row.disk_mib = disk_mib
    add_event(row, "disk_added", mib=disk_mib)
    return True


def _grow_disk(row: Workspace, disk_mib: int) -> bool:
    try:
        grows = homes.grow_disk(row.pk, disk_mib)
    except Invalid as refusal:
        texts = refusal.fields.get("size_mib", [refusal.message])
        raise Invalid(refusal.code, refusal.message, refusal.hint, fields={"disk_mib": texts}) from None
    row.disk_mib = disk_mib
    add_event(row, "disk_grown", mib=disk_mib)
    return grows


def _leave_disk(row: Workspace) -> bool:
    """Give it a new, empty disk, so that it can start on any node. The old one stays among its owner's volumes."""
    disk_mib = homes.disk_mib(mounting.mounts_of([row.pk]).get(row.pk, ()))
    if not disk_mib:
        text = _("It has no local disk.")
        raise Invalid("no_disk", text, _("Add one in its settings."), fields={"new_disk": [text]})
    if row.ending or (row.desired != Desired.STOPPED and row.phase != Phase.WAITING):
        text = _("Its disk can be replaced while it is stopped, or waits.")
        raise Conflict("stop_first", text, _("Stop it, and try again."), fields={"new_disk": [text]})
    refuse_beyond_storage(row.tenant, row.owner, {Kind.DISK: disk_mib})
    left = homes.leave_disk(row.pk, row.name)
    add_event(row, "disk_left", volume=left.name)
    passes.want_for_cluster(row.pool.cluster_id)
    return True


def _give_lifetime(row: Workspace, wanted: Lifetime) -> bool:
    """Set the lifetime. If the run is ready or has an end, the lifetime counts from now."""
    minutes = longest.granted(row.tenant, wanted.minutes)
    if row.max_runtime_minutes == minutes:
        return False
    row.max_runtime_minutes = minutes
    if row.run is not None:
        admission.change_runtime(row.run, minutes)
    if row.desired == Desired.RUNNING and not row.ending and (row.ready_at or row.stops_at):
        stops_at = None if minutes is None else timezone.now() + timedelta(minutes=minutes)
        lifetime.end_at(row, lifetime.allowed(row, stops_at))
    if minutes is None:
        add_event(row, "lifetime_removed")
    else:
        add_event(row, "lifetime_changed", minutes=minutes)
    return True


def _stop_when_idle(row: Workspace, minutes: int | None) -> bool:
    if row.idle_minutes == minutes:
        return False
    row.idle_minutes = minutes
    if minutes is None:
        add_event(row, "idle_minutes_removed")
    else:
        add_event(row, "idle_minutes_changed", minutes=minutes)
    return True


def _notify(row: Workspace, notify: bool) -> bool:
    changed = row.notify != notify
    row.notify = notify
    return changed


def _expose(row: Workspace, wanted: Metrics) -> bool:
    """Change where its program serves figures. The pod of its run is told by the next look."""
    if row.exposition == wanted.at:
        return False
    row.metrics_port, row.metrics_path = (wanted.at.port, wanted.at.path) if wanted.at else (None, "")
    if wanted.at is None:
        add_event(row, "metrics_removed")
    else:
        add_event(row, "metrics_changed", port=wanted.at.port, path=wanted.at.path)
    enqueue.reconcile([row.pk])
    return True


def _mount(actor: Actor, row: Workspace, volumes: Sequence[MountWish]) -> bool:
    """Replace what it mounts beside its home and own disk: now, or at the next start if it has a run."""
    homes = {row.image.home, settings.coming_image(row).home}
    was_changing, paths = mounting.is_changing(row.pk), list(homes)
    if not mounting.change(actor, row.tenant, row.pool.cluster, row.pk, volumes, paths):
        return False
    if mounting.is_changing(row.pk):
        add_event(row, "remounted_later")
    else:
        add_event(row, "volumes_stay" if was_changing else "remounted")
    return True
