"""A keeper that dies before or after any of its writes: the next one goes on, and nothing is orphaned or lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from clusters.api import Api
from clusters.connections import api_for
from clusters.models import Installation
from storage import changes, copies, versions
from storage.cluster.look import look
from storage.models import Snapshot, Volume
from tests.cast import Cast
from tests.shared.keeping import ENOUGH_SECONDS, created, in_phase, keep
from tests.shared.looking import mirror_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]
WRITES = ("apply", "create", "json_patch", "merge_patch", "delete")
CLAIM, SNAPSHOT, CONTENT = "PersistentVolumeClaim", "VolumeSnapshot", "VolumeSnapshotContent"
RELATED = ("tenant", "cluster", "owner", "source__volume__tenant")


class Killed(BaseException):
    """End of the process, which nothing may catch."""


class Dying:
    """An API that ends the process before its n-th write, or right after it; it counts what was deleted."""

    def __init__(self, api: Api, at: int, *, after: bool) -> None:
        self._api, self._at, self._after = api, at, after
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._api, name)
        return self._write(method) if name in WRITES else method

    def _write(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def writing(*arguments: Any, **options: Any) -> Any:
            is_now, self.writes = self.writes == self._at, self.writes + 1
            if is_now and not self._after:
                raise Killed
            answer = method(*arguments, **options)
            if is_now:
                raise Killed
            return answer

        return writing


def rows() -> list[Volume]:
    return list(Volume.objects.filter(deleted_at=None).select_related(*RELATED).order_by("created_at"))


def look_at_all(api: Any, namespace: str) -> None:
    for row in rows():
        look(row, mirror_of(api, namespace), Installation.current_id())


def is_settled() -> bool:
    moving = ("pending", "growing", "deleting")
    is_passing = Snapshot.objects.filter(deleted_at=None, is_passing=True).exists()
    return not (
        is_passing
        or Volume.objects.filter(deleted_at=None, phase__in=moving).exists()
        or Snapshot.objects.filter(deleted_at=None, phase__in=moving).exists()
    )


def grow(house: Cast, volume: Volume) -> None:
    changes.change(house.alice, volume, {"size_mib": 256})


def snapshot(house: Cast, volume: Volume) -> None:
    copies.snapshot(house.alice, volume)


def clone(house: Cast, volume: Volume) -> None:
    copies.clone(house.alice, volume, "copy")


def publish(house: Cast, volume: Volume) -> None:
    versions.volume_of(copies.publish(house.alice, volume))


def bin_it(house: Cast, volume: Volume) -> None:
    changes.delete(house.alice, volume, now=True)


def bin_with_copies(house: Cast, volume: Volume) -> None:
    publish(house, volume)
    finish(house)
    bin_it(house, volume)


def finish(house: Cast) -> None:
    api, deadline = api_for(house.cluster), time.monotonic() + ENOUGH_SECONDS
    while not is_settled():
        assert time.monotonic() < deadline, [(row.name, row.phase, row.problem) for row in rows()]
        look_at_all(api, house.demo.namespace)
        time.sleep(0.02)


def deaths() -> Iterator[tuple[int, bool]]:
    for at in count():
        yield at, False
        yield at, True


@pytest.mark.parametrize(
    "use_case",
    [
        *(pytest.param(each, marks=pytest.mark.slow) for each in (grow, snapshot, publish, bin_it)),
        *(pytest.param(each, marks=pytest.mark.long) for each in (clone, bin_with_copies)),
    ],
)
def test_a_keeper_that_dies_at_any_write_leaves_nothing_undone(
    house: Cast, api: Api, use_case: Callable[[Cast, Volume], None]
) -> None:
    for at, after in deaths():
        volume = keep(created(house, name=f"data {at} {after}"), in_phase("ready"))
        use_case(house, volume)
        dying: Any = Dying(api_for(house.cluster), at, after=after)
        was_killed = False
        with suppress(Killed):
            deadline = time.monotonic() + ENOUGH_SECONDS
            while not is_settled() and time.monotonic() < deadline:
                was_killed = True
                look_at_all(dying, house.demo.namespace)
                was_killed = False
                time.sleep(0.02)
        finish(house)
        is_as_the_rows_say(api, house.demo.namespace)
        for row in rows():
            changes.delete(house.alice, row, now=True) if not row.is_version else None
        finish(house)
        is_as_the_rows_say(api, house.demo.namespace)
        assert rows() == []
        if not was_killed:
            assert at > 0
            return


def is_as_the_rows_say(api: Api, namespace: str) -> None:
    """Assert that the cluster has what the rows name, and nothing else of this namespace."""
    live = rows()
    assert names(api, CLAIM, namespace) == {row.object_name for row in live}
    taken = list(Snapshot.objects.filter(deleted_at=None))
    assert names(api, SNAPSHOT, namespace) == {row.object_name for row in taken}
    contents = [
        body for body in api.list(CONTENT) if body["spec"]["volumeSnapshotRef"]["namespace"] == namespace
    ]
    assert {body["metadata"]["name"] for body in contents} == {row.content for row in taken}
    assert {body["spec"]["deletionPolicy"] for body in contents} <= {"Retain"}
    deadline = time.monotonic() + ENOUGH_SECONDS  # the storage deletes a volume after its PVC
    while (there := bound_in(api, namespace)) != {row.bound_to for row in live}:
        assert time.monotonic() < deadline, there
        time.sleep(0.05)


def names(api: Api, kind: str, namespace: str) -> set[str]:
    return {body["metadata"]["name"] for body in api.list(kind, namespace=namespace)}


def bound_in(api: Api, namespace: str) -> set[str]:
    volumes = api.list("PersistentVolume")
    return {
        body["metadata"]["name"]
        for body in volumes
        if (body["spec"].get("claimRef") or {}).get("namespace") == namespace
    }
