"""Images of bookings as people see them: how many nodes have each, and what is wrong with a pull."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from uuid import UUID

from clusters import explain
from quotas.bookings.warm import WarmImage as Shown
from workloads.models import Image
from workspaces.models import WarmImage


def images_of(bookings: Collection[UUID]) -> dict[UUID, list[Shown]]:
    """Return the images of each booking, in one query for all."""
    rows = WarmImage.objects.filter(booking__in=bookings).select_related("image")
    of_image: defaultdict[tuple[UUID, Image], list[WarmImage]] = defaultdict(list)
    for row in rows.order_by("pk"):
        of_image[row.booking_id, row.image].append(row)
    found: defaultdict[UUID, list[Shown]] = defaultdict(list)
    for (booking, image), of_nodes in of_image.items():
        failed = next((row for row in of_nodes if row.code and row.ready_at is None), None)
        found[booking].append(
            Shown(
                image=image.reference if image.is_own else image.slug,
                name=image.name,
                nodes_ready=sum(row.ready_at is not None for row in of_nodes),
                nodes=len(of_nodes),
                problem=explained(failed) if failed else None,
            )
        )
    return found


def explained(row: WarmImage) -> dict[str, str]:
    sentence, hint = explain.sentence(row.code, row.data), explain.hint(row.code, row.data)
    return {"code": row.code, "message": sentence, "hint": hint}
