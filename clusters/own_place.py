"""Place of Berth itself: its namespace, and whether JupyterLab of a cluster is reached from there alone."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from django.conf import settings

from clusters.models import Cluster

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
USUAL_NAMESPACE = "berth"  # as in deploy/kubernetes
SERVICE_ACCOUNT_USER = "system:serviceaccount:"  # then namespace and name


@lru_cache(maxsize=1)
def own_namespace() -> str:
    """Return the namespace that Kubernetes gives to each pod with a service account, or the usual one."""
    return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else USUAL_NAMESPACE


def own_account(part: str) -> str:
    """Return the user name of the service account of one of Berth's parts in the cluster that it runs in."""
    return f"{SERVICE_ACCOUNT_USER}{own_namespace()}:{settings.SERVICE_ACCOUNTS[part]}"


def is_inside(cluster: Cluster) -> bool:
    """Return True if Berth's own pods run in this cluster."""
    return cluster.connection == Cluster.Connection.IN_CLUSTER


def only_berth_opens_jupyter(cluster: Cluster) -> bool:
    """Return True if nobody but Berth's pods has to reach JupyterLab: people have no address of it, or need none.

    A Berth outside of the cluster comes from an address that no setting names: it has no port to itself.
    """
    has_no_address = cluster.exposure != Cluster.Exposure.LOAD_BALANCER
    return is_inside(cluster) and (has_no_address or bool(settings.WORKSPACE_DOMAIN))
