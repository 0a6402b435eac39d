"""Rows of a full pool with a queue and a past, and of other pools beside it."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any
from uuid import uuid4

from django.db import connection
from django.utils import timezone

from accounts.credentials import tokens
from accounts.models import Membership, Role, Tenant, User
from clusters.models import Node
from quotas.models import Claim, Flavor, Pool, Quota
from tests.cast import GIB, PRODUCT, Cast, make_cast

NODES, GPUS, WAITING, PAST, TENANTS, PEOPLE, OTHER_POOLS = 64, 8, 200, 3000, 10, 10, 3
SIZES = (1, 1, 1, 2, 2, 4, 8)


def seed() -> str:
    """Return a token of bob's that may read."""
    cast, random = make_cast(), Random(1)
    Node.objects.all().delete()
    _nodes(cast, "gpu", NODES, PRODUCT)
    who = [(cast.demo, cast.bob.user), *_people(cast)]
    claims = [*_held(cast, random, who), *_ended(cast, random, who), *_waiting(cast, random, who)]
    Claim.objects.bulk_create(claims, batch_size=1000)
    Quota.objects.update(nominal_gpus=NODES * GPUS)
    for number in range(1, OTHER_POOLS + 1):
        _another_pool(cast, number)
    connection.cursor().execute("ANALYZE")
    return tokens.issue(cast.bob.user, "bench", ["read"], None, 1)[1]


def _people(cast: Cast) -> list[tuple[Tenant, User]]:
    tenants = Tenant.objects.bulk_create(Tenant(slug=f"team-{n}", name=f"Team {n}") for n in range(TENANTS))
    Quota.objects.bulk_create(Quota(tenant=tenant, pool=cast.pool, nominal_gpus=1) for tenant in tenants)
    users = User.objects.bulk_create(
        User(username=f"person-{n}", email=f"p{n}@example.org") for n in range(TENANTS * PEOPLE)
    )
    found = [(tenants[n % TENANTS], user) for n, user in enumerate(users)]
    Membership.objects.bulk_create(Membership(tenant=t, user=u, role=Role.MEMBER) for t, u in found)
    return found


def _nodes(cast: Cast, name: str, count: int, product: str) -> None:
    has = {"cpu": 256_000, "memory": 2048 * GIB, "pods": 110, "nvidia.com/gpu": GPUS}
    Node.objects.bulk_create(
        Node(
            cluster=cast.cluster,
            name=f"{name}-{n}",
            ready=True,
            labels={"nvidia.com/gpu.product": product},
            allocatable=has,
        )
        for n in range(count)
    )


def _claim(cast: Cast, who: tuple[Tenant, User], gpus: int, place: int, **values: Any) -> Claim:
    return Claim(
        tenant=who[0],
        user=who[1],
        pool=cast.pool,
        units=gpus,
        cpu_millicores=1000,
        memory_mib=1024,
        holder_kind=Claim.Holder.WORKSPACE,
        holder_id=uuid4(),
        place=place,
        **values,
    )


def _held(cast: Cast, random: Random, who: list[tuple[Tenant, User]]) -> list[Claim]:
    now, held = timezone.now(), []
    for node in range(NODES):
        left = GPUS
        while left:
            gpus = min(left, random.choice(SIZES))
            left -= gpus
            since = now - timedelta(minutes=random.randrange(1, 600))
            ends_at = now + timedelta(minutes=random.randrange(5, 900)) if random.random() < 0.5 else None
            at = {"node": f"gpu-{node}", "nodes": [f"gpu-{node}"]}
            values = {"state": "admitted", **at, "admitted_at": since, "ends_at": ends_at}
            held.append(_claim(cast, random.choice(who), gpus, 0, **values))
    return held


def _ended(cast: Cast, random: Random, who: list[tuple[Tenant, User]]) -> list[Claim]:
    now, ended = timezone.now(), []
    for _ in range(PAST):
        released = now - timedelta(minutes=random.randrange(1, 20_000))
        began = released - timedelta(minutes=random.lognormvariate(5, 1))
        values = {"state": "released", "admitted_at": began, "released_at": released}
        ended.append(_claim(cast, random.choice(who), random.choice(SIZES), 0, **values))
    return ended


def _waiting(cast: Cast, random: Random, who: list[tuple[Tenant, User]]) -> list[Claim]:
    return [
        _claim(
            cast,
            random.choice(who),
            random.choice(SIZES),
            number,
            max_runtime_minutes=random.choice((None, None, 60, 240, 480)),
        )
        for number in range(1, WAITING + 1)
    ]


def _another_pool(cast: Cast, number: int) -> None:
    product = f"{PRODUCT}-{number}"
    pool = Pool.objects.create(
        slug=f"pool-{number}",
        name=f"Pool {number}",
        cluster=cast.cluster,
        node_labels={"nvidia.com/gpu.product": product},
        gpu_product=product,
        gpu_memory_mib=81_920,
    )
    _nodes(cast, pool.slug, 8, product)
    Quota.objects.create(tenant=cast.demo, pool=pool, nominal_gpus=8)
    Flavor.objects.create(
        slug=f"{pool.slug}-1", name="One", pool=pool, units=1, cpu_millicores=4000, memory_mib=16_384
    )
