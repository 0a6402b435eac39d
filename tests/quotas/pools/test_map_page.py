"""The GPU map as each person may see it, with a constant number of queries."""

from __future__ import annotations

import html
import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.access import Actor
from clusters.models import Node, PodUsage
from quotas.models import Booking, Claim, Pool, Sharing
from quotas.queries import queues_of
from quotas.sharing import STRATEGIES
from tests.cast import GIB, Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

pytestmark = pytest.mark.django_db
EARLIER = timezone.now() - timedelta(minutes=9)


def page_of(actor: Actor, path: str = "/gpus/") -> str:
    answer = browser(actor).get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_ones_own_and_ones_tenants_are_named_and_others_are_not(cast: Cast) -> None:
    for actor, name in ((cast.bob, "bobs"), (cast.alice, "alices"), (cast.carol, "carols-secret")):
        make_workspace(cast, actor, name=name)
    seen = page_of(cast.bob)
    assert "1 GPU: yours, bobs" in seen
    assert "1 GPU: alice of Demo, alices" in seen
    assert "1 GPU: another tenant" in seen
    for hidden in ("carol", "Second"):
        assert hidden not in seen
    assert "1 GPU: carol of Second, carols-secret" in page_of(cast.admin)


def test_nodes_have_their_names_for_admins_alone(cast: Cast) -> None:
    assert "gpu-1" in page_of(cast.admin)
    seen = page_of(cast.bob)
    assert "gpu-1" not in seen
    assert "node 1" in seen


def test_who_waits_is_anonymous_to_other_tenants_with_a_reason_that_tells_no_figures(cast: Cast) -> None:
    make_workspace(cast, cast.bob, Phase.WAITING, name="bobs")
    carols = make_workspace(cast, cast.carol, Phase.WAITING, name="carols-secret")
    Claim.objects.filter(holder_id=carols.pk).update(
        reason_code="quota_full", reason_data={"used_gpus": 3, "limit_gpus": 4, "gpus": 2}
    )
    seen = page_of(cast.bob)
    assert ">bobs</a>" in seen
    assert "Waits for a limit of its own tenant." in seen
    assert "uses 3 of the 4" not in seen
    assert "carol" not in seen
    assert "uses 3 of the 4" in page_of(cast.carol)


def test_the_queue_says_places_by_pool_and_ones_own_however_far_behind(cast: Cast) -> None:
    for number in range(25):
        make_workspace(cast, cast.carol, Phase.WAITING, name=f"w{number}")
    make_workspace(cast, cast.bob, Phase.WAITING, name="bobs")
    seen = page_of(cast.bob)
    assert '<td class="figures">26</td>' in seen
    assert "and 5 more" in seen


def test_what_is_broken_closed_or_not_berths_is_said(cast: Cast) -> None:
    Node.objects.filter(name="gpu-1").update(unschedulable=True)
    node = Node.objects.get(name="gpu-2")
    node.labels["nvidia.com/gpu.count"] = "5"
    node.save()
    PodUsage.objects.create(
        cluster=cast.cluster, uid="u", namespace="x", name="x", node="gpu-2", requests={"nvidia.com/gpu": 2}
    )
    seen = page_of(cast.bob)
    assert "closed for new work" in seen
    assert "4 out of use" in seen
    assert "2 outside Berth · 2 free · 1 out of use" in seen


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"end_unproven_since": EARLIER}, "1 held back · 3 free"),
        ({"reclaim_at": EARLIER, "reclaim_code": "owner_waits"}, "1 being reclaimed"),
    ],
)
def test_everybody_sees_what_is_held_back_or_reclaimed(
    cast: Cast, values: dict[str, Any], words: str
) -> None:
    workspace = make_workspace(cast, cast.carol)
    Claim.objects.filter(holder_id=workspace.pk).update(**values)
    assert words in page_of(cast.bob)


def test_bookings_are_told_and_kept_by_title_to_their_tenant_alone(cast: Cast) -> None:
    now = timezone.now()
    common = {"pool": cast.pool, "tenant": cast.second, "created_by": cast.carol.user, "units_each": 2}
    Booking.objects.create(title="Lecture", starts_at=now, ends_at=now + timedelta(hours=2), **common)
    later = now + timedelta(hours=3)
    Booking.objects.create(title="Exam", starts_at=later, ends_at=later + timedelta(hours=1), **common)
    seen = page_of(cast.bob)
    assert seen.count("by another tenant") == 2
    assert "2 booked · 2 free" in seen
    assert "Lecture" not in seen and "Exam" not in seen
    assert ">Lecture</a>" in page_of(cast.carol)


