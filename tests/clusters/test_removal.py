"""Tests of a cluster that an admin deletes while its watch still writes what it sees there."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from clusters.models import Cluster, Node, Watcher
from quotas.models import Pool
from tests.shared.concurrency import whenever_deleting

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="old", name="Old")


def test_what_its_watch_wrote_meanwhile_is_deleted_too(cluster: Cluster) -> None:
    def seen() -> None:
        now = {"seen_at": timezone.now()}
        Watcher.objects.get_or_create(cluster_id=cluster_id, kind="Node", defaults=now)

    cluster_id = cluster.pk
    with whenever_deleting("clusters_cluster", seen), transaction.atomic():  # as the admin page does
        cluster.delete()
    assert not Cluster.objects.exists() and not Watcher.objects.exists()


def test_one_that_is_never_let_go_stays_as_it_was_and_says_so(cluster: Cluster) -> None:
    cluster_id = cluster.pk

    def seen() -> None:
        Node.objects.create(cluster_id=cluster_id, name=f"n-{timezone.now()}")

    with whenever_deleting("clusters_cluster", seen), pytest.raises(IntegrityError):
        cluster.delete()
    assert Cluster.objects.get() == cluster


def test_one_with_a_pool_stays(cluster: Cluster) -> None:
    Pool.objects.create(cluster=cluster, slug="a100", name="A100")
    with pytest.raises(IntegrityError, match="protected"):
        cluster.delete()
    assert Cluster.objects.get() == cluster
