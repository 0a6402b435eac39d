"""Code that bench_admission.py runs in other processes: people who launch, and one pass over the queue."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from uuid import uuid4

from django.db import connection, transaction

from accounts.models import Tenant, User
from clusters.models import Node
from quotas import admission
from quotas.models import Claim, Pool, Quota
from quotas.sharing import Portion
from tests.cast import GIB, make_cast
from vitals.models import Process

NODES, GPUS_EACH, TENANTS = 500, 4, 20
THREADS = 8
# Large requests, so that the GPUs last for half of a thousand.
GPUS = 4
LABELS = {"bench": "yes"}


def prepare() -> None:
    cast = make_cast()
    pool = Pool.objects.create(slug="bench", name="Bench", cluster=cast.cluster, node_labels=LABELS)
    has = {"cpu": 64_000, "memory": 512 * GIB, "pods": 110, "nvidia.com/gpu": GPUS_EACH}
    Node.objects.bulk_create(
        Node(
            cluster=cast.cluster,
            name=f"node-{number}",
            labels=LABELS,
            ready=True,
            allocatable=has,
            capacity={"nvidia.com/gpu": GPUS_EACH},
        )
        for number in range(NODES)
    )
    for number in range(TENANTS):
        tenant = Tenant.objects.create(slug=f"bench-{number}", name=f"Bench {number}")
        User.objects.create(username=f"asks-{number}")
        Quota.objects.create(tenant=tenant, pool=pool, nominal_gpus=100, borrowing_limit_gpus=100)


def wait_for_worker() -> None:
    while not Process.objects.exists():
        time.sleep(0.1)


def ask(count: int) -> float:
    """Make that many requests, each in its own transaction as a launch does. Return the monotonic begin."""
    pool = Pool.objects.get(slug="bench")
    tenants = list(Tenant.objects.filter(slug__startswith="bench-").order_by("slug"))
    people = list(User.objects.filter(username__startswith="asks-").order_by("username"))
    whose = cycle(zip(tenants, people, strict=True))
    began = time.monotonic()

    def one(of: tuple[Tenant, User]) -> None:
        tenant, user = of
        with transaction.atomic():
            admission.request(
                tenant=tenant,
                user=user,
                pool=pool,
                portion=Portion(GPUS),
                cpu_millicores=4_000,
                memory_mib=16_384,
                holder_kind=Claim.Holder.JOB,
                holder_id=uuid4(),
            )

    with ThreadPoolExecutor(THREADS, initializer=connection.connect) as threads:
        list(threads.map(one, (next(whose) for _request in range(count))))
    return began


def wait_until_decided(count: int) -> float:
    """Wait until that many have started or have a reason to wait. Return the monotonic time of it."""
    decided = Claim.objects.exclude(state=Claim.State.WAITING, reason_code="")
    while decided.count() < count:
        time.sleep(0.02)
    return time.monotonic()


def admitted() -> int:
    return Claim.objects.filter(state=Claim.State.ADMITTED).count()


def one_pass() -> float:
    """Return the milliseconds of a pass over a full pool with a thousand waiting requests."""
    pool = Pool.objects.get(slug="bench")
    missing = 1_000 - Claim.objects.filter(pool=pool, state=Claim.State.WAITING).count()
    if missing > 0:
        ask(missing)
    began = time.perf_counter()
    admission.admit(pool.id)
    return (time.perf_counter() - began) * 1000
