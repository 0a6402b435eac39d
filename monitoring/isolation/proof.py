"""The proofs, as doctor's command and pages ask for them."""

from __future__ import annotations

import time
from uuid import UUID

from accounts.access import Actor
from clusters.errands import running
from clusters.models import Cluster
from monitoring.models import IsolationProof

from . import queries, steps, words

PAUSE_SECONDS = 1.0


class Proofs:
    def start(self, actor: Actor | None, cluster: Cluster, image: str = "") -> UUID:
        return steps.start(actor, cluster, image)

    def wait(self, proof_id: UUID) -> None:
        """Look until its result is there and its pods are removed, within the time that a proof may take."""
        row = IsolationProof.objects.get(pk=proof_id)
        while row.ended_at is None or (row.cleared_at is None and not steps.is_overdue(row)):
            if not running.is_for_others():  # else the worker looks, once a second
                steps.look(proof_id)
            row.refresh_from_db()
            if row.cleared_at is None:
                time.sleep(PAUSE_SECONDS)

    def last(self, cluster: Cluster) -> str:
        row = queries.last(cluster)
        return words.sentence(row) if row else words.never()
