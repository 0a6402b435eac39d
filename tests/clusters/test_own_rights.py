"""Tests that the rights in deploy/kubernetes are what a real API needs, and that missing ones are named."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from clusters.connections import connect
from clusters.doctor import Level, examine
from clusters.kinds import KINDS
from clusters.models import Cluster
from clusters.permissions import NEEDS, SECRETS_ROLE, Need
from devcluster.testing.kube import PATCHES, Kube
from tests.cast import NETWORKS
from tests.own_rights import RBAC, OwnRights, needs, rules_of, without

LACKED = [
    pytest.param(need, verb, id=f"{verb} {need.resource}")
    for need in NEEDS
    if need.arises(served=())
    for verb in need.verbs
]

BINDING = {
    "metadata": {"name": "none"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": SECRETS_ROLE},
    "subjects": [{"kind": "ServiceAccount", "name": "none", "namespace": "default"}],
}

pytestmark = pytest.mark.django_db  # pools are rows


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


@pytest.fixture(scope="module")
def rights(kubeconfig: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRights]:
    own = OwnRights(kubeconfig, tmp_path_factory.mktemp("own"))
    yield own
    own.clear_away()


@pytest.fixture
def cluster(rights: OwnRights) -> Iterator[Cluster]:
    """Cluster reached with the rights of Berth's own account."""
    path = str(rights.kubeconfig)
    yield Cluster(slug="own", connection="kubeconfig", kubeconfig_path=path, **NETWORKS)
    rights.change(rights.rules)


def comes_to(cluster: Cluster, *lacked: str) -> None:
    """Wait until doctor finds exactly these rights missing: a real API server learns of changed roles late."""
    end = time.monotonic() + 60
    while (found := list(failures(cluster))) != [f"Berth is not allowed to {right}." for right in lacked]:
        assert time.monotonic() < end, found
        time.sleep(0.02)


def failures(cluster: Cluster) -> Iterator[str]:
    """Yield failures, without those that follow from a missing right."""
    for finding in examine(cluster):
        if finding.level == Level.FAIL and "is forbidden" not in finding.message:
            yield finding.message


def test_the_manifests_rights_are_all_that_doctor_asks_for(cluster: Cluster) -> None:
    comes_to(cluster)
    assert not [found for found in examine(cluster) if found.level == Level.FAIL]


@pytest.mark.parametrize(("need", "verb"), LACKED[:: len(LACKED) // 6])
def test_exactly_the_missing_right_is_named(
    cluster: Cluster, rights: OwnRights, need: Need, verb: str
) -> None:
    rights.change(without(rights.rules, need.group, need.resource, verb))
    comes_to(cluster, f"{verb} {need.resource}")


def test_rights_that_were_not_granted_are_refused(cluster: Cluster, rights: OwnRights) -> None:
    comes_to(cluster)
    with pytest.raises(Exception, match="cannot delete resource"):
        connect(cluster).delete("Namespace", None, "kube-public")


# --- Each verb in turn


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
