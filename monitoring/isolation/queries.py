"""Last proof of a cluster, and what doctor says about it."""

from __future__ import annotations

from collections.abc import Iterator

from clusters.api import Api
from clusters.doctor import Check, Finding, Level
from clusters.models import Cluster
from monitoring.models import IsolationProof

from . import words


def last(cluster: Cluster) -> IsolationProof | None:
    """Return the proof that ended last; one under way does not replace the last result."""
    ended = IsolationProof.objects.filter(cluster=cluster, ended_at__isnull=False)
    return ended.order_by("-ended_at").first()


def findings(cluster: Cluster, _api: Api | None = None) -> Iterator[Finding]:
    row = last(cluster)
    if row is None:
        yield Finding(Level.WARN, words.never(), words.how(), Check.ISOLATION)
    else:
        yield Finding(words.level(row), words.sentence(row), words.hint(row), Check.ISOLATION)
    for under_way in IsolationProof.objects.filter(cluster=cluster, ended_at=None):
        yield Finding(Level.OK, words.sentence(under_way), "", Check.ISOLATION)
