"""Pages of volumes, and the launch page that mounts them."""

from __future__ import annotations

import pytest

from accounts.models import AuditEntry
from storage import changes
from storage.models import Mount, Snapshot, Volume
from tests.cast import Cast
from tests.shared.clients import browser

pytestmark = [pytest.mark.django_db]
LAUNCH = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1", "name": "exp-1", "disk_gib": "0"}


def created(cast: Cast, name: str = "survey 2", shared: str = "read") -> Volume:
    wish = changes.Wish(name=name, kind="dataset", size_mib=1024, shared=shared)
    return changes.create(cast.alice, "demo", wish)


def test_a_volume_is_created_grown_binned_and_restored_in_the_browser(cast: Cast) -> None:
    alice = browser(cast.alice)
    form = {
        "tenant": "demo",
        "cluster": "main",
        "name": "data",
        "kind": "dataset",
        "size_gib": "2",
        "shared": "no",
    }
    assert alice.post("/volumes/", form).status_code == 302
    volume = Volume.objects.get()
    page = f"/volumes/{volume.pk}/"
    assert alice.post(page, {"size_gib": "1"}).status_code == 422
    assert alice.post(page, {"size_gib": "4"}).status_code == 302
    assert alice.post(page, {"name": "images", "shared": "read"}).status_code == 302
    assert alice.post(f"{page}delete/").status_code == 302
    assert b"images" in alice.get("/volumes/?show=bin").content
    assert alice.post(f"{page}restore/").status_code == 302
    assert alice.post(f"{page}transfer/", {"username": "bob"}).status_code == 302
    volume.refresh_from_db()
    assert (volume.name, volume.requested_mib, volume.owner, volume.bin_until) == (
        "images", 4096, cast.bob.user, None,
    )  # fmt: skip


def test_a_refused_form_says_why_and_is_recorded(cast: Cast) -> None:
    created(cast)
    form = {
        "tenant": "demo",
        "cluster": "main",
        "name": "survey 2",
        "kind": "disk",
        "size_gib": "2",
        "shared": "no",
    }
    answer = browser(cast.alice).post("/volumes/", form)
    assert answer.status_code == 409
    assert AuditEntry.objects.filter(outcome="refused", data__code="name_taken").exists()


def test_the_launch_page_mounts_what_is_chosen(cast: Cast) -> None:
    volume = created(cast)
    bob = browser(cast.bob)
    offered = bob.get("/launch/").context["form"].offers
    assert list(offered) == [f"{volume.pk}:r"]
    assert bob.post("/launch/", LAUNCH | {"volumes": [f"{volume.pk}:w"]}).status_code == 422
    assert bob.post("/launch/", LAUNCH | {"volumes": [f"{volume.pk}:r"]}).status_code == 302
    mount = Mount.objects.get(path__startswith="/volumes")
    assert (mount.volume, mount.path, mount.read_only) == (volume, "/volumes/survey-2", True)
    alice = browser(cast.alice)
    both = [f"{volume.pk}:r", f"{volume.pk}:w"]
    assert alice.post("/launch/", LAUNCH | {"volumes": both}).status_code == 302
    assert Mount.objects.filter(volume=volume, read_only=False).count() == 1


def test_nothing_is_offered_that_is_not_shared_or_in_the_bin(cast: Cast) -> None:
    created(cast, "private", "no")
    changes.delete(cast.alice, created(cast, "old"))
    assert browser(cast.bob).get("/launch/").context["form"].offers == {}


def test_a_link_on_the_page_of_a_dataset_launches_with_a_version(cast: Cast) -> None:
    volume = created(cast)
    for number, phase in ((1, "ready"), (2, "ready"), (3, "pending")):
        Snapshot.objects.create(volume=volume, number=number, phase=phase, by=cast.alice.user, size_mib=1)
    bob = browser(cast.bob)
    shown = bob.get(f"/volumes/{volume.pk}/").context
    assert [way.wish.key for way in shown["ways"]] == [f"{volume.pk}:v", f"{volume.pk}:r"]
    keys = {one["row"].number: one["key"] for one in shown["taken"]}
    assert keys == {1: f"{volume.pk}:1", 2: f"{volume.pk}:2", 3: None}
    form = bob.get("/launch/", {"tenant": "demo", "volumes": keys[2]}).context["form"]
    [row] = form.volume_rows
    assert [key for key, _how, is_chosen in row.ways if is_chosen] == [keys[2]]
    assert bob.post("/launch/", LAUNCH | {"volumes": ["", keys[2]]}).status_code == 302
    mount = Mount.objects.get(path=row.path)
    assert (mount.volume.source, mount.version) == (volume.snapshots.get(number=2), "2")
    holder = str(mount.holder)
    again = bob.get("/launch/", {"again": holder}).context["form"]
    assert again["volumes"].value() == [keys[2]]


def test_a_link_to_a_volume_that_is_not_shared_is_reported(cast: Cast) -> None:
    volume = created(cast, shared="no")
    shown = browser(cast.bob).get("/launch/", {"volumes": f"{volume.pk}:r"}).context
    assert (shown["form"]["volumes"].value(), len(shown["notes"])) == ([], 1)
    assert browser(cast.bob).get(f"/volumes/{volume.pk}/").context["ways"] == []


def test_a_choice_of_one_is_not_shown(cast: Cast) -> None:
    form = browser(cast.bob).get("/volumes/").context["form"]
    assert {field.name for field in form if field.is_hidden} == {"tenant", "cluster"}
    cast.bob.user.memberships.create(tenant=cast.second, role="member")
    form = browser(cast.bob).get("/volumes/").context["form"]
    assert [field.name for field in form if field.is_hidden] == ["cluster"]
