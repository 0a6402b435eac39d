"""Tests that the rights in deploy/kubernetes/rbac.yaml are enough on a real API, and that missing ones are named."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from clusters.connections import connect
from clusters.doctor import Level, examine
from clusters.models import Cluster
from clusters.permissions import NEEDS, Need
from tests.cast import NETWORKS
from tests.own_rights import OwnRights, without

LACKED = [
    pytest.param(need, verb, id=f"{verb} {need.resource}")
    for need in NEEDS
    if need.arises(served=())
    for verb in need.verbs
]

pytestmark = pytest.mark.django_db  # pools are rows


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
