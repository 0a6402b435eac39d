"""The keeper at work: it hears of marks and of the cluster's changes by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from clusters.api import Api
from clusters.connections import api_for
from clusters.mirror import Mirror, trimmed
from clusters.models import Installation
from clusters.watch.watching import Changed, Follower, Listed
from storage import changes
from storage.cluster import attachments
from storage.cluster.keeper import Keeper, volume_of
from storage.cluster.look import look
from storage.models import Volume
from storage.mounts.leasing import Leases
from tests.cast import Cast
from tests.shared.keeping import ENOUGH_SECONDS, created, in_phase, keep
from tests.shared.looking import OF_CLUSTER, listed

pytestmark = [pytest.mark.django_db(transaction=True)]


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + ENOUGH_SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_a_volume_is_made_grown_and_deleted_without_a_hand(house: Cast, api: Api) -> None:
    mirror = Mirror(lambda: api_for(house.cluster))
    for kind in OF_CLUSTER:
        bodies, version = mirror.api.list_with_version(kind, keep=trimmed)
        mirror.replace(kind, bodies, version)
    keeper = Keeper(house.cluster, mirror)
    follower = Follower(lambda: api_for(house.cluster), "PersistentVolumeClaim")

    def follow() -> None:
        for step in follower.infinite():
            if isinstance(step, Listed):
                mirror.replace("PersistentVolumeClaim", map(trimmed, step.found), step.version)
                keeper.listed()
            elif isinstance(step, Changed):
                mirror.heard("PersistentVolumeClaim", step.change, trimmed(step.body))
                keeper.changed(step.change, step.body)

    watch = threading.Thread(target=follow, daemon=True)
    keeper.start()
    watch.start()
    try:
        volume = created(house)

        def phase() -> str:
            return str(Volume.objects.get(pk=volume.pk).phase)

        until(lambda: phase() == "ready")
        changes.change(house.alice, volume, {"size_mib": 256})
        until(lambda: Volume.objects.get(pk=volume.pk).size_mib == 256)
        changes.delete(house.alice, volume, now=True)
        until(lambda: phase() == "deleted")
    finally:
        keeper.stop()
        follower.stop()
        keeper.join(10)
        watch.join(10)


def test_a_fault_about_one_volume_keeps_its_mark_and_stops_nothing(
    house: Cast, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("no such key")

    volume = created(house)
    with monkeypatch.context() as broken:
        broken.setattr("storage.cluster.look.read", fail)
        assert not look(volume, listed(house.cluster, house.demo.namespace), Installation.current_id())
    assert Volume.objects.get(pk=volume.pk).dirty_since is not None
    assert keep(volume, in_phase("ready")).bound_to


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ({"kind": "PersistentVolumeClaim", "metadata": {"name": "vol-x"}}, False),
        (
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"vol-{'0' * 8}-0000-4000-8000-{'0' * 12}"},
            },
            True,
        ),
        (
            {
                "kind": "Event",
                "metadata": {"name": "e"},
                "involvedObject": {"name": f"vol-{'0' * 8}-0000-4000-8000-{'0' * 12}"},
            },
            True,
        ),
        ({"kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"name": "ws-1"}}, False),
    ],
)
def test_whose_an_object_is(body: dict[str, object], is_found: bool) -> None:
    assert (volume_of(body) is not None) is is_found


def test_nodes_that_have_a_volume_attached_are_known_until_they_let_go(house: Cast) -> None:
    volume = created(house)
    Volume.objects.filter(pk=volume.pk).update(bound_to="pv-1")
    mirror = Mirror(lambda: api_for(house.cluster))
    body = {
        "kind": attachments.KIND,
        "metadata": {"name": "csi-1", "resourceVersion": "1"},
        "spec": {"nodeName": "gpu-1", "source": {"persistentVolumeName": "pv-1"}},
    }
    for change, nodes in (("ADDED", ["gpu-1"]), ("DELETED", [])):
        mirror.heard(attachments.KIND, change, body)
        attachments.note(Volume.objects.filter(pk=volume.pk), mirror)
        assert Volume.objects.get(pk=volume.pk).attached_to == nodes
        assert [one.nodes for one in Leases().held([volume.pk])] == [tuple(nodes)] * len(nodes)
