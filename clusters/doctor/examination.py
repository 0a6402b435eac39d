"""One examination: every look in turn, within one time for all requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.connections import transport_to
from clusters.doctor import addresses, agreement, isolation, metrics, nodes, rights, storage, version
from clusters.doctor.findings import Check, Finding, Level
from clusters.doctor.seen import Seen
from clusters.errors import ClusterError, ClusterRefused
from clusters.faults import explained
from clusters.models import Cluster
from clusters.signals import examined

WITHIN_SECONDS = 20.0  # somebody waits for the page


def examine(cluster: Cluster, namespaces: Sequence[str] = ()) -> list[Finding]:
    """Every finding, the good ones too. Nothing more is looked at where there is no connection.

    A right that is missing is also looked for in these namespaces: it may be granted there and not everywhere.
    """
    try:
        seen = Seen(transport_to(cluster, within_seconds=WITHIN_SECONDS))
        told = seen.version()
    except ClusterError as error:
        message, hint = explained(error, cluster)
        return [Finding(Level.FAIL, message, hint, Check.CONNECTION)]
    looks: list[tuple[Check, Callable[[], Iterator[Finding]]]] = [
        (Check.CONNECTION, lambda: iter([version.about_version(told)])),
        (Check.CONNECTION, lambda: version.skew(told, seen.nodes)),
        (Check.RIGHTS, lambda: rights.rights(seen, cluster, namespaces)),
        (Check.STORAGE, partial(storage.storage, seen, cluster)),
        (Check.NODES, lambda: nodes.nodes(seen.nodes)),
        (Check.NODES, lambda: nodes.plugins(seen, seen.nodes)),
        (Check.NODES, partial(nodes.runtime_classes, seen)),
        (Check.AGREEMENT, lambda: agreement.agreement(seen.nodes)),
        (Check.AGREEMENT, lambda: agreement.clocks(seen.bodies)),
        (Check.ADDRESSES, partial(addresses.addresses, seen, cluster)),
        (Check.FIGURES, partial(metrics.metrics, seen, cluster)),
        (Check.POOLS, partial(from_above, seen, cluster)),
        (Check.ISOLATION, lambda: iter([isolation.isolation(cluster)])),
    ]
    return [finding for check, look in looks for finding in of(check, cluster, look)]


def of(check: Check, cluster: Cluster, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a look found before it failed is told, too."""
    try:
        for finding in look():
            yield replace(finding, check=finding.check or check)
    except ClusterRefused as refused:
        if refused.status == 403:  # the right is named as missing already
            yield Finding(Level.WARN, _("This could not be looked at: a right is missing."), "", check)
        else:
            yield Finding(Level.FAIL, *explained(refused, cluster), check)
    except ClusterError as error:
        yield Finding(Level.FAIL, *explained(error, cluster), check)


def from_above(api: Api, cluster: Cluster) -> Iterator[Finding]:
    answers: list[tuple[Any, Any]] = examined.send(sender=Cluster, cluster=cluster, api=api)
    for _receiver, findings in answers:
        yield from findings
