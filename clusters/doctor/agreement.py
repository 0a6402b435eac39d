"""Findings about nodes that run other versions than most: such a node fails in ways that nobody expects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from clusters.doctor.findings import Finding, named, ok, warn
from clusters.measures import parse_time
from clusters.nodes.inventory import NodeValues
from clusters.nodes.node_labels import driver_of, version_of
from clusters.transport import Objects

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SYSTEM: Mapping[str, StrOrPromise] = {
    "kubeletVersion": _lazy("Kubelets"),
    "containerRuntimeVersion": _lazy("Container runtimes"),
    "kernelVersion": _lazy("Kernels"),
    "osImage": _lazy("Operating systems"),
}
CLOCKS_APART = timedelta(seconds=30)


def agreement(found: Sequence[NodeValues]) -> Iterator[Finding]:
    seen = list(all_differences(found))
    yield from seen
    if found and not seen:
        yield ok(_("Kubelets, container runtimes, kernels and drivers are the same on all nodes."))


def all_differences(found: Sequence[NodeValues]) -> Iterator[Finding]:
    for key, label in SYSTEM.items():
        yield from differences(str(label), {node.name: node.system.get(key, "") for node in found})
    yield from differences(_("NVIDIA drivers"), {node.name: driver_of(node.labels) for node in found})
    cuda = {node.name: version_of(node.labels, "runtime", ("major", "minor")) for node in found}
    yield from differences(_("CUDA versions"), cuda)


def differences(what: str, values: Mapping[str, str]) -> Iterator[Finding]:
    """Report nodes that differ from most. Nodes without a value do not count."""
    by_value: defaultdict[str, list[str]] = defaultdict(list)
    for node, value in values.items():
        if value:
            by_value[value].append(node)
    if len(by_value) < 2:
        return
    usual = max(sorted(by_value), key=lambda value: len(by_value[value]))
    others = _("; ").join(
        _("%(value)s on %(nodes)s") % {"value": value, "nodes": named(nodes)}
        for value, nodes in sorted(by_value.items())
        if value != usual
    )
    yield warn(
        _("%(what)s differ: most nodes have %(usual)s, but %(others)s.")
        % {"what": what, "usual": usual, "others": others},
        _("Bring the nodes of one pool to one version: a run may be started on any of them."),
    )


def clocks(bodies: Objects) -> Iterator[Finding]:
    """Report fast clocks: a kubelet stamps its heartbeats by its own clock, so a fast one's lie in the future."""
    now = timezone.now()
    ahead = {}
    for body in bodies:
        told = body.get("status", {}).get("conditions") or []
        heard = (parse_time(one.get("lastHeartbeatTime")) for one in told)
        newest = max(filter(None, heard), default=None)
        if newest is not None and newest - now > CLOCKS_APART:
            ahead[body["metadata"]["name"]] = round((newest - now).total_seconds())
    if ahead:
        yield warn(
            _("The clocks of %(nodes)s are ahead of Berth's by up to %(seconds)d seconds.")
            % {"nodes": named(ahead), "seconds": max(ahead.values())},
            _("Synchronize the clocks of all machines, including Berth's, with NTP."),
        )
