"""Start and end files sessions: rows and the lease; the keeper carries it out."""

from __future__ import annotations

import secrets
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor, role_in
from accounts.credentials.secrets import encrypt
from accounts.errors import Conflict, NotAllowed, TooMany
from accounts.locks import for_change, locked
from accounts.models import Role, Scope, User
from accounts.trail import audit
from clusters.isolation.deciding import refuse_unknown
from quotas import admission
from quotas.models import Claim
from storage import access, enqueue
from storage.models import Access, FilesPhase, FilesSession, Kind, Mount, Phase, Volume
from storage.mounts.leasing import Leases, lease_of_session
from storage.mounts.mounting import may_mount
from storage.sources import refuse_binned, refuse_scratch

MOST_OF_A_PERSON = 3
USED_EVERY = timedelta(seconds=20)
UP = (FilesPhase.STARTING, FilesPhase.READY)


def open_one(volume: Volume) -> FilesSession | None:
    """Return the volume's session that has not ended, and that serves people."""
    return _any_open(volume).filter(inspects=False).first()


def _any_open(volume: Volume) -> QuerySet[FilesSession]:
    return FilesSession.objects.filter(volume=volume, ended_at=None).select_related("by")


def may_open(actor: Actor, volume: Volume, *, writes: bool = False) -> bool:
    """Return True if the actor may see, or change, the volume's files: the rule for mounting it."""
    is_member = role_in(actor, volume.tenant) in (Role.OWNER, Role.MEMBER)
    return is_member and may_mount(volume, actor.user.pk, read_only=not writes)


def require(actor: Actor, volume: Volume, *, writes: bool = False) -> None:
    if may_open(actor, volume, writes=writes):
        return
    if may_open(actor, volume) and volume.is_read_only:
        raise NotAllowed(
            "not_confirmed",
            _("“%(volume)s” is adopted, and read-only until its owner confirms it.")
            % {"volume": volume.name},
            _("%(owner)s can confirm it on its page.") % {"owner": volume.owner.get_username()},
        )
    if may_open(actor, volume):
        raise NotAllowed(
            "read_only",
            _("“%(volume)s” is shared to read.") % {"volume": volume.name},
            _("Ask %(owner)s to share it to write.") % {"owner": volume.owner.get_username()},
        )
    raise NotAllowed(
        "not_shared",
        _("The files of “%(volume)s” are not shared with you.") % {"volume": volume.name},
        _("Ask %(owner)s to share the volume.") % {"owner": volume.owner.get_username()},
    )


def start(actor: Actor, volume: Volume) -> tuple[FilesSession, bool]:
    """Start the session that serves the volume's files, or return the one that is up. The flag: it is new."""
    actor.require(Scope.VOLUMES)
    refuse_scratch(volume)
    require(actor, volume)
    with transaction.atomic():
        admission.lock(volume.cluster_id)  # no run that mounts it is admitted meanwhile
        list(locked(User.objects.filter(pk=actor.user.pk)).values_list("pk"))  # one at a time
        row = locked(Volume.objects.filter(pk=volume.pk).select_related("cluster")).get()
        refuse_binned(row)
        _refuse_uninspected(row)
        there = _any_open(row).first()
        if there is not None and there.phase in UP and not there.inspects:
            touch(there)
            return there, False
        if there is not None:
            raise Conflict(
                "files_session_ending",
                _("The files session of this volume is ending."),
                _("Try again in a few seconds."),
                retry_after_seconds=2,
            )
        refuse_unknown(row.cluster)
        _refuse_unready(row)
        _refuse_too_many(actor)
        made = FilesSession(volume=row, by=actor.user, token=encrypt(secrets.token_urlsafe(32)))
        made.writes = _mode(made)
        made.save(force_insert=True)
        audit.record(actor, "volume.open_files", target=volume, tenant=volume.tenant)
        enqueue.look([row.pk])
    return made, True


def _mode(made: FilesSession) -> bool:
    """Return True if it may write: nobody else holds the volume. Refuse if it may not even read."""
    volume = made.volume
    waiting = _waiting(volume)
    may_write = volume.access != Access.READ and not volume.is_read_only
    if not waiting and may_write and not _excluded(made, writes=True):
        return True
    if by := waiting or _excluded(made, writes=False):
        raise Conflict(
            "volume_in_use",
            _("“%(volume)s” is in use by %(by)s.") % {"volume": volume.name, "by": ", ".join(by)},
            _("Open its files when that has stopped, or there: in JupyterLab or over SSH."),
            fields={"by": by},
        )
    return False


