"""Sign-ons to registries of images: kept encrypted with their cluster, and as one Secret in each namespace of Berth.

A tenant's namespace gets it before its first pod (quotas/namespaces). The watcher keeps it there afterwards, and brings
it to the namespaces of tests, in which the worker has no right to Secrets.
"""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from accounts.credentials.secrets import Unreadable, decrypt, encrypt
from accounts.models import Tenant
from clusters.api import Api
from clusters.errors import ClusterRefused
from clusters.isolation import granting
from clusters.labels import HASH, INSTANCE, MANAGED_BY, TENANT, digest_of, instance_selector
from clusters.models import Cluster, Installation
from clusters.references import valid_prefixes

logger = logging.getLogger(__name__)

Body = dict[str, Any]

NAME = "berth-registries"  # of the Secret
KEPT = "kept"  # in place of a password: the one that is stored
MOST, LONGEST = 50, 8192  # sign-ons of a cluster, and characters of a user name or a password
# Container runtimes know Docker Hub by the second name, or by both.
HUB, HUB_NAMES = "docker.io", ("docker.io", "https://index.docker.io/v1/")

_of_tests: list[Callable[[UUID], Iterable[str]]] = []


def register(namespaces: Callable[[UUID], Iterable[str]]) -> None:
    """Add what names the namespaces of an installation's tests. The rooms above call this in their `apps.py`."""
    _of_tests.append(namespaces)


@dataclass(frozen=True)
class SignOn:
    host: str  # with a path if it is for a part of the registry
    username: str
    password: str = field(repr=False)


def sign_ons(cluster: Cluster) -> list[SignOn]:
    """Return the cluster's sign-ons. Raises Unreadable if they were encrypted with a key that is not known any more."""
    return [SignOn(*one) for one in json.loads(decrypt(cluster.registries))] if cluster.registries else []


def known(cluster: Cluster) -> list[SignOn]:
    """Return the sign-ons; none if they cannot be read any more."""
    try:
        return sign_ons(cluster)
    except Unreadable:
        return []


def lines(found: Iterable[SignOn]) -> str:
    """Return sign-ons as they are entered, one a line, without their passwords."""
    return "\n".join(f"{one.host} {one.username} {KEPT}" for one in found)


def parsed(text: str, stored: Sequence[SignOn]) -> list[SignOn]:
    """Return the sign-ons of lines HOST USER PASSWORD. Raise ValidationError, which never quotes a password."""
    passwords = {(one.host, one.username): one.password for one in stored}
    found = []
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        host, username, password = [*line.split(None, 2), "", ""][:3]
        valid_prefixes(host)
        if not password:
            raise ValidationError(_("Write a host, a user name and a password or token on each line."))
        if max(len(username), len(password)) > LONGEST or "\0" in line or ":" in username:
            raise ValidationError(_("The user name or password for %(host)s is none.") % {"host": host})
        if password == KEPT:
            if (host, username) not in passwords:
                text = _("No password of %(user)s for %(host)s is stored. Enter it.")
                raise ValidationError(text % {"user": username, "host": host})
            password = passwords[host, username]
        found.append(SignOn(host, username, password))
    if len(found) > MOST:
        raise ValidationError(_("Use at most %(most)d lines."), params={"most": MOST})
    if twice := [host for host, count in Counter(one.host for one in found).items() if count > 1]:
        raise ValidationError(_("%(host)s is there twice. Keep one.") % {"host": twice[0]})
    return found


def sealed(found: Sequence[SignOn]) -> str:
    """Return sign-ons as the cluster keeps them, encrypted."""
    return encrypt(json.dumps([(one.host, one.username, one.password) for one in found])) if found else ""


def pull_secrets(cluster: Cluster, *also: Iterable[str]) -> Body:
    """Return the part of a pod's spec that names what its images are pulled with. `also`: Secrets that pools name."""
    own = [NAME] if cluster.registries else []
    names = dict.fromkeys([*own, *cluster.image_pull_secrets, *(name for names in also for name in names)])
    return {"imagePullSecrets": [{"name": name} for name in names]} if names else {}


def secret(cluster: Cluster, namespace: str, labels: Mapping[str, str]) -> Body | None:
    """Return the Secret of a namespace; None if there is nothing to sign on to, or it cannot be read."""
    if not (found := known(cluster)):
        return None
    auths: dict[str, dict[str, str]] = {}
    for one in found:
        auth = base64.b64encode(f"{one.username}:{one.password}".encode()).decode()
        entry = {"username": one.username, "password": one.password, "auth": auth}
        auths |= dict.fromkeys(HUB_NAMES if one.host == HUB else (one.host,), entry)
    config = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": {HASH: digest(cluster)},
        },
        "data": {".dockerconfigjson": config},
    }


def digest(cluster: Cluster) -> str:
    """Return a digest of the sign-ons as they are encrypted: nobody can try passwords against it."""
    return digest_of(cluster.registries)


def places() -> set[str]:
    """Return the names of the namespaces that get the Secret. Labels alone prove nothing: others may set them."""
    tests = {name for named in _of_tests for name in named(Installation.current_id())}
    return tests | {tenant.namespace for tenant in Tenant.objects.only("slug")}


def refresh(cluster: Cluster, api: Api) -> None:
    """Make, change or delete the Secret in all namespaces of Berth, as the row says.

    Raises ClusterError. A namespace that refuses keeps it from no other.
    """
    own, refusals = places(), []
    for namespace in api.list("Namespace", labels=instance_selector()):
        name, labels = namespace["metadata"]["name"], namespace["metadata"]["labels"]
        try:
            if not namespace["metadata"].get("deletionTimestamp"):
                _refresh(cluster, name, labels, api, is_own=name in own)
        except ClusterRefused as refused:
            logger.warning("%s: the sign-ons to registries are not as entered: %s", name, refused)
            refusals.append(refused)
    if refusals:
        raise refusals[0]


def _refresh(cluster: Cluster, namespace: str, labels: Mapping[str, str], api: Api, *, is_own: bool) -> None:
    own = {name: labels[name] for name in (MANAGED_BY, INSTANCE, TENANT) if name in labels}
    wanted = secret(cluster, namespace, own) if is_own else None
    try:
        there = _there(namespace, api)
    except ClusterRefused as refused:
        if refused.status != 403 or not cluster.secret_accounts:
            raise
        if wanted is None:
            if not cluster.registries:
                logger.warning("%s: if the Secret %s is there, delete it: Berth may not", namespace, NAME)
            return
        api.apply(granting.role_binding(cluster, namespace, own))
        granting.wait(namespace, api)
        there = None
    if wanted is not None and (there is None or _digest_in(there) != digest(cluster)):
        api.apply(wanted)
    elif there is not None and not (cluster.registries and is_own):
        api.delete("Secret", namespace, NAME, uid=there["metadata"]["uid"])


def _there(namespace: str, api: Api) -> Body | None:
    """Return the metadata of the Secret: its values never leave the cluster for this."""
    named = {"metadata.name": NAME}
    found = api.each(
        "Secret", namespace=namespace, labels=instance_selector(), fields=named, metadata_only=True
    )
    return next(iter(found), None)


def _digest_in(body: Body) -> str:
    return str((body["metadata"].get("annotations") or {}).get(HASH, ""))
