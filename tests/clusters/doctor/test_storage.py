"""Tests of doctor's findings about storage classes, their drivers and snapshots."""

from __future__ import annotations

from typing import ClassVar

from clusters.doctor import storage
from tests.clusters.doctor.told import Said, levels, said, storage_class


class TestStorage:
    def test_the_default_class_serves_where_none_is_named(self) -> None:
        found = levels(said(storage.storage, Said(StorageClass=[storage_class("a", default=True)])))
        assert found == ["ok", "ok", "warn", "ok"]

    def test_no_class_and_no_default_is_missing(self) -> None:
        found = said(storage.storage, Said(StorageClass=[storage_class("a")]))
        assert levels(found) == ["fail", "fail", "ok"]

    def test_a_class_that_does_not_exist_is_missing(self) -> None:
        api = Said(StorageClass=[storage_class("a", default=True)])
        findings = said(storage.storage, api, disk_class="b")
        assert findings[1] == ("fail", "The storage class b for local disks does not exist.")

    def test_a_disk_class_that_binds_at_once_or_cannot_grow_is_a_warning(self) -> None:
        api = Said(StorageClass=[storage_class("a", late=False, grows=False, default=True)])
        assert levels(said(storage.storage, api)) == ["ok", "warn", "ok", "warn", "warn", "warn", "ok"]

    def test_what_homes_and_datasets_need_is_judged_by_driver_and_by_an_admins_word(self) -> None:
        local = storage_class("local", default=True) | {"provisioner": "rancher.io/local-path"}
        cephfs = storage_class("cephfs") | {"provisioner": "cephfs.csi.ceph.com"}
        api = Said(StorageClass=[local, cephfs])

        def warnings(**settings: object) -> int:
            return levels(said(storage.storage, api, **settings)).count("warn")

        assert warnings() == 2  # one node at a time; no limit
        assert warnings(shared_classes=["local"]) == 1
        assert warnings(home_class="cephfs") == 1  # local disks have no limit
        assert warnings(home_class="cephfs", disk_class="cephfs") == 0
        assert warnings(dataset_class="cephfs") == 2


class TestDrivers:
    CLASS: ClassVar = storage_class("a", default=True) | {"provisioner": "cephfs.csi.ceph.com"}

    def test_a_node_without_the_driver_of_a_class_is_named(self) -> None:
        there = [{"name": "cephfs.csi.ceph.com"}]
        api = Said(
            StorageClass=[self.CLASS],
            CSIDriver=[{"metadata": there[0]}],
            CSINode=[
                {"metadata": {"name": "n1"}, "spec": {"drivers": there}},
                {"metadata": {"name": "n2"}, "spec": {"drivers": []}},
            ],
        )
        text = "n2 cannot mount volumes of a: its driver cephfs.csi.ceph.com does not run there."
        assert ("warn", text) in said(storage.storage, api)

    def test_the_snapshot_class_of_its_driver_is_told(self) -> None:
        snapshots = {"metadata": {"name": "snap"}, "driver": "cephfs.csi.ceph.com"}
        api = Said(
            StorageClass=[self.CLASS], VolumeSnapshotClass=[snapshots], groups=("snapshot.storage.k8s.io",)
        )
        assert ("ok", "Snapshots of volumes of a: class snap.") in said(storage.storage, api)
