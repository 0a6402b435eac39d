"""Connections to clusters: one client per process and Cluster row, made when first needed.

It is made late, because a client must not be inherited over fork(). It is kept, because making a client costs a TLS
handshake and leaks when repeated. A changed row or kubeconfig file gives a new client.
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

# More than watches, log streams and threads together need: connections beyond it are not kept.
POOL_SIZE = 64

# Errors of the client library on a file that is no kubeconfig.
NO_KUBECONFIG = (AttributeError, LookupError, TypeError, ValueError)

Settings = tuple[int, str, str, str, int]

_lock = threading.Lock()
_apis: dict[UUID, tuple[Settings, Api]] = {}


def api_for(cluster: Cluster) -> Api:
    """Return the cluster's API. Makes no request; raises ClusterMisconfigured if no connection can be made."""
    current = _settings_of(cluster)
    with _lock:
        known = _apis.get(cluster.pk)
        if known is None or known[0] != current:
            known = _apis[cluster.pk] = current, connect(cluster)
    return known[1]


def connect(cluster: Cluster) -> Api:
    """Return a new connection that is not kept."""
    return Api(transport_to(cluster))


def transport_to(cluster: Cluster, *, within_seconds: float | None = None) -> Transport:
    """Return a new transport. `within_seconds`: time limit for all of its requests together."""
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
    configuration.retries = False  # Transport decides about retries, not urllib3
    client = ApiClient(configuration)
    client.user_agent = "berth"
    return Transport(client, within_seconds=within_seconds)


def _settings_of(cluster: Cluster) -> Settings:
    """Return what a connection depends on, with the process id: a forked child connects anew."""
    try:
        changed_at = Path(cluster.kubeconfig_path).stat().st_mtime_ns if cluster.kubeconfig_path else 0
    except OSError:
        changed_at = 0
    return os.getpid(), cluster.connection, cluster.kubeconfig_path, cluster.context, changed_at


def _refuse_programs(cluster: Cluster) -> None:
    """Refuse a kubeconfig that runs a program for its credentials, unless the operator allows it."""
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
    """Return the error's text without what the library quotes from the file, which may be a token."""
    return re.split(r"[\n{]", str(error), maxsplit=1)[0] or type(error).__name__