def _excluded(made: FilesSession, *, writes: bool) -> list[str]:
    """Return who holds the volume so that such a session must not be beside them."""
    made.writes = writes
    if (lease := lease_of_session(made)) is None:
        return []
    return sorted(other.holder_name for other in Leases().held([lease.volume]) if lease.excludes(other))


def _waiting(volume: Volume) -> list[str]:
    """Return the requests that wait for this volume: they come first."""
    mounts = Mount.objects.filter(volume=volume).values("holder")
    claims = Claim.objects.filter(
        state=Claim.State.WAITING, reason_code="volume_in_use", holder_id__in=mounts
    )
    return [_("a waiting request") for claim in claims if claim.reason_data.get("volume") == volume.name]


def _refuse_uninspected(row: Volume) -> None:
    if not row.is_inspected:
        text = _("“%(volume)s” is adopted: its files are looked at first.") % {"volume": row.name}
        raise Conflict("not_inspected", text, _("See on its page what the inspection says."))


def _refuse_unready(row: Volume) -> None:
    if not row.cluster.files_image:
        raise Conflict(
            "no_files_image",
            _("The cluster %(cluster)s has no image that serves files.") % {"cluster": row.cluster.name},
            _("An admin can name one in the cluster's settings, under Images."),
        )
    if row.phase in (Phase.FAILED, Phase.DELETING):
        text = _("“%(volume)s” cannot be mounted.") % {"volume": row.name}
        raise Conflict("volume_unusable", text, _("See on its page what is wrong."))
    # The first mount decides where a local disk lies: that must be the run's node.
    if row.kind == Kind.DISK and not row.bound_to:
        text = _("“%(volume)s” has no files yet.") % {"volume": row.name}
        raise Conflict("not_ready", text, _("Start a workspace that mounts it first."))


def _refuse_too_many(actor: Actor) -> None:
    if FilesSession.objects.filter(by=actor.user, ended_at=None).count() >= MOST_OF_A_PERSON:
        raise TooMany(
            "too_many_files_sessions",
            _("You have opened the files of %(most)s volumes, the most at the same time.")
            % {"most": MOST_OF_A_PERSON},
            _("Close one of them, or wait: each closes after ten minutes without use."),
            retry_after_seconds=60,
        )


def end(actor: Actor, volume: Volume) -> bool:
    """Tell the session to end. False: there is none, or it is ending."""
    actor.require(Scope.VOLUMES)
    require(actor, volume)
    with transaction.atomic():
        there = open_one(volume)
        if there is None or there.phase == FilesPhase.ENDING:
            return False
        if there.by_id != actor.user.pk:
            access.require_manage(actor, volume)
        _tell([there.pk])
        audit.record(actor, "volume.close_files", target=volume, tenant=volume.tenant)
    return True


def give_way(claim: Claim) -> None:
    """End the session on the volume that this request waits for: files in a browser hold up no GPU."""
    if claim.reason_code != "volume_in_use":
        return
    mounted = Mount.objects.filter(holder=claim.holder_id, volume__name=claim.reason_data.get("volume"))
    rows = FilesSession.objects.filter(volume__in=mounted.values("volume"), phase__in=UP)
    _tell(list(rows.values_list("pk", flat=True)))


def _tell(ids: list[UUID]) -> None:
    """Tell sessions to end, in the caller's transaction."""
    rows = FilesSession.objects.filter(pk__in=ids, phase__in=UP)
    enqueue.look(
        rows.values_list("volume", flat=True)
    )  # it locks the volumes, which come before their sessions
    for_change(rows).update(phase=FilesPhase.ENDING)


def touch(session: FilesSession) -> None:
    """Write down that it is used, now and then."""
    now = timezone.now()
    FilesSession.objects.filter(pk=session.pk, used_at__lt=now - USED_EVERY).update(used_at=now)


def ready_one(actor: Actor, volume: Volume, *, writes: bool = False) -> FilesSession:
    """Return the session that can answer now, for an actor who may do that there."""
    require(actor, volume, writes=writes)
    there = open_one(volume)
    if there is None or there.phase != FilesPhase.READY:
        raise Conflict(
            "no_files_session",
            _("No files session of this volume is ready."),
            _("Start one, and wait until it is ready."),
        )
    if writes and not there.writes:
        raise Conflict(
            "read_only",
            _("The files of “%(volume)s” are open to read: something else had it mounted.")
            % {"volume": volume.name},
            _("Close the files and open them again when that has stopped."),
        )
    touch(there)
    return there
