"""Connections to clusters: one client per process and Cluster row, made when first needed.

It is made late, because a client must not be inherited over fork(). It is kept, because making a client costs a TLS
handshake and leaks when repeated. A changed row or kubeconfig file gives a new client.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from cryptography import x509
from django.conf import settings
from kubernetes import config
from kubernetes.client import ApiClient, Configuration

from accounts.credentials.secrets import Unreadable, decrypt
from accounts.errors import Invalid
from clusters.adding.kubeconfigs import PROGRAMS, chosen, kept
from clusters.api import Api
from clusters.errors import ClusterMisconfigured
from clusters.models import Cluster
from clusters.transport import Transport

# More than watches, log streams and threads together need: connections beyond it are not kept.
POOL_SIZE = 64

# Errors of the client library on a file that is no kubeconfig.
NO_KUBECONFIG = (AttributeError, LookupError, TypeError, ValueError)

Settings = tuple[int, str, str, str, int, str]

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
        elif cluster.connection == Cluster.Connection.PASTED:
            config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                yaml.safe_load(
                    kept(decrypt(cluster.kubeconfig))
                ),  # whoever wrote the row: no programs, no files
                client_configuration=configuration,
                persist_config=False,
            )
        else:
            _refuse_programs(cluster)
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=cluster.kubeconfig_path,
                context=cluster.context or None,
                client_configuration=configuration,
                persist_config=False,
            )
    except Invalid as refusal:
        raise ClusterMisconfigured(f"No connection to {cluster.slug}: {refusal.message}") from None
    except Unreadable as error:
        raise ClusterMisconfigured(
            f"No connection to {cluster.slug}: encrypted with another key: {error}"
        ) from None
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
    path, context, pasted = cluster.kubeconfig_path, cluster.context, cluster.kubeconfig
    return os.getpid(), cluster.connection, path, context, changed_at, pasted


def _refuse_programs(cluster: Cluster) -> None:
    """Refuse a kubeconfig that runs a program for its credentials, unless the operator allows it."""
    if settings.ALLOW_EXEC_PLUGINS:
        return
    kubeconfig = yaml.safe_load(Path(cluster.kubeconfig_path).read_text()) or {}
    user = chosen(kubeconfig, cluster.context, "user")
    starters = [key for key in PROGRAMS if user.get(key)]
    if starters:
        raise ClusterMisconfigured(
            f"The kubeconfig of {cluster.slug} gets its credentials through “{starters[0]}”, which runs a "
            "program on this server. Use a token or a client certificate, or set BERTH_ALLOW_EXEC_PLUGINS=1 "
            "if you trust that file."
        )


def _without_quotes(error: Exception) -> str:
    """Return the error's text without what the library quotes from the file, which may be a token."""
    return re.split(r"[\n{]", str(error), maxsplit=1)[0] or type(error).__name__


def ends_of_credentials(cluster: Cluster) -> list[tuple[str, datetime]]:
    """Return what of the cluster's kubeconfig ends by itself, and when: certificates, and a token that says so."""
    if cluster.connection == Cluster.Connection.IN_CLUSTER:
        return []
    return list(_ends(*_settings_of(cluster)[1:]))


@lru_cache(maxsize=64)
def _ends(
    connection: str, path: str, context: str, changed_at: int, pasted: str
) -> tuple[tuple[str, datetime], ...]:
    try:
        is_pasted = connection == Cluster.Connection.PASTED
        kubeconfig = yaml.safe_load(decrypt(pasted) if is_pasted else Path(path).read_text()) or {}
        context = "" if is_pasted else context
        user, its_cluster = (chosen(kubeconfig, context, part) for part in ("user", "cluster"))
    except (OSError, yaml.YAMLError, Unreadable, *NO_KUBECONFIG):
        return ()
    found = [
        ("client certificate", _certificate_ends(user, "client-certificate", path)),
        ("cluster CA", _certificate_ends(its_cluster, "certificate-authority", path)),
        ("token", _token_ends(user.get("token"))),
    ]
    return tuple((what, ends_at) for what, ends_at in found if ends_at is not None)


def _certificate_ends(section: dict[str, Any], key: str, path: str) -> datetime | None:
    try:
        if data := section.get(f"{key}-data"):
            pem = base64.b64decode(data)
        elif name := section.get(key):
            pem = (Path(path).parent / name).read_bytes()
        else:
            return None
        return min(one.not_valid_after_utc for one in x509.load_pem_x509_certificates(pem))
    except (OSError, ValueError, TypeError):
        return None


def _token_ends(token: Any) -> datetime | None:
    """Return the end that a JSON web token names. Others name none."""
    try:
        claims = str(token).split(".")[1]
        ends_at = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
        return datetime.fromtimestamp(float(ends_at), UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