def test_the_places_are_those_that_were_decided_also_where_one_before_has_gone(cast: Cast) -> None:
    first, second = (make_workspace(cast, cast.bob, Phase.WAITING, name=f"bobs-{n}") for n in (1, 2))
    Claim.objects.filter(holder_id=first.pk).update(position=3, units_ahead=5)
    Claim.objects.filter(holder_id=second.pk).update(position=2, units_ahead=4)
    claims = Claim.objects.filter(holder_id__in=[first.pk, second.pk]).values_list("pk", flat=True)
    seen = page_of(cast.bob)
    assert re.findall(r'<td class="figures">(\d+)</td>\s*<td><a[^>]*>(bobs-\d)', seen) == [
        ("2", "bobs-2"), ("3", "bobs-1"),
    ]  # fmt: skip
    assert {queue["position"] for queue in queues_of(claims).values()} == {2, 3}


def test_free_gpus_that_are_scattered_are_told_where_somebody_waits_for_them(cast: Cast) -> None:
    for node in ("gpu-1", "gpu-2"):
        PodUsage.objects.create(
            cluster=cast.cluster, uid=node, namespace="x", name="x", node=node, requests={"nvidia.com/gpu": 2}
        )
    waiting = make_workspace(cast, cast.bob, Phase.WAITING)
    assert "on 2 nodes" not in page_of(cast.bob)
    data = {"gpus": 3, "free_gpus": 4, "nodes": 2, "largest_free_gpus": 2}
    Claim.objects.filter(holder_id=waiting.pk).update(units=3, reason_code="fragmented", reason_data=data)
    assert "Free: 4 GPUs, on 2 nodes: 2 and 2. 1 request for 3 on one node waits." in page_of(cast.bob)


@pytest.mark.parametrize("sharing", Sharing.values)
def test_every_way_of_sharing_is_explained(cast: Cast, sharing: str) -> None:
    cast.pool.sharing, cast.pool.units_per_gpu, cast.pool.unit_memory_mib = sharing, 4, 10_240
    cast.pool.save()
    assert str(STRATEGIES[Sharing(sharing)].neighbours) in html.unescape(page_of(cast.bob))


@pytest.mark.parametrize(
    ("values", "words"),
    [({"is_open": False}, "This pool is out of use."), ({"resource_name": ""}, "There are no GPUs yet")],
)
def test_the_page_says_what_is_missing(cast: Cast, values: dict[str, Any], words: str) -> None:
    assert words not in page_of(cast.bob)
    Pool.objects.update(**values)
    assert words in page_of(cast.bob)


def test_queries_do_not_grow_with_what_there_is(cast: Cast) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            page_of(cast.bob)
        return len(queries)

    for actor in (cast.alice, cast.bob, cast.carol):
        make_workspace(cast, actor)
        make_workspace(cast, actor, Phase.WAITING, name="w")
    few = asked()
    for number in range(10):
        make_workspace(cast, cast.alice, name=f"a{number}")
        make_workspace(cast, cast.carol, Phase.WAITING, name=f"w{number}")
    assert asked() == few


def test_a_large_pool_is_folded_and_quick(cast: Cast) -> None:
    has = {"cpu": 64_000, "memory": 512 * GIB, "pods": 110, "nvidia.com/gpu": 8}
    like = {"cluster": cast.cluster, "ready": True, "labels": cast.pool.node_labels, "allocatable": has}
    Node.objects.bulk_create(Node(name=f"node-{number}", **like) for number in range(500))
    began = time.thread_time()  # CPU time of this thread: other processes may be busy
    seen = page_of(cast.bob)
    took_seconds = time.thread_time() - began
    assert "Show all 502 nodes" in seen
    assert seen.count('<details class="node"') == 16
    assert took_seconds < 2, f"{took_seconds:.2f} s"
    last = page_of(cast.bob, "/gpus/a100/?page=11")
    assert last.count('<details class="node"') == 2
    assert "nodes 501 to 502 of 502" in last
