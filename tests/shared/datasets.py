"""Datasets that are there, and the body that mounts one."""

from __future__ import annotations

from typing import Any

from storage.models import Access, Kind, Phase, Volume
from tests.cast import Cast


def dataset(cast: Cast, name: str, **values: Any) -> Volume:
    first: dict[str, Any] = {
        "tenant": cast.demo, "owner": cast.alice.user, "cluster": cast.cluster, "kind": Kind.DATASET,
        "requested_mib": 64, "phase": Phase.READY, "access": Access.MANY,
    }  # fmt: skip
    return Volume.objects.create(name=name, **first | values)


def body(volume: Volume, **more: Any) -> dict[str, Any]:
    return {"volume": str(volume.pk), "path": f"/{volume.name}", **more}
