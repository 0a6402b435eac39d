"""Pages of the GPU map: nodes, GPUs, who uses them, and the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.rest.actors import actor_of
from clusters.models import Node
from quotas import queries
from quotas.bookings.changes import Seen
from quotas.models import Pool
from quotas.pool_state import kept_for_bookings
from quotas.pools import fragments
from quotas.pools.gpu_map import IN_PERCENT, NodeRow
from quotas.pools.map_queries import InQueue, Nodes, Viewer, booked_soon, queues, scattered_requests
from quotas.pools.nodes import nodes_of

NODES_AT_FIRST = 16
NODES_PER_PAGE = 50


@dataclass(frozen=True)
class PoolMap:
    """A pool as the page shows it. `facts` is what the API returns too."""

    pool: Pool
    facts: dict[str, Any]
    rows: list[NodeRow]
    page: Page[Node]
    queue: list[InQueue]
    fragmented: str
    booked: list[Seen]

    @property
    def is_cut(self) -> bool:
        return self.pool.units_per_gpu > 1

    @property
    def is_sliced(self) -> bool:
        """True if requests are counted in slices."""
        return 1 < self.pool.units_per_gpu < IN_PERCENT

    @property
    def units(self) -> dict[str, Any]:
        """Figures in the unit of requests: GPUs, or slices if the pool cuts GPUs into slices."""
        counted: dict[str, Any] = self.facts["counted"]
        return counted

    @property
    def more_waiting(self) -> int:
        return int(self.facts["waiting"]) - len(self.queue)


@never_cache
@login_required
@require_GET
def gpu_map(request: HttpRequest) -> HttpResponse:
    """Show all pools with the first of their nodes."""
    pools = with_gpus()
    maps = maps_of(request, pools, NODES_AT_FIRST, page=1)
    return render(request, "quotas/gpus.html", {"section": "gpus", "maps": maps})


@never_cache
@login_required
@require_GET
def pool_map(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one pool with all of its nodes, in pages."""
    pool = get_object_or_404(with_gpus(), slug=slug)
    [found] = maps_of(request, [pool], NODES_PER_PAGE, page=request.GET.get("page"))
    return render(request, "quotas/pool.html", {"section": "gpus", "map": found})


def with_gpus() -> Any:
    return Pool.objects.exclude(resource_name="").select_related("cluster")


def maps_of(request: HttpRequest, pools: Any, nodes_shown: int, *, page: Any) -> list[PoolMap]:
    viewer = Viewer(actor_of(request))
    pools = list(pools)
    free, kept = nodes_of(pools, with_runs=False), kept_for_bookings(pools)
    facts = {one["slug"]: one for one in queries.pools_for(viewer.actor, pools, free, kept)}
    with_queue = [pool for pool in pools if facts[pool.slug]["waiting"]]
    nodes, waiting = Nodes.read(pools, free, kept), queues(with_queue, viewer)
    scattered, booked = scattered_requests(with_queue), booked_soon(viewer.actor, pools)
    found = []
    pages = {pool: Paginator(nodes.of(pool), nodes_shown).get_page(page) for pool in pools}
    nodes.look_closer((node for shown in pages.values() for node in shown), viewer)
    for pool, shown in pages.items():
        first = shown.start_index()
        rows = [nodes.row(pool, node, number, viewer) for number, node in enumerate(shown, first)]
        words = fragments.told(
            [node.free.units for node in free[pool.id].healthy], scattered[pool.id], pool.units_per_gpu
        )
        found.append(PoolMap(pool, facts[pool.slug], rows, shown, waiting[pool.id], words, booked[pool.id]))
    return found
