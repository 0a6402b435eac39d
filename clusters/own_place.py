"""Where Berth itself runs, when that is in a cluster."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
USUAL_NAMESPACE = "berth"  # of deploy/kubernetes


@lru_cache(maxsize=1)
def own_namespace() -> str:
    """As Kubernetes tells each pod that has a service account."""
    return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else USUAL_NAMESPACE
