"""Namespace that Berth itself runs in, if it runs in a cluster."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
USUAL_NAMESPACE = "berth"  # as in deploy/kubernetes


@lru_cache(maxsize=1)
def own_namespace() -> str:
    """Return the namespace that Kubernetes gives to each pod with a service account, or the usual one."""
    return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else USUAL_NAMESPACE
