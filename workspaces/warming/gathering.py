"""What a booking warms, from rows: its likely images, and the nodes of its pool that take new pods."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from django.db.models import Count
from django.utils import timezone

from accounts.errors import Invalid
from clusters.references import complete
from quotas.models import Booking
from quotas.pools.nodes import nodes_of
from workloads import images
from workloads.models import Image
from workspaces.models import ClassLaunch, Template, Workspace

from .deciding import MOST_IMAGES, MOST_NODES, Named, likeliest

RECENT = timedelta(days=30)


def images_of(booking: Booking) -> list[Image]:
    """Return the images that people of the booking will most likely start, and may: of their tenant alone.

    One that is named by its reference for the first time is saved: inside a transaction.
    """
    of = ClassLaunch.objects.filter(booking=booking, tenant=booking.tenant_id, stopped_at=None)
    classes = [(Named.of(one.body), one.people) for one in of.annotate(people=Count("seats"))]
    found: dict[str, Image] = {}
    for name in likeliest(classes, _recent(booking), _templates(booking)):
        if len(found) == MOST_IMAGES:
            break
        if image := _allowed(booking, name):
            found.setdefault(complete(image.reference), image)
    return list(found.values())


def _allowed(booking: Booking, name: Named) -> Image | None:
    with suppress(Invalid):
        image, _faults = images.asked(booking.tenant, name.slug or None, name.reference or None)
        return image and images.kept(image)
    return None


def _recent(booking: Booking) -> list[tuple[Named, int]]:
    lately = timezone.now() - RECENT
    rows = Workspace.objects.filter(tenant=booking.tenant_id, pool=booking.pool_id, changed_at__gte=lately)
    counted = rows.order_by().values_list("image__slug").annotate(people=Count("owner", distinct=True))
    return [(Named(slug=slug), people) for slug, people in counted]


def _templates(booking: Booking) -> list[Named]:
    """Return the images of the tenant's templates that name this pool, one of its sizes, or no pool at all."""
    pool = booking.pool
    sizes = set(pool.flavors.values_list("slug", flat=True))
    bodies = Template.objects.filter(tenant=booking.tenant_id).values_list("body", flat=True)
    return [
        Named.of(body)
        for body in bodies
        if body.get("pool") in (None, "", pool.slug) and (not body.get("flavor") or body["flavor"] in sizes)
    ]


def nodes_for(booking: Booking) -> list[str]:
    """Return the pool's nodes that take new pods, those with the most free units first."""
    healthy = nodes_of([booking.pool], with_runs=False)[booking.pool_id].healthy
    by_room = sorted(healthy, key=lambda node: (-node.free.units, node.name))
    return [node.name for node in by_room[:MOST_NODES]]
