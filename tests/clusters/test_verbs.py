"""Tests that remove each verb of each part's role in turn, and name what fails without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

from clusters.kinds import KINDS
from clusters.permissions import SECRETS_ROLE
from devcluster.testing.kube import PATCHES, Kube
from tests.deploy.used_rights import needs
from tests.own_rights import RBAC, OwnRights, rules_of, without

BINDING = {
    "metadata": {"name": "none"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": SECRETS_ROLE},
    "subjects": [{"kind": "ServiceAccount", "name": "none", "namespace": "default"}],
}


def taken_apart(right: str) -> tuple[str, str, str]:
    """Return verb, group and resource of a right as it is recorded."""
    verb, _, rest = right.partition(" ")
    group, _, resource = rest.partition("/")
    return verb, group, resource


def is_forbidden(account: Kube, right: str) -> bool:
    """Send a request that needs the right and changes nothing. Return True if RBAC refuses it."""
    verb, group, resource = taken_apart(right)
    plural, _, below = resource.partition("/")
    kind = next(one for one in KINDS.values() if (one.group, one.plural) == (group, plural))
    one, body = kind.path("default", "none", below or None), None
    method, path, query, sent = {
        "list": ("GET", kind.path(None), {"limit": "1"}, {}),
        "watch": ("GET", kind.path(None), {"watch": "1", "timeoutSeconds": "1"}, {}),
        "get": ("GET", one, {}, {}),
        "create": ("POST", kind.path("default"), {"dryRun": "All"}, {}),
        "patch": ("PATCH", one, {"dryRun": "All"}, {"Content-Type": PATCHES["merge"]}),
        "delete": ("DELETE", one, {"dryRun": "All"}, {}),
        "bind": ("POST", f"{RBAC}/namespaces/default/rolebindings", {"dryRun": "All"}, {}),
    }[verb]
    if method in ("POST", "PATCH"):
        body = BINDING if verb == "bind" else {"metadata": {"name": "none"}}
    try:
        account.open(method, path, body, sent, **query).close()
    except HTTPError as error:
        return error.code == 403
    return False


def until(forbidden: bool, account: Kube, right: str) -> None:
    """Wait: a real API server learns of changed roles late."""
    end = time.monotonic() + 60
    while is_forbidden(account, right) != forbidden:
        assert time.monotonic() < end, f"{right}: still {'allowed' if forbidden else 'forbidden'}"
        time.sleep(0.02)


@pytest.fixture
def rights(kubeconfig: str, tmp_path: Path) -> Iterator[OwnRights]:
    own = OwnRights(kubeconfig, tmp_path)
    yield own
    own.clear_away()


@pytest.mark.slow
@pytest.mark.parametrize("part", ["collector", "retire", "watcher", "worker"])
def test_without_a_verb_exactly_what_needs_it_fails(part: str, rights: OwnRights) -> None:
    """Other requests for the same resource go on: no verb stands in for another."""
    tests, account, failing = needs(part), Kube(rights.kubeconfig), {}
    for right in tests:
        verb, group, resource = taken_apart(right)
        # That role is bound for each tenant apart. Who holds its rights could bind it without the right to.
        rules = rules_of("secrets" if resource == "secrets" else part)
        beside = [other for other in tests if taken_apart(other)[1:] == (group, resource)]
        rights.change(rules)
        until(False, account, right)
        rights.change(without(rules, group, resource, verb))
        until(True, account, right)
        failing[right] = [tests[other] for other in beside if is_forbidden(account, other)]
    assert failing == {right: [test] for right, test in tests.items()}
