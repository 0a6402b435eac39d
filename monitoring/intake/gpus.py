"""Rows of a node's GPUs: facts, newest sample, holders. Two queries for any number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db import connection

from clusters.models import Gpu
from monitoring.agent.schema import GpuFacts, GpuSample
from monitoring.health import trusting
from monitoring.health.rules import is_slowed
from monitoring.intake import rows
from monitoring.intake.holders import Held

FACTS = ("index", "name", "memory_mib", "ecc", "compute_capability", "facts")
# Fields of a sample that health uses; the others change all the time.
HEALTH = (
    "state", "recovery_action", "ecc_uncorrected_since_boot", "ecc_uncorrected_ever", "rows_remapped_uncorrected",
    "row_remap_pending", "row_remap_failed",
)  # fmt: skip
MOST_GPUS = 256
OF_NODE = "FROM clusters_gpu AS row WHERE cluster_id = %s AND node = %s ORDER BY index"
WRITTEN = ("id", "sample", "held_by", "seen_at", "utilization_percent", "memory_used_mib")
UPDATE = """
    UPDATE clusters_gpu SET sample = reported.sample, held_by = reported.held_by, seen_at = reported.seen_at,
        utilization_percent = reported.utilization_percent, memory_used_mib = reported.memory_used_mib
    FROM jsonb_to_recordset(%s::jsonb) AS reported (id bigint, sample jsonb, held_by jsonb, seen_at timestamptz,
        utilization_percent smallint, memory_used_mib int)
    WHERE clusters_gpu.id = reported.id
"""


@dataclass
class Node:
    """GPUs of a node as rows, and whether they changed."""

    cluster_id: UUID
    name: str
    gpus: dict[str, Gpu]
    is_other: bool = False  # health must judge the node

    @property
    def facts(self) -> list[GpuFacts]:
        return [cast(GpuFacts, gpu.facts) for gpu in self.gpus.values() if gpu.facts]


def read(cluster_id: UUID, node: str) -> Node:
    return Node(cluster_id, node, {gpu.uuid: gpu for gpu in rows.read(Gpu, OF_NODE, (cluster_id, node))})


def take_inventory(node: Node, inventory: Iterable[GpuFacts]) -> None:
    """Create rows for new GPUs and update changed facts. Mark missing GPUs as gone until their node is deleted."""
    named = {facts["uuid"][:96]: facts for facts in list(inventory)[:MOST_GPUS]}
    new, changed = [], []
    for uuid, facts in named.items():
        if gpu := node.gpus.get(uuid):
            if gpu.facts != facts:
                _set_facts(gpu, facts)
                changed.append(gpu)
        elif len(node.gpus) < MOST_GPUS:  # no node has so many GPUs, including gone ones
            gpu = node.gpus[uuid] = Gpu(cluster_id=node.cluster_id, node=node.name, uuid=uuid)
            _set_facts(gpu, facts)
            new.append(gpu)
    trusting.recall(new)
    Gpu.objects.bulk_create(new)
    if changed:
        Gpu.objects.bulk_update(changed, FACTS)
    gone = [gpu for uuid, gpu in node.gpus.items() if uuid not in named and gpu.sample.get("state") != "gone"]
    for gpu in gone:
        _set_sample(gpu, {"uuid": gpu.uuid, "state": "gone"})
        gpu.held_by = []
    _write(gone)
    node.is_other |= bool(new or changed or gone)


def take_samples(node: Node, samples: Iterable[GpuSample], held: Held, at: datetime) -> None:
    """Set the newest sample and the holders of each GPU."""
    by_uuid = {sample["uuid"]: sample for sample in samples}
    changed = [gpu for uuid, gpu in node.gpus.items() if uuid in by_uuid or gpu.held_by != held.get(uuid, [])]
    for gpu in changed:
        before = _health(gpu)
        if sample := by_uuid.get(gpu.uuid):
            _set_sample(gpu, cast(dict[str, Any], sample))
            gpu.seen_at = at
        gpu.held_by = held.get(gpu.uuid, [])
        node.is_other |= _health(gpu) != before
    _write(changed)


def forget_samples(node: Node) -> None:
    """Clear use and memory of all GPUs: NVML does not answer, so both are unknown."""
    known = [
        gpu for gpu in node.gpus.values() if (gpu.utilization_percent, gpu.memory_used_mib) != (None, None)
    ]
    for gpu in known:
        gpu.utilization_percent = gpu.memory_used_mib = None
    _write(known)


def _health(gpu: Gpu) -> Any:
    return [gpu.sample.get(name) for name in HEALTH], is_slowed(gpu), gpu.held_by


def _set_facts(gpu: Gpu, facts: GpuFacts) -> None:
    gpu.facts = cast(dict[str, Any], facts)
    gpu.index = _between(facts["index"], 2**15) or 0
    gpu.name = facts.get("name", "")[:120]
    gpu.memory_mib = _between(facts.get("memory_mib"), 2**31)
    gpu.ecc = facts.get("ecc")
    gpu.compute_capability = facts.get("compute_capability", "")[:8]


def _set_sample(gpu: Gpu, sample: Mapping[str, Any]) -> None:
    gpu.sample = dict(sample)
    gpu.utilization_percent = _between(sample.get("utilization_percent"), 101)
    gpu.memory_used_mib = _between(sample.get("memory_used_mib"), 2**31)


def _between(value: int | None, limit: int) -> int | None:
    return value if value is not None and 0 <= value < limit else None


def _write(gpus: list[Gpu]) -> None:
    if not gpus:
        return
    with connection.cursor() as cursor:
        values = [{name: getattr(gpu, name) for name in WRITTEN} for gpu in gpus]
        cursor.execute(UPDATE, [json.dumps(values, default=str)])
