"""Runs that ended badly in the same way, as firings: the groups of their post-mortems."""

from __future__ import annotations

from collections.abc import Iterable

from monitoring.alerts.firing import Firing, key_of
from monitoring.alerts.troubles import pools_of_nodes
from monitoring.models import Severity
from monitoring.post_mortems import groups


def firings() -> Iterable[Firing]:
    found = groups.firing()
    places = {(one.cluster_id, one.node) for one in found if one.cluster_id and one.node}
    pools = pools_of_nodes(places)
    for one in found:
        yield Firing(
            key=key_of(one.key),
            code=one.code,
            data=one.data,
            severity=Severity.WARNING,
            since=one.since,
            cluster_id=one.cluster_id,
            node=one.node,
            name=str(one.data.get("gpu") or one.data.get("image") or ""),
            pool_ids=pools.get((one.cluster_id, one.node), ()) if one.cluster_id else (),
            apart=key_of(one.key),
        )
