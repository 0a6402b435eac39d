"""Submit a job: check the request, then write job, parts and first claims in one transaction."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access import Actor, tenant_by_slug
from accounts.credentials.secrets import encrypt
from accounts.errors import Invalid, Refusal
from accounts.locks import locked
from accounts.models import Tenant, User
from accounts.trail import audit
from quotas.allowed import storage
from storage import connections
from storage.changes import hint_of_limit
from storage.models import Kind, Volume
from storage.mounts import homes, mounting
from storage.mounts.mounting import MountWish
from workloads import longest
from workloads.asking import check_env, check_name, check_repository, refuse_not_built, refuse_unfair
from workloads.models import Image
from workloads.repositories import as_secret, without_credentials
from workloads.sizes.sizing import Size, SizeAsked, resolve

from .access import require_submit
from .changing import add_event, announce, write_events
from .models import Job, JobSecret, Part
from .runs import parts

MOST_PARTS = 1000
LONGEST_SCRIPT_BYTES = 256 * 1024
LONGEST_COMMAND_BYTES = 64 * 1024
# Set by Berth in distributed jobs, beside the names that are always reserved.
DISTRIBUTED_ENV = re.compile(
    r"MASTER_ADDR|MASTER_PORT|WORLD_SIZE|RANK|NODE_RANK|LOCAL_RANK|LOCAL_WORLD_SIZE|NPROC|JOB_COMPLETION_INDEX"
    r"|PET_(NNODES|NPROC_PER_NODE|NODE_RANK|MASTER_ADDR|MASTER_PORT)"
)
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
    image: str
    size: SizeAsked
    command: Sequence[str] = ()
    script: str = field(default="", repr=False)
    completions: int = 1
    parallelism: int = 1
    retries: int = 3
    final_exit_codes: Sequence[int] = ()
    sweep: Mapping[str, Sequence[Any]] | None = None
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
    connections: Sequence[UUID] = ()
    not_built: Sequence[str] = ()  # fields of the API that this version cannot fulfil


def submit(actor: Actor, spec: JobSpec) -> Job:
    """Create the job and put the claims of its first parts into the queue. Raise a Refusal, which is also audited."""
    tenant = tenant_by_slug(actor, spec.tenant)
    try:
        with transaction.atomic():
            list(locked(User.objects.filter(pk=actor.user.pk)).values_list("pk"))  # one at a time
            require_submit(actor, tenant, hold=True)
            refuse_not_built(spec.not_built)
            refuse_unfair(actor, spec.priority)
            image = check(spec)
            size = resolve(tenant, spec.size)
            home = homes.main_home(actor.user, tenant, size.pool.cluster)
            asked: dict[str, int] = {Kind.HOME: 0 if home else size.pool.cluster.home_mib}
            storage.refuse_beyond(tenant, actor.user, asked, field="tenant", hint=hint_of_limit())
            return _write(actor, tenant, image, size, home, spec)
    except Refusal as refusal:
        audit.record(actor, "job.submit", tenant=tenant, outcome="refused", data={"code": refusal.code})
        raise


def check(spec: JobSpec) -> Image:
    """Check what can be checked without writing. Raise Invalid with all faulty fields at once."""
    fields = check_name(spec.name) | check_repository(spec.repository) | check_env(spec.env, spec.secret_env)
    fields |= check_program(spec) | check_parts(spec) | check_distributed(spec)
    image = Image.objects.filter(slug=spec.image, is_active=True).first()
    if image is None:
        fields["image"] = [_("There is no image “%(slug)s”. See the list of images.") % {"slug": spec.image}]
    if fields or image is None:
        raise Invalid(
            "invalid", _("Some fields are not valid."), _("Correct the named fields."), fields=fields
        )
    return image


def check_program(spec: JobSpec) -> dict[str, list[str]]:
    if bool(spec.command) == bool(spec.script.strip()):
        return {"command": [_("Give either a command or a script.")]}
    if any("\0" in text for text in (*spec.command, spec.script)):
        return {"command": [_("It has a NUL character, which no command can hold.")]}
    if sum(len(text.encode()) for text in spec.command) > LONGEST_COMMAND_BYTES:
        return {"command": [_("It is longer than 64 KiB. Put it into a file, or use a script.")]}
    if len(spec.script.encode()) > LONGEST_SCRIPT_BYTES:
        return {"script": [_("It is longer than 256 KiB. Put it into a file of your home.")]}
    return {}


def check_parts(spec: JobSpec) -> dict[str, list[str]]:
    if spec.sweep is not None and spec.completions != 1:
        return {"completions": [_("A sweep has one part for each combination of its values.")]}
    if number_of_parts(spec) > MOST_PARTS:
        name = "completions" if spec.sweep is None else "sweep"
        return {name: [_("A job has at most %(most)d parts.") % {"most": MOST_PARTS}]}
    return {}


def check_distributed(spec: JobSpec) -> dict[str, list[str]]:
    faults: dict[str, list[str]] = {}
    for where, values in (("env", spec.env), ("secret_env", spec.secret_env)):
        if spec.distributed and (taken := sorted(name for name in values if DISTRIBUTED_ENV.fullmatch(name))):
            text = _("%(names)s: Berth sets it for distributed jobs. Use another name.")
            faults[where] = [text % {"names": ", ".join(taken)}]
    chosen = [wish for wish in spec.volumes if wish.volume == spec.checkpoints]
    if spec.checkpoints is not None and not any(not wish.read_only for wish in chosen):
        faults["checkpoints"] = [_("Mount that volume too, and let the job write to it.")]
    return faults


def number_of_parts(spec: JobSpec) -> int:
    number = spec.completions
    for values in (spec.sweep or {}).values():
        number *= len(values)
    return number


def parameters(spec: JobSpec) -> list[dict[str, Any]]:
    """Return the parameters of each part: every combination of a sweep's values, in their order."""
    if spec.sweep is None:
        return [{} for _index in range(spec.completions)]
    return [dict(zip(spec.sweep, values, strict=True)) for values in product(*spec.sweep.values())]


def _refuse_side_by_side(job: Job) -> None:
    """Refuse parts side by side, or several nodes, with a volume that one node can mount at a time."""
    if job.nodes == 1 and min(job.parallelism, job.completions) == 1:
        return
    mounts = mounting.mounts_of([job.pk]).get(job.pk, [])
    alone = [one.volume.name for one in mounts if one.volume.is_exclusive]
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


def _write(actor: Actor, tenant: Tenant, image: Image, size: Size, home: Volume | None, spec: JobSpec) -> Job:
    job = Job(
        tenant=tenant,
        owner=actor.user,
        name=spec.name,
        image=image,
        **size.fields,
        env=dict(spec.env),
        repository=without_credentials(spec.repository),
        priority=spec.priority,
        max_runtime_minutes=longest.granted(tenant, spec.max_runtime_minutes),
        notify=spec.notify,
        command=list(spec.command),
        completions=number_of_parts(spec),
        parallelism=spec.parallelism,
        retries=spec.retries,
        final_exit_codes=list(spec.final_exit_codes),
        sweep=None if spec.sweep is None else dict(spec.sweep),
        ttl_hours=spec.ttl_hours,
        **asdict(spec.distributed or Distributed(1, 1, "")),
        checkpoints=spec.checkpoints,
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
    parts.request_next(job, is_new=True)
    job.save(update_fields=["last_event", "phase", "message_code", "message_data"])
    write_events(job)
    announce(job)
    audit.record(actor, "job.submit", target=job, tenant=tenant, data={"name": job.name})
    return job
