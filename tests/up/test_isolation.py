"""Isolation of the cluster that `make up` begins with: a trial has none and says so, a real one tells its networks."""

from __future__ import annotations

import pytest

from clusters.isolation.networks import missing
from clusters.models import Cluster
from portal.up import seed
from tests.cluster_fixtures import kubeconfig

__all__ = ["kubeconfig"]

pytestmark = pytest.mark.django_db


def test_a_trial_runs_without_isolation_also_one_that_was_begun_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BERTH_DEVCLUSTER_PORT", "1")
    monkeypatch.setenv("KUBECONFIG", "/trial")
    cluster = seed.expected_cluster()
    assert (cluster.slug, cluster.without_isolation) == (seed.TRIAL_CLUSTER, True)
    cluster.without_isolation = False
    cluster.save()
    assert seed.refresh_cluster()
    assert Cluster.objects.get().without_isolation


@pytest.mark.parametrize("chosen", [True, False])
def test_what_an_admin_chose_for_a_real_cluster_outlives_a_restart(
    monkeypatch: pytest.MonkeyPatch, chosen: bool
) -> None:
    monkeypatch.delenv("BERTH_DEVCLUSTER_PORT", raising=False)
    monkeypatch.setenv("KUBECONFIG", "/real")
    cluster = seed.expected_cluster()
    assert not cluster.without_isolation
    cluster.without_isolation = chosen
    cluster.save()
    assert seed.refresh_cluster()
    assert Cluster.objects.get().without_isolation == chosen


def test_a_real_cluster_that_does_not_tell_its_networks_runs_without_isolation_and_that_is_printed(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: str
) -> None:
    monkeypatch.delenv("BERTH_DEVCLUSTER_PORT", raising=False)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    cluster = seed.expected_cluster()
    seed.find_networks(cluster)
    assert cluster.found_networks["services"]
    assert set(missing(cluster)) == {
        "pod_cidrs",
        "api_cidrs",
    }  # the embedded cluster has no networks of those
    assert cluster.without_isolation
    assert any("no isolation of tenants" in line for line in seed.words_of(cluster, []))


def test_one_whose_networks_are_known_is_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BERTH_DEVCLUSTER_PORT", raising=False)
    monkeypatch.setenv("KUBECONFIG", "/real")
    cluster = seed.expected_cluster()
    assert not any("isolation" in line for line in seed.words_of(cluster, []))
