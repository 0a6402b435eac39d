"""Load of nodes and health of Ceph, from a Prometheus that has node_exporter and Ceph's exporter. Pure.

Every figure is one expression, so that Prometheus sums up over cores, disks and network cards. The name of a node
comes from node_exporter's own `nodename`, or from the labels that its scrape adds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from monitoring.dcgm.prometheus import Series
from monitoring.health.rules import About, Verdict

_NAMED = " * on (instance, job) group_left (nodename) node_uname_info"
_BY = "by (instance, job)"
_DISKS = '{device!~"(loop|ram|zram|dm-|sr).*"}'
_FILES = (
    '{fstype!~"tmpfs|ramfs|overlay|squashfs|nsfs|iso9660|fuse.*|nfs.*|ceph.*",'
    'mountpoint!~"/var/lib/kubelet/.*|/run/.*"}'
)
_CARDS = '{device!~"lo|(veth|cali|cni|docker|flannel|cilium|lxc|br-|virbr|kube|tunl|vxlan).*"}'


class Figure(NamedTuple):
    name: str
    expression: str


def _rate(metric: str, of: str, sums: str = "sum") -> str:
    return f"{sums} {_BY} (rate({metric}{of}[5m])){_NAMED}"


NODES = (
    Figure("cpu_percent", f'100 * (1 - avg {_BY} (rate(node_cpu_seconds_total{{mode="idle"}}[5m]))){_NAMED}'),
    Figure(
        "memory_percent", f"100 * (1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes){_NAMED}"
    ),
    Figure(
        "disk_percent",
        f"100 * max {_BY} (1 - node_filesystem_avail_bytes{_FILES} / node_filesystem_size_bytes{_FILES}){_NAMED}",
    ),
    Figure("disk_time_percent", f"100 * {_rate('node_disk_io_time_seconds_total', _DISKS, 'max')}"),
    Figure("disk_read_bytes", _rate("node_disk_read_bytes_total", _DISKS)),
    Figure("disk_write_bytes", _rate("node_disk_written_bytes_total", _DISKS)),
    Figure("network_in_bytes", _rate("node_network_receive_bytes_total", _CARDS)),
    Figure("network_out_bytes", _rate("node_network_transmit_bytes_total", _CARDS)),
    Figure("network_in_errors", _rate("node_network_receive_errs_total", _CARDS)),
    Figure("network_out_errors", _rate("node_network_transmit_errs_total", _CARDS)),
)
STORAGE = (
    Figure("status", "max (ceph_health_status)"),
    Figure("checks", "max by (name, severity) (ceph_health_detail) == 1"),
    Figure(
        "versions", "count by (ceph_version) (ceph_osd_metadata or ceph_mon_metadata or ceph_mds_metadata)"
    ),
    Figure("read_bytes", "sum (rate(ceph_osd_op_r_out_bytes[5m]))"),
    Figure("write_bytes", "sum (rate(ceph_osd_op_w_in_bytes[5m]))"),
    Figure("used_percent", "100 * sum (ceph_cluster_total_used_raw_bytes) / sum (ceph_cluster_total_bytes)"),
)
# Labels that may name the node, in the order of trust.
NODE_LABELS = ("nodename", "node", "kubernetes_node", "instance")


def node_of(labels: Mapping[str, str], known: frozenset[str]) -> str:
    """Return the node of a series; "" if it is of no node of the cluster."""
    for name in NODE_LABELS:
        value = labels.get(name, "")
        for candidate in (value, value.partition(":")[0]):
            if candidate in known:
                return candidate
    return ""


def of_nodes(told: Mapping[str, Iterable[Series]], known: frozenset[str]) -> dict[str, dict[str, float]]:
    """Return each node's newest figures, by name."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for name, series in told.items():
        for one in series:
            if one.samples and (node := node_of(one.labels, known)):
                found[node][name] = round(max(one.samples[-1][1], 0.0), 1)
    return dict(found)


def of_ceph(told: Mapping[str, Iterable[Series]]) -> dict[str, Any]:
    """Return what Ceph's exporter says; empty without one."""
    found: dict[str, Any] = {}
    for name in ("status", "read_bytes", "write_bytes", "used_percent"):
        for one in told.get(name, ()):
            if one.samples:
                found[name] = round(one.samples[-1][1], 1)
    if "status" not in found:
        return {}
    found["checks"] = sorted(
        {one.labels.get("name", "") for one in told.get("checks", ()) if one.samples} - {""}
    )[:20]
    versions = {one.labels.get("ceph_version", "") for one in told.get("versions", ()) if one.samples}
    found["versions"] = sorted(
        version.removeprefix("ceph version ").split(" ")[0] for version in versions - {""}
    )
    return found


# --- what is wrong

# Percent above which a node is overloaded, and how long it has to last: a training may well use all cores for a while.
# Disks: the kubelet evicts pods below 10 to 15% by default.
OVER: dict[str, tuple[float, str]] = {
    "cpu_percent": (97, "cpu"),
    "memory_percent": (93, "memory"),
    "disk_percent": (88, "disk"),
    "disk_time_percent": (97, "disk time"),
}
ERRORS_PER_SECOND = 1.0
CEPH = "ceph_unwell"
CEPH_ERROR = 2
LASTS: dict[str, timedelta] = {
    "cpu": timedelta(minutes=30),
    "memory": timedelta(minutes=5),
    "disk": timedelta(0),
    "disk time": timedelta(minutes=30),
}


def verdicts_of_node(node: str, figures: Mapping[str, float]) -> Iterator[Verdict]:
    for name, (limit, what) in OVER.items():
        if figures.get(name, 0.0) >= limit:
            yield Verdict(
                About.LOAD, f"{node} {what}", "node_overloaded", data={"what": what, "percent": int(limit)}
            )
    errors = figures.get("network_in_errors", 0.0) + figures.get("network_out_errors", 0.0)
    if errors >= ERRORS_PER_SECOND:
        yield Verdict(About.LOAD, node, "node_network_faulty", data={"count": _rounded(errors)})


def _rounded(errors: float) -> int:
    """Return the power of ten below the figure: a trouble shall not change at every look."""
    return int("1" + "0" * (len(str(int(errors))) - 1))


def verdicts_of_ceph(figures: Mapping[str, Any]) -> Iterator[Verdict]:
    """Yield what Ceph reports: an error at once, a warning if it lasts (`lasting.py`)."""
    if figures.get("status", 0) >= 1:
        checks = ", ".join(figures.get("checks") or []) or "HEALTH_WARN"
        data = {"checks": checks, "status": "error" if figures["status"] >= CEPH_ERROR else "warning"}
        yield Verdict(About.LOAD, "Ceph", CEPH, data=data)
