"""Uids of pods' processes on this machine: one for each pod owner, far from the uids of people."""

import hashlib

from devcluster.resources import Obj

FIRST, COUNT = 700_000_000, 100_000_000


def host_uid(pod: Obj) -> int:
    """Return the pod's uid, stable over its restarts, so that its files on disk stay its own."""
    meta = pod["metadata"]
    owner = next((r["uid"] for r in meta.get("ownerReferences", []) if r.get("controller")), meta["uid"])
    digest = hashlib.sha256(f"{meta['namespace']}/{owner}".encode()).digest()
    return FIRST + int.from_bytes(digest[:6], "big") % COUNT
