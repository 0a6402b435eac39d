"""CPU and memory of runs' pods, which the watcher reads from metrics-server, into the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusters.models import Cluster, PodUsage
from clusters.nodes.pod_metrics import Measured
from monitoring.figures import store
from monitoring.figures.store import Sample, TrackIdentity

MIB = 1 << 20


def on_pods_measured(cluster: Cluster, measured: Sequence[Measured], **_: object) -> None:
    store.put(_samples(cluster, measured))


def _samples(cluster: Cluster, measured: Sequence[Measured]) -> Iterator[Sample]:
    """Yield samples of pods that run for a workspace. Other pods of Berth (GPU tests) and removed pods have none."""
    ours = PodUsage.objects.filter(cluster=cluster, run__isnull=False)
    rows = ours.values_list("namespace", "name", "node", "run")
    runs = {(namespace, name): (node, run) for namespace, name, node, run in rows}
    for pod in measured:
        node, run = runs.get((pod.namespace, pod.pod), ("", None))
        if run is not None:
            yield Sample(
                TrackIdentity(cluster.pk, node, runs=frozenset({run})),
                pod.at.timestamp(),
                use=pod.cpu_millicores / 1000,
                memory_mib=pod.memory_bytes / MIB,
            )
