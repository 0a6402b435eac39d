"""Which uid of this machine a pod's processes have: one for each pod owner, far from every person's."""

import hashlib

from devcluster.resources import Obj

FIRST, COUNT = 700_000_000, 100_000_000


def host_uid(pod: Obj) -> int:
    """Stable over restarts of the pod, so that what is left on disk stays its own."""
    meta = pod["metadata"]
    owner = next((r["uid"] for r in meta.get("ownerReferences", []) if r.get("controller")), meta["uid"])
    digest = hashlib.sha256(f"{meta['namespace']}/{owner}".encode()).digest()
    return FIRST + int.from_bytes(digest[:6], "big") % COUNT
