"""Examination of a cluster: all looks in turn, with one time limit for all requests together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.connections import transport_to
from clusters.doctor import addresses, agreement, isolation, metrics, mounts, nodes, rights, storage, version
from clusters.doctor.findings import Check, Finding, Level
from clusters.errors import ClusterError, ClusterRefused
from clusters.faults import explained
from clusters.models import Cluster
from clusters.nodes.inventory import NodeValues, node_values
from clusters.transport import Objects

Examiner = Callable[[Cluster, Api], Iterator[Finding]]
"""Finds what is wrong with a cluster. May raise a ClusterError."""
_examiners: list[Examiner] = []
WITHIN_SECONDS = 20.0  # somebody waits for the page


class CachingApi(Api):
    """Cluster as one examination sees it: nodes and API groups, which several looks read, are requested once."""

    def groups(self) -> set[str]:
        return self._groups

    def list(self, kind: str, **options: Any) -> Objects:
        return self.bodies if kind == "Node" and not options else super().list(kind, **options)

    @cached_property
    def _groups(self) -> set[str]:
        return super().groups()

    @cached_property
    def bodies(self) -> Objects:
        return super().list("Node")

    @cached_property
    def nodes(self) -> Sequence[NodeValues]:
        return [node_values(body) for body in self.bodies]


def register(examiner: Examiner) -> None:
    """Add an examiner of a room above."""
    _examiners.append(examiner)


def examine(cluster: Cluster, namespaces: Sequence[str] = ()) -> list[Finding]:
    """Return all findings, the good ones too; only the connection's if the cluster cannot be reached.

    A missing right is also looked for in `namespaces`: it may be granted there and not everywhere.
    """
    try:
        seen = CachingApi(transport_to(cluster, within_seconds=WITHIN_SECONDS))
        told = seen.version()
    except ClusterError as error:
        message, hint = explained(error, cluster)
        return [Finding(Level.FAIL, message, hint, Check.CONNECTION)]
    looks: list[tuple[Check, Callable[[], Iterator[Finding]]]] = [
        (Check.CONNECTION, lambda: iter([version.about_version(told)])),
        (Check.CONNECTION, lambda: version.skew(told, seen.nodes)),
        (Check.RIGHTS, lambda: rights.rights(seen, cluster, namespaces)),
        (Check.STORAGE, partial(storage.storage, seen, cluster)),
        (Check.STORAGE, partial(mounts.mounts, seen)),
        (Check.NODES, lambda: nodes.nodes(seen.nodes)),
        (Check.NODES, lambda: nodes.plugins(seen, seen.nodes)),
        (Check.NODES, partial(nodes.runtime_classes, seen)),
        (Check.AGREEMENT, lambda: agreement.agreement(seen.nodes)),
        (Check.AGREEMENT, lambda: agreement.clocks(seen.bodies)),
        (Check.ADDRESSES, partial(addresses.addresses, seen, cluster)),
        (Check.FIGURES, partial(metrics.metrics, seen, cluster)),
        (Check.POOLS, lambda: (finding for examiner in _examiners for finding in examiner(cluster, seen))),
        (Check.ISOLATION, partial(isolation.isolation, seen, cluster)),
        (Check.ISOLATION, addresses.beside_berth),
    ]
    return [finding for check, look in looks for finding in findings_of_look(check, cluster, look)]


def findings_of_look(
    check: Check, cluster: Cluster, look: Callable[[], Iterator[Finding]]
) -> Iterator[Finding]:
    """Yield a look's findings; if it fails midway, yield the failure as the last one."""
    try:
        for finding in look():
            yield replace(finding, check=finding.check or check)
    except ClusterRefused as refused:
        if refused.status == 403:  # Check.RIGHTS names the missing right
            yield Finding(Level.WARN, _("This could not be checked: a permission is missing."), "", check)
        else:
            yield Finding(Level.FAIL, *explained(refused, cluster), check)
    except ClusterError as error:
        yield Finding(Level.FAIL, *explained(error, cluster), check)
