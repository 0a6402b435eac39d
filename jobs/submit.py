"""Submit a job: check the request, then write job, parts and first claims in one transaction."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access import Actor, tenant_by_slug
from accounts.announcements.showing import refuse_in_maintenance
from accounts.credentials.secrets import encrypt
from accounts.errors import Invalid, Refusal
from accounts.locks import locked
from accounts.models import Tenant, User
from accounts.trail import audit
from quotas.allowed import storage
from storage import connections
from storage.changes import hint_of_limit
from storage.models import LATEST, Kind, Volume
from storage.mounts import homes, mounting
from storage.mounts.choosing import path_for
from storage.mounts.mounting import MountWish
from workloads import drivers, images, longest
from workloads.asking import check_env, check_name, check_repository, refuse_unfair
from workloads.models import Exposition, Image
from workloads.repositories import as_secret, without_credentials
from workloads.sizes.sizing import Size, SizeAsked, resolve

from . import programs, sweeps
from .access import require_submit
from .changing import add_event, announce, write_events
from .models import Job, JobSecret, Part
from .runs import following, parts, publishing
from .runs.following import After
from .sweeps import MOST_PARTS, Grid, Points

# Set by Berth in distributed jobs, beside the names that are always reserved.
DISTRIBUTED_ENV = re.compile(
    r"MASTER_ADDR|MASTER_PORT|WORLD_SIZE|RANK|NODE_RANK|LOCAL_RANK|LOCAL_WORLD_SIZE|NPROC|JOB_COMPLETION_INDEX"
    r"|PET_(NNODES|NPROC_PER_NODE|NODE_RANK|MASTER_ADDR|MASTER_PORT)"
)
MOST_RETRIES = 100
# Below what a person asks for without a word, so that nobody's notebook waits behind a job.
PRIORITY = -10


@dataclass(frozen=True)
class Distributed:
    """Processes that work on a part together."""

    nodes: int
    processes_per_node: int
    framework: str


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """Request for a job. `secret_env` and `script` leave this object only encrypted."""

    tenant: str
    name: str
    image: str = ""
    image_reference: str = ""  # instead of an image of the catalogue
    size: SizeAsked
    command: Sequence[str] = ()
    script: str = field(default="", repr=False)
    notebook: str = ""
    completions: int = 1
    parallelism: int = 1
    retries: int = 3
    final_exit_codes: Sequence[int] = ()
    sweep: Grid | Points | None = None
    distributed: Distributed | None = None
    checkpoints: UUID | None = None  # one of its volumes; None: its home
    ttl_hours: int | None = 168
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    repository: str = ""
    priority: int = PRIORITY
    max_runtime_minutes: int | None = None
    notify: bool = True
    volumes: Sequence[MountWish] = ()
    after: Sequence[After] = ()
    writes: UUID | None = None
    connections: Sequence[UUID] = ()
    exposition: Exposition | None = None


def submit(actor: Actor, spec: JobSpec) -> Job:
    """Create the job and put the claims of its first parts into the queue. Raise a Refusal, which is also audited."""
    tenant = tenant_by_slug(actor, spec.tenant)
    try:
        with transaction.atomic():
            refuse_in_maintenance(actor)
            list(locked(User.objects.filter(pk=actor.user.pk)).values_list("pk"))  # one at a time
            require_submit(actor, tenant, hold=True)
            refuse_unfair(actor, spec.priority)
            image = check(tenant, spec)
            size = resolve(tenant, spec.size)
            drivers.refuse_too_old(image, size.pool, size.units)
            home = homes.main_home(actor.user, tenant, size.pool.cluster)
            asked: dict[str, int] = {Kind.HOME: 0 if home else size.pool.cluster.home_mib}
            storage.refuse_beyond(tenant, actor.user, asked, field="tenant", hint=hint_of_limit())
            first = following.check(actor, tenant, spec.after)
            writes = None if spec.writes is None else publishing.check(actor, tenant, spec.writes)
            spec = replace(spec, volumes=_volumes(spec, writes, first))
            return _write(actor, tenant, image, size, home, spec, writes, first)
    except Refusal as refusal:
        audit.record(actor, "job.submit", tenant=tenant, outcome="refused", data={"code": refusal.code})
        raise


def check(tenant: Tenant, spec: JobSpec) -> Image:
    """Check what can be checked without writing. Raise Invalid with all faulty fields at once."""
    image, fields = images.asked(tenant, spec.image, spec.image_reference)
    fields |= check_name(spec.name) | check_repository(spec.repository)
    fields |= check_env(spec.env, spec.secret_env, DISTRIBUTED_ENV if spec.distributed else None)
    fields |= programs.check(spec.command, spec.script, spec.notebook) | check_parts(spec)
    fields |= check_checkpoints(spec)
    if fields or image is None:
        raise Invalid(
            "invalid", _("Some fields are not valid."), _("Correct the named fields."), fields=fields
        )
    return image


def check_parts(spec: JobSpec) -> dict[str, list[str]]:
    if spec.sweep is not None and spec.completions != 1:
        return {"completions": [_("A sweep has one part for each combination of its values.")]}
    if number_of_parts(spec) > MOST_PARTS:
        name = "completions" if spec.sweep is None else "sweep"
        return {name: [_("A job has at most %(most)d parts.") % {"most": MOST_PARTS}]}
    return {}


def check_checkpoints(spec: JobSpec) -> dict[str, list[str]]:
    written = {wish.volume for wish in spec.volumes if not wish.read_only}
    if spec.checkpoints is None or spec.checkpoints in written:
        return {}
    return {"checkpoints": [_("Mount that volume too, and let the job write to it.")]}


def number_of_parts(spec: JobSpec) -> int:
    return spec.completions if spec.sweep is None else sweeps.number_of(spec.sweep)


def parameters(spec: JobSpec) -> list[dict[str, Any]]:
    """Return the parameters of each part."""
    if spec.sweep is None:
        return [{} for _index in range(spec.completions)]
    return sweeps.points_of(spec.sweep)


def _refuse_side_by_side(job: Job) -> None:
    """Refuse parts side by side, or several nodes, with a volume that one node can mount at a time."""
    if job.nodes == 1 and min(job.parallelism, job.completions) == 1:
        return
    mounts = mounting.mounts_of([job.pk]).get(job.pk, [])
    alone = [one.volume.name for one in mounts if one.volume.is_exclusive and not one.version]
    if not alone:
        return
    if job.nodes > 1:
        field, hint = "distributed", _("Use one node, or a volume that several nodes can mount.")
        text = _("“%(name)s” can be mounted on one node at a time, so the job cannot run on several.")
    else:
        field, hint = "parallelism", _("Use a parallelism of 1.")
        text = _("“%(name)s” can be mounted by one run at a time, so its parts run one after the other.")
    text %= {"name": alone[0]}
    raise Invalid("volume_is_exclusive", text, hint, fields={field: [text]})


def _volumes(spec: JobSpec, writes: Volume | None, first: Sequence[tuple[Job, str]]) -> Sequence[MountWish]:
    """Return what the job mounts: with the dataset that it writes, and versions that jobs before it will publish."""
    promised = {one.writes_id for one, _on in first}
    wishes = [
        replace(wish, is_promised=wish.version == LATEST and wish.volume in promised) for wish in spec.volumes
    ]
    if writes is None:
        return wishes
    named = next((wish for wish in wishes if wish.volume == writes.pk), None)
    if named is None:
        return [*wishes, MountWish(volume=writes.pk, path=path_for(writes), read_only=False)]
    if named.read_only or named.version:
        text = _("“%(name)s” is what it writes: mount it to write (read_only: false).") % {
            "name": writes.name
        }
        raise Invalid("invalid", text, _("Or leave it out of the volumes."), fields={"volumes": [text]})
    return wishes


def _write(
    actor: Actor,
    tenant: Tenant,
    image: Image,
    size: Size,
    home: Volume | None,
    spec: JobSpec,
    writes: Volume | None,
    first: Sequence[tuple[Job, str]],
) -> Job:
    job = Job(
        tenant=tenant,
        owner=actor.user,
        name=spec.name,
        image=images.kept(image),
        **size.fields,
        env=dict(spec.env),
        repository=without_credentials(spec.repository),
        priority=spec.priority,
        max_runtime_minutes=longest.granted(tenant, spec.max_runtime_minutes, longest.JOBS),
        notify=spec.notify,
        **Exposition.fields(spec.exposition),
        command=programs.of_notebook(spec.notebook) if spec.notebook else list(spec.command),
        completions=number_of_parts(spec),
        parallelism=spec.parallelism,
        retries=spec.retries,
        final_exit_codes=list(spec.final_exit_codes),
        sweep=spec.sweep,
        ttl_hours=spec.ttl_hours,
        **asdict(spec.distributed or Distributed(1, 1, "")),
        checkpoints=spec.checkpoints,
        writes=writes,
        is_held=bool(first),
        message_code="doing_waiting",
    )
    job.save(force_insert=True)
    secret = {**spec.secret_env, **as_secret(spec.repository)}
    script = encrypt(spec.script) if spec.script.strip() else ""
    JobSecret.objects.create(job=job, env=encrypt(json.dumps(secret)), script=script)
    homes.mount_home(actor.user, tenant, size.pool.cluster, job.pk, home)
    mounting.mount(actor, tenant, size.pool.cluster, job.pk, spec.volumes, [image.home])
    connections.use(actor, tenant, job.pk, spec.connections)
    _refuse_side_by_side(job)
    Part.objects.bulk_create(
        Part(job=job, index=index, parameters=values) for index, values in enumerate(parameters(spec))
    )
    add_event(job, "submitted", name=job.name, parts=job.completions, size=size.describe())
    if first:
        following.hold(job, first)
    parts.request_next(job, is_new=True)
    job.save(update_fields=["last_event", "phase", "message_code", "message_data"])
    write_events(job)
    announce(job)
    audit.record(actor, "job.submit", target=job, tenant=tenant, data={"name": job.name})
    return job
