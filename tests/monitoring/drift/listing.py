"""A cluster that only lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from monitoring.drift.survey import survey
from monitoring.models import What
from tests.cast import Cast


class Listing:
    """Cluster that only lists. `meanwhile` runs before its pods are read."""

    def __init__(self, *bodies: dict[str, Any], meanwhile: Callable[[], object] = lambda: None) -> None:
        self.bodies, self.meanwhile = bodies, meanwhile
        self.whole: set[str] = set()

    def each(self, kind: str, *, labels: Mapping[str, str], metadata_only: bool) -> Iterator[dict[str, Any]]:
        assert set(labels) == {"app.kubernetes.io/managed-by", "berth.dev/instance"}
        if not metadata_only:
            self.whole.add(kind)
        if kind == "Pod":
            self.meanwhile()
        yield from (body for body in self.bodies if body["kind"] == kind)


def looked(cast: Cast, *bodies: dict[str, Any], **options: Any) -> list[tuple[What, str]]:
    api: Any = Listing(*bodies, **options)
    return [(one.what, one.key.kind) for one in survey(cast.cluster, api).found]
