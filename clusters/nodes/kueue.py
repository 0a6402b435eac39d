"""Resources that Kueue, if installed, hands out in a cluster: another queue for the same GPUs. Only read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusters.api import Api, list_if_served
from clusters.kinds import KUEUE, KUEUE_VERSIONS
from clusters.transport import Objects


@dataclass(frozen=True)
class Managed:
    """A resource that a queue of Kueue hands out on the nodes with these labels (none: on all)."""

    queue: str
    resource: str
    node_labels: Mapping[str, str]

    def on(self, labels: Mapping[str, str]) -> bool:
        return self.node_labels.items() <= labels.items()


def managed(api: Api) -> list[Managed]:
    if KUEUE not in api.groups():
        return []
    flavors, queues = _listed(api, "ResourceFlavor"), _listed(api, "ClusterQueue")
    labels = {body["metadata"]["name"]: body.get("spec", {}).get("nodeLabels") or {} for body in flavors}
    return list(_managed(queues, labels))


def _managed(queues: Objects, labels: Mapping[str, Mapping[str, str]]) -> Iterator[Managed]:
    """Yield what queues manage, without flavors that a queue names and nobody has made."""
    for queue in queues:
        for group in queue.get("spec", {}).get("resourceGroups") or []:
            for flavor in group.get("flavors") or []:
                if (of := labels.get(flavor["name"])) is not None:
                    for resource in flavor.get("resources") or []:
                        yield Managed(queue["metadata"]["name"], resource["name"], of)


def _listed(api: Api, kind: str) -> Objects:
    """List the kind in the newest version that has any objects."""
    served = (list_if_served(api, f"{kind}{version}") for version in KUEUE_VERSIONS)
    return next(filter(None, served), [])
