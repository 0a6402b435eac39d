"""A volume's PVC on a real HTTP Kubernetes API: made, kept, grown, lost and found, deleted for good."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.errors import Conflict, Invalid
from accounts.notices.models import Notice
from clusters.api import Api
from storage import changes
from storage.models import Volume
from tests.cast import Cast
from tests.shared.keeping import created, in_phase, keep, with_problem

pytestmark = [pytest.mark.django_db(transaction=True)]
CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"


def claim_of(volume: Volume, api: Api) -> dict[str, object] | None:
    return api.get(CLAIM, volume.tenant.namespace, volume.object_name)


def class_of_small_volumes(api: Api) -> str:
    """Make a class that gives no volume more than 192 MiB."""
    name = f"small-{uuid4().hex[:8]}"
    api.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "net.devcluster.local",
            "allowVolumeExpansion": True,
            "parameters": {"maxSize": "192Mi"},
        }
    )
    return name


def test_a_dataset_is_made_at_once_for_several_nodes_and_its_data_is_kept(house: Cast, api: Api) -> None:
    volume = keep(created(house), in_phase("ready"))
    assert (volume.size_mib, volume.access, volume.storage_class, volume.node) == (
        128,
        "rwx",
        "net-shared",
        "",
    )
    kept = api.get(VOLUME, None, volume.bound_to)
    assert kept is not None
    assert kept["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert kept["spec"]["claimRef"]["name"] == volume.object_name


def test_a_disk_is_ready_before_its_first_run_chooses_its_node(house: Cast, api: Api) -> None:
    volume = keep(created(house, kind="disk"), in_phase("ready"))
    assert (volume.bound_to, volume.access, volume.size_mib) == ("", "rwo", 0)


def test_a_volume_grows_online(house: Cast, api: Api) -> None:
    volume = keep(created(house), in_phase("ready"))
    assert changes.change(house.alice, volume, {"size_mib": 256})
    assert Volume.objects.get(pk=volume.pk).phase == "growing"
    assert keep(volume, in_phase("ready")).size_mib == 256


def test_growth_that_was_requested_before_the_volume_is_bound_comes_afterwards(house: Cast, api: Api) -> None:
    volume = created(house)
    changes.change(house.alice, volume, {"size_mib": 256})
    assert keep(volume, lambda row: row.size_mib == 256).phase == "ready"


def test_a_failed_growth_is_explained_and_can_be_lowered_but_not_below_what_is_there(
    house: Cast, api: Api
) -> None:
    volume = created(house)
    Volume.objects.filter(pk=volume.pk).update(storage_class=class_of_small_volumes(api))
    volume = keep(volume, in_phase("ready"))
    changes.change(house.alice, volume, {"size_mib": 1024})
    volume = keep(volume, with_problem("growth_failed"))
    assert (volume.phase, volume.size_mib) == ("growing", 128)
    with pytest.raises(Invalid) as refusal:
        changes.change(house.alice, volume, {"size_mib": 128})
    assert refusal.value.code == "cannot_shrink"
    changes.change(house.alice, volume, {"size_mib": 160})
    volume = keep(volume, in_phase("ready"))
    assert (volume.size_mib, volume.requested_mib, volume.problem) == (160, 160, "")


def test_a_class_that_is_missing_is_named(house: Cast, api: Api) -> None:
    volume = created(house)
    Volume.objects.filter(pk=volume.pk).update(storage_class="nowhere")
    assert "nowhere" in str(keep(volume, with_problem("class_missing")).problem_data)


def test_the_bin_keeps_all_and_gives_it_back(house: Cast, api: Api) -> None:
    volume = keep(created(house), in_phase("ready"))
    uid = claim_of(volume, api)["metadata"]["uid"]  # type: ignore[index]
    assert changes.delete(house.alice, volume)
    volume = keep(volume, in_phase("in_bin"))
    assert volume.bin_until - timezone.now() > timedelta(days=6)  # type: ignore[operator]
    with pytest.raises(Conflict):
        changes.change(house.alice, volume, {"size_mib": 256})
    assert changes.restore(house.alice, volume)
    volume = keep(volume, in_phase("ready"))
    assert claim_of(volume, api)["metadata"]["uid"] == uid  # type: ignore[index]


def test_after_its_time_in_the_bin_a_volume_goes_with_its_data(house: Cast, api: Api) -> None:
    volume = keep(created(house), in_phase("ready"))
    changes.delete(house.alice, volume)
    Volume.objects.filter(pk=volume.pk).update(bin_until=timezone.now())
    with pytest.raises(Conflict) as refusal:
        changes.restore(house.alice, volume)
    assert refusal.value.code == "being_deleted"
    gone = keep(volume, in_phase("deleted"))
    assert gone.deleted_at is not None
    assert claim_of(volume, api) is None
    assert [one for one in api.list(VOLUME) if one["metadata"]["name"] == volume.bound_to] == [] or (
        api.get(VOLUME, None, volume.bound_to)["spec"]["persistentVolumeReclaimPolicy"] == "Delete"  # type: ignore[index]
    )


def test_a_claim_that_somebody_deletes_comes_back_with_the_same_data_and_its_owner_is_told(
    house: Cast, api: Api
) -> None:
    volume = keep(created(house), in_phase("ready"))
    before = claim_of(volume, api)
    assert before is not None
    patch = {"metadata": {"finalizers": ["example.org/hold"]}}
    api.merge_patch(CLAIM, volume.tenant.namespace, volume.object_name, patch)
    api.delete(CLAIM, volume.tenant.namespace, volume.object_name)
    keep(volume, with_problem("volume_deleted"))
    told = Notice.objects.filter(subject="volume", subject_id=volume.pk)
    assert set(told.values_list("user__username", flat=True)) == {"alice", "admin"}
    patch = {"metadata": {"finalizers": []}}
    api.merge_patch(CLAIM, volume.tenant.namespace, volume.object_name, patch)
    again = keep(volume, lambda row: row.phase == "ready" and not row.problem)
    after = claim_of(again, api)
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]  # type: ignore[index]
    assert after["spec"]["volumeName"] == before["spec"]["volumeName"] == volume.bound_to  # type: ignore[index]


def test_a_lost_volume_is_never_replaced_by_an_empty_one(house: Cast, api: Api) -> None:
    volume = keep(created(house), in_phase("ready"))
    api.delete(CLAIM, volume.tenant.namespace, volume.object_name)
    api.delete(VOLUME, None, volume.bound_to)
    keep(volume, lambda row: claim_of(volume, api) is None or row.phase == "failed")
    lost = keep(volume, with_problem("volume_lost"))
    assert (lost.phase, claim_of(volume, api)) == ("failed", None)


def test_labels_that_somebody_removed_come_back(house: Cast, api: Api) -> None:
    volume = keep(created(house), in_phase("ready"))
    patch = {"metadata": {"labels": {"berth.dev/volume": None}}}
    api.merge_patch(CLAIM, volume.tenant.namespace, volume.object_name, patch)
    changes.change(house.alice, volume, {"size_mib": 256})
    keep(volume, in_phase("ready"))
    labels = claim_of(volume, api)["metadata"]["labels"]  # type: ignore[index]
    assert labels["berth.dev/volume"] == str(volume.pk)
