"""Findings about versions: whether this Kubernetes was tried, and whether the kubelets are near enough to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from clusters.doctor.findings import Finding, fail, named, ok, warn
from clusters.nodes.inventory import NodeValues

OLDEST_MINOR, NEWEST_MINOR = 30, 36
# Kubernetes' own policy: a kubelet is never newer than the API, and at most three minor versions older.
MOST_BEHIND = 3


def about_version(version: str) -> Finding:
    minor = minor_of(version)
    if minor is None or not OLDEST_MINOR <= minor <= NEWEST_MINOR:
        return warn(
            _("Kubernetes %(version)s has not been tested with Berth.") % {"version": version or "?"},
            _("Tested: 1.%(oldest)s to 1.%(newest)s.") % {"oldest": OLDEST_MINOR, "newest": NEWEST_MINOR},
        )
    return ok(_("Kubernetes %(version)s answers.") % {"version": version})


def minor_of(version: str) -> int | None:
    match = re.match(r"v1\.(\d+)", version)
    return int(match[1]) if match else None


def skew(version: str, nodes: Sequence[NodeValues]) -> Iterator[Finding]:
    of_api = minor_of(version)
    minors = {node.name: minor_of(node.system.get("kubeletVersion", "")) for node in nodes}
    if of_api is None:
        return
    newer = [name for name, minor in minors.items() if minor is not None and minor > of_api]
    older = [name for name, minor in minors.items() if minor is not None and minor < of_api - MOST_BEHIND]
    if newer:
        yield fail(
            _("The kubelets of %(nodes)s are newer than the cluster's API (%(version)s).")
            % {"nodes": named(newer), "version": version},
            _("Update the control plane first: Kubernetes does not work the other way round."),
        )
    if older:
        yield fail(
            _("The kubelets of %(nodes)s are too old for the cluster's API (%(version)s).")
            % {"nodes": named(older), "version": version},
            _("Update them: Kubernetes allows at most three minor versions behind."),
        )
