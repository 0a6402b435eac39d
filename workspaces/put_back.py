"""What a hand took off Berth's objects is put back: labels, by which everything is found, and the pod's finalizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clusters.api import Api
from clusters.labels import RUN

from .manifests import FINALIZER
from .observe import Object, Seen, going
from .wanted import Wanted


def labels_back(body: Object, wanted: Mapping[str, str], api: Api) -> Object:
    """The object with its labels."""
    metadata = body["metadata"]
    if wanted.items() <= (metadata.get("labels") or {}).items():
        return body
    labels = {"metadata": {"labels": dict(wanted)}}
    return api.merge_patch(body["kind"], metadata["namespace"], metadata["name"], labels) or body


def pod_back(seen: Seen, wanted: Wanted, api: Api) -> Seen:
    """The run's pod as it was made. It is known by its uid when nothing else tells whose it is."""
    running = None if wanted.workspace.pod_ended else wanted.workspace.pod_uid

    def back(pod: Object) -> Object:
        if pod["metadata"]["uid"] != running:
            return pod
        pod = labels_back(pod, {**wanted.labels, RUN: str(wanted.run)}, api)
        if not going(pod):
            finalizer_back(pod, api)
        return pod

    return replace(seen, pods=[back(pod) for pod in seen.pods])


def finalizer_back(pod: Object, api: Api) -> None:
    """Without it the pod could vanish before its end was seen."""
    metadata = pod["metadata"]
    others = metadata.get("finalizers") or []
    if FINALIZER in others:
        return
    operation = {"op": "add", "path": "/metadata/finalizers", "value": [*others, FINALIZER]}
    unchanged = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
    api.json_patch("Pod", metadata["namespace"], metadata["name"], [unchanged, operation])
