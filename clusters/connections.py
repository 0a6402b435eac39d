"""From a Cluster row to a connection: one client per process and cluster, made when first needed.

Made late, because a client must not be inherited over fork(); kept, because making one costs a TLS handshake
and leaks when repeated. A changed row or kubeconfig file gives a new one.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from django.conf import settings
from kubernetes import config
from kubernetes.client import ApiClient, Configuration

from clusters.api import Api
from clusters.errors import ClusterMisconfigured
from clusters.models import Cluster
from clusters.transport import Transport

# Above watches, log streams and threads together: beyond it, connections are made and thrown away.
POOL_SIZE = 64

# What the client library stumbles over in a file of another kind.
NO_KUBECONFIG = (AttributeError, LookupError, TypeError, ValueError)

Settings = tuple[int, str, str, str, int]

_lock = threading.Lock()
_apis: dict[UUID, tuple[Settings, Api]] = {}


def api_for(cluster: Cluster) -> Api:
    """The cluster's API. Makes no request; raises ClusterMisconfigured where no connection can be made."""
    current = _settings_of(cluster)
    with _lock:
        known = _apis.get(cluster.pk)
        if known is None or known[0] != current:
            known = _apis[cluster.pk] = current, connect(cluster)
    return known[1]


def connect(cluster: Cluster) -> Api:
    """A connection of its own, not kept."""
    return Api(transport_to(cluster))


def transport_to(cluster: Cluster, *, within_seconds: float | None = None) -> Transport:
    """Perhaps one whose requests must all be answered within a while."""
    configuration = Configuration()
    try:
        if cluster.connection == Cluster.Connection.IN_CLUSTER:
            config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            _refuse_programs(cluster)
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=cluster.kubeconfig_path,
                context=cluster.context or None,
                client_configuration=configuration,
                persist_config=False,
            )
    except (config.ConfigException, OSError, yaml.YAMLError, *NO_KUBECONFIG) as error:
        raise ClusterMisconfigured(f"No connection to {cluster.slug}: {_without_quotes(error)}") from None
    configuration.connection_pool_maxsize = POOL_SIZE
    configuration.retries = False  # urllib3's own retries would hide what we decide about
    client = ApiClient(configuration)
    client.user_agent = "berth"
    return Transport(client, within_seconds=within_seconds)


def _settings_of(cluster: Cluster) -> Settings:
    """What a connection depends on. The process id is part of it: a forked child connects anew."""
    try:
        changed_at = Path(cluster.kubeconfig_path).stat().st_mtime_ns if cluster.kubeconfig_path else 0
    except OSError:
        changed_at = 0
    return os.getpid(), cluster.connection, cluster.kubeconfig_path, cluster.context, changed_at


def _refuse_programs(cluster: Cluster) -> None:
    """A kubeconfig may name a program to run for credentials: only where the operator allows it."""
    if settings.ALLOW_EXEC_PLUGINS:
        return
    user = _user_of(yaml.safe_load(Path(cluster.kubeconfig_path).read_text()) or {}, cluster.context)
    starters = [key for key in ("exec", "auth-provider") if user.get(key)]
    if starters:
        raise ClusterMisconfigured(
            f"The kubeconfig of {cluster.slug} gets its credentials through “{starters[0]}”, which runs a "
            "program on this server. Use a token or a client certificate, or set BERTH_ALLOW_EXEC_PLUGINS=1 "
            "if you trust that file."
        )


def _user_of(kubeconfig: dict[str, Any], context: str) -> dict[str, Any]:
    def named(section: str, name: str) -> dict[str, Any]:
        return next((entry for entry in kubeconfig.get(section) or [] if entry.get("name") == name), {})

    chosen = named("contexts", context or kubeconfig.get("current-context", "")).get("context") or {}
    return named("users", chosen.get("user", "")).get("user") or {}


def _without_quotes(error: Exception) -> str:
    """Without what the client library quotes from the file, which may be a token."""
    return re.split(r"[\n{]", str(error), maxsplit=1)[0] or type(error).__name__
