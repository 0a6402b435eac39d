"""Tests of doctor's findings about storage classes, their drivers and snapshots."""

from __future__ import annotations

from typing import ClassVar

from clusters.doctor import storage
from tests.clusters.doctor.told import Said, levels, said, storage_class


class TestStorage:
    def test_the_default_class_serves_where_none_is_named(self) -> None:
        found = levels(said(storage.storage, Said(StorageClass=[storage_class("a", default=True)])))
        assert found == ["ok", "ok", "ok"]

    def test_no_class_and_no_default_is_missing(self) -> None:
        found = said(storage.storage, Said(StorageClass=[storage_class("a")]))
        assert levels(found) == ["fail", "fail", "ok"]

    def test_a_class_that_does_not_exist_is_missing(self) -> None:
        api = Said(StorageClass=[storage_class("a", default=True)])
        findings = said(storage.storage, api, disk_class="b")
        assert findings[1] == ("fail", "The storage class b for local disks does not exist.")

    def test_a_disk_class_that_binds_at_once_or_cannot_grow_is_a_warning(self) -> None:
        api = Said(StorageClass=[storage_class("a", late=False, grows=False, default=True)])
        assert levels(said(storage.storage, api)) == ["ok", "warn", "ok", "warn", "warn", "ok"]


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
