"""Examples of connections, volumes and their files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from accounts.credentials.secrets import encrypt
from storage.models import FilesSession, Snapshot, Volume
from tests.portal.parity.bodies import CONNECTION, FOREIGN, VOLUME
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.files_pod import TOKEN, Pod, served

ONE = "volumes/<uuid:id>/"
INSPECTED = {"file_system": "ext4", "size_mib": 9, "used_mib": 4, "uid": 1000, "names": ["scans/"], "more": 3}


@example("POST connections/", "connections/")
def a_connection(scene: Scene) -> None:
    assert scene.alice.get(connected(scene))["bucket"] == "scans"


@example("PATCH connections/<uuid:id>/", "connections/<uuid:id>/")
def a_connection_is_changed(scene: Scene) -> None:
    made = connected(scene)
    scene.alice.api(f"PATCH {made}", {"bucket": "other"})
    assert scene.alice.get(made)["bucket"] == "other"


@example("DELETE connections/<uuid:id>/", "connections/<uuid:id>/delete/")
def a_connection_is_deleted(scene: Scene) -> None:
    scene.alice.api(f"DELETE {connected(scene)}")
    assert scene.alice.list("connections/") == []


def connected(scene: Scene) -> str:
    """Make a connection. Return its address."""
    made = scene.alice.api("POST connections/", CONNECTION)
    return f"connections/{made['id']}/"


@example("POST volumes/", "volumes/")
def a_volume(scene: Scene) -> None:
    made = scene.alice.api("POST volumes/", VOLUME)
    assert scene.alice.get(f"volumes/{made['id']}/")["requested_mib"] == 1024


@example("PATCH volumes/<uuid:id>/", ONE)
def a_volume_grows_and_gets_another_name(scene: Scene) -> None:
    wanted = {"name": "scans", "shared": "read"}
    there = at(volume(scene))
    scene.alice.api(f"PATCH {there}", wanted | {"size_mib": 2048})
    assert (wanted | {"requested_mib": 2048}).items() <= scene.alice.get(there).items()


@example("PATCH volumes/<uuid:id>/", f"{ONE}main/")
def a_home_becomes_the_main_one(scene: Scene) -> None:
    volume(scene, kind="home", name="home", is_main=True)
    there = at(volume(scene, kind="home", name="other"))
    scene.alice.api(f"PATCH {there}", {"main": True})
    assert scene.alice.get(there)["main"]


@example("DELETE volumes/<uuid:id>/", f"{ONE}delete/")
def a_volume_goes_into_the_bin(scene: Scene) -> None:
    there = at(volume(scene))
    scene.alice.api(f"DELETE {there}")
    assert scene.alice.get(there)["bin_until"]


@example("POST volumes/<uuid:id>/restore/", f"{ONE}restore/")
def a_volume_comes_back_from_the_bin(scene: Scene) -> None:
    there = at(volume(scene))
    scene.alice.api(f"DELETE {there}")
    scene.alice.api(f"POST {there}restore/")
    assert scene.alice.get(there)["bin_until"] is None


@example("POST volumes/adopt/", "volumes/adopt/")
def storage_is_adopted(scene: Scene) -> None:
    scene.admin.api("POST volumes/adopt/", FOREIGN)
    [found] = scene.bob.list("volumes/")
    assert (found["name"], found["adoption"]["inspection"]) == ("scans", None)


@example("POST volumes/<uuid:id>/confirm/", f"{ONE}confirm/")
def an_adopted_volume_is_confirmed(scene: Scene) -> None:
    there = at(volume(scene, adoption="read_only", inspection=INSPECTED))
    scene.alice.api(f"POST {there}confirm/")
    assert scene.alice.get(there)["adoption"]["state"] == "confirmed"


@example("POST volumes/<uuid:id>/inspect/", f"{ONE}inspect/")
def an_adopted_volume_is_inspected_again(scene: Scene) -> None:
    there = at(volume(scene, adoption="read_only", inspection=INSPECTED))
    scene.alice.api(f"POST {there}inspect/")
    assert scene.alice.get(there)["adoption"]["inspection"] is None


@example("POST volumes/<uuid:id>/transfer/", f"{ONE}transfer/")
def a_volume_is_handed_over(scene: Scene) -> None:
    there = at(volume(scene))
    scene.alice.api(f"POST {there}transfer/", {"username": "bob"})
    assert scene.bob.get(there)["owner"] == "bob"


@example("POST volumes/<uuid:id>/snapshot/", f"{ONE}snapshot/")
def a_snapshot(scene: Scene) -> None:
    there = at(volume(scene))
    scene.alice.api(f"POST {there}snapshot/", {"note": "before the cleaning"})
    assert [one["note"] for one in scene.alice.list(f"{there}snapshots/")] == ["before the cleaning"]


@example("POST volumes/<uuid:id>/publish/", f"{ONE}publish/")
def a_version(scene: Scene) -> None:
    there = at(volume(scene))
    scene.alice.api(f"POST {there}publish/", {"note": "as in the paper"})
    assert [one["number"] for one in scene.alice.list(f"{there}snapshots/")] == [1]


@example("DELETE volumes/<uuid:id>/snapshots/<uuid:snapshot>/", f"{ONE}snapshots/<uuid:snapshot>/delete/")
def a_snapshot_is_deleted(scene: Scene) -> None:
    row = volume(scene)
    taken = Snapshot.objects.create(volume=row, by=scene.cast.alice.user, phase="ready")
    scene.alice.api(f"DELETE {at(row)}snapshots/{taken.pk}/")
    assert "ready" not in [one["phase"] for one in scene.alice.list(f"{at(row)}snapshots/")]


@example("POST volumes/<uuid:id>/clone/", f"{ONE}clone/")
def a_volume_is_cloned(scene: Scene) -> None:
    scene.alice.api(f"POST {at(volume(scene))}clone/", {"name": "copy"})
    assert sorted(one["name"] for one in scene.alice.list("volumes/")) == ["copy", "data"]


@example(f"POST {ONE}files-session/", f"{ONE}files/")
def files_are_opened(scene: Scene) -> None:
    there = at(volume(scene))
    scene.alice.api(f"POST {there}files-session/")
    assert scene.alice.get(f"{there}files-session/")["by"] == "alice"


@example(f"DELETE {ONE}files-session/", f"{ONE}files/close/")
def files_are_closed(scene: Scene) -> None:
    there = at(volume(scene))
    scene.alice.api(f"POST {there}files-session/")
    scene.alice.api(f"DELETE {there}files-session/")
    assert scene.alice.get(f"{there}files-session/")["phase"] == "ending"


@example(f"PUT {ONE}files/content/", f"{ONE}files/")
def a_file_is_sent(scene: Scene) -> None:
    with opened(scene) as (there, pod):
        scene.alice.upload(f"PUT {there}files/content/?path=a.bin", b"\x00\xff" * 5000)
        assert (pod.folder / "a.bin").read_bytes() == b"\x00\xff" * 5000


@example(f"POST {ONE}files/", f"{ONE}files/folder/")
def a_folder(scene: Scene) -> None:
    with opened(scene) as (there, _pod):
        scene.alice.api(f"POST {there}files/", {"path": "results"})
        assert names(scene, there) == ["results"]


@example(f"PATCH {ONE}files/content/", f"{ONE}files/rename/")
def a_file_is_renamed(scene: Scene) -> None:
    with opened(scene, "a.csv") as (there, _pod):
        scene.alice.api(f"PATCH {there}files/content/?path=a.csv", {"to": "b.csv"})
        assert names(scene, there) == ["b.csv"]


@example(f"DELETE {ONE}files/content/", f"{ONE}files/delete/")
def a_file_is_deleted(scene: Scene) -> None:
    with opened(scene, "a.csv") as (there, _pod):
        scene.alice.api(f"DELETE {there}files/content/?path=a.csv")
        assert names(scene, there) == []


def names(scene: Scene, there: str) -> list[str]:
    return [one["name"] for one in scene.alice.get(f"{there}files/")["entries"]]


@contextmanager
def opened(scene: Scene, *files: str) -> Iterator[tuple[str, Pod]]:
    """Serve the files of a volume of alice's. Yield its address, and the program that serves them."""
    row = volume(scene)
    with TemporaryDirectory() as folder, served(Path(folder)) as pod:
        for name in files:
            (pod.folder / name).write_text("x")
        of = {"phase": "ready", "host": f"127.0.0.1:{pod.port}", "token": encrypt(TOKEN)}
        FilesSession.objects.create(volume=row, by=scene.cast.alice.user, writes=True, **of)
        yield at(row), pod


def volume(scene: Scene, **changes: Any) -> Volume:
    """Make a volume of alice's as it is once the cluster has it."""
    cast = scene.cast
    row: dict[str, Any] = {"name": "data", "kind": "dataset", "requested_mib": 1024, "size_mib": 1024}
    row |= {"phase": "ready", "access": "rwx", "bound_to": "pvc-1", "storage_class": "net-shared"}
    return Volume.objects.create(
        tenant=cast.demo, owner=cast.alice.user, cluster=cast.cluster, **(row | changes)
    )


def at(row: Volume) -> str:
    return f"volumes/{row.pk}/"
