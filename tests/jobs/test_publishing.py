"""Jobs that write a dataset: their success publishes a version, which jobs after them read."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.errors import Invalid, NotAllowed
from clusters.api import Api
from jobs.api.representation import job_json
from jobs.models import Job
from jobs.runs import lifecycle
from jobs.runs.following import After
from jobs.submit import JobSpec, submit
from quotas.models import Claim
from storage import changes, copies
from storage.models import LATEST, Mount, Shared, Snapshot, Volume
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.shared.driving_jobs import FAILS, RUNS, drive, held, image, in_phase, submitted, told
from tests.shared.keeping import created, keep, look_at, settle
from tests.shared.keeping import in_phase as volume_in_phase
from workloads.sizes.sizing import SizeAsked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def dataset(house: Cast) -> Volume:
    return keep(created(house), volume_in_phase("ready"))


def reader(house: Cast, dataset: Volume, first: Job, name: str = "reader", **changes: Any) -> Job:
    wish = MountWish(volume=dataset.pk, path="/data", version=LATEST)
    return submitted(house, name, volumes=[wish], after=[After(first.pk)], **changes)


def mounted(job: Job) -> Mount:
    return Mount.objects.select_related("volume__source").get(holder=job.pk, path="/data")


def test_success_publishes_a_version_which_the_jobs_after_it_mount(
    house: Cast, dataset: Volume, api: Api
) -> None:
    writer = submitted(house, "writer", writes=dataset.pk, completions=2)
    readers = [reader(house, dataset, writer, f"reader {number}", ends=RUNS) for number in range(3)]
    assert not Mount.objects.get(holder=writer.pk, path="/volumes/data").read_only
    writer = drive(writer, in_phase("succeeded"))
    assert writer.version is not None
    assert (writer.version.number, writer.version.note) == (1, "job “writer”")
    assert told(writer).count("publishes") == 1

    drive(readers[0], lambda row: row.message_code == "waits_for_jobs")  # the version cannot be read yet
    assert [held(one) for one in readers] == [0, 0, 0]
    shown = job_json(writer, house.alice)["writes"]
    assert (shown["name"], shown["version"]["number"], shown["version"]["phase"]) == ("data", 1, "pending")
    version = settle(writer.version)
    for one in readers:
        drive(one, lambda row: not row.is_held)
        assert (mounted(one).version, mounted(one).volume.source_id) == ("1", version.pk)
    keep(mounted(readers[0]).volume, volume_in_phase("ready"))
    for one in readers:
        drive(one, in_phase("running"))
        pods = api.list("Pod", namespace=one.tenant.namespace, labels={"berth.dev/job": str(one.pk)})
        (volume,) = [
            each
            for each in pods[0]["spec"]["volumes"]
            if each.get("persistentVolumeClaim", {}).get("claimName") == mounted(one).volume.object_name
        ]
        assert volume["persistentVolumeClaim"]["readOnly"]


def test_readers_keep_their_version_when_a_later_one_is_published(house: Cast, dataset: Volume) -> None:
    writer = drive(submitted(house, "writer", writes=dataset.pk), in_phase("succeeded"))
    assert writer.version is not None
    settle(writer.version)
    one = reader(house, dataset, writer, ends=RUNS)
    drive(one, lambda row: not row.is_held)
    second = settle(copies.publish(house.alice, dataset))
    assert second.number == 2
    assert mounted(one).version == "1"


def test_a_failure_publishes_nothing_and_starts_no_reader(house: Cast, dataset: Volume) -> None:
    writer = submitted(house, "writer", ends=FAILS, retries=0, writes=dataset.pk)
    one = reader(house, dataset, writer)
    drive(writer, in_phase("failed"))
    one = drive(one, in_phase("cancelled"))
    assert Snapshot.objects.count() == 0
    assert (one.failure or {})["code"] == "not_started"


def test_no_other_writer_begins_between_the_end_and_the_copy(house: Cast, dataset: Volume) -> None:
    writer = submitted(house, "writer", writes=dataset.pk)
    other = submitted(house, "other", writes=dataset.pk)
    writer = drive(writer, in_phase("succeeded"))
    assert writer.version is not None
    drive(other, lambda _row: reason(other) == "volume_in_use")
    settle(writer.version)
    other = drive(other, in_phase("succeeded"))
    assert other.version is not None
    assert other.version.number == 2


def reason(job: Job) -> str:
    return Claim.objects.get(holder_id=job.pk).reason_code


def test_the_copy_waits_until_the_node_has_let_go_of_the_dataset(house: Cast, dataset: Volume) -> None:
    writer = drive(submitted(house, "writer", writes=dataset.pk), in_phase("starting", "running"))
    Volume.objects.filter(pk=dataset.pk).update(attached_to=["gpu-1"])
    writer = drive(writer, in_phase("succeeded"))
    assert writer.version is not None
    look_at(dataset)
    writer.version.refresh_from_db()
    assert writer.version.phase == "pending"
    Volume.objects.filter(pk=dataset.pk).update(attached_to=[])
    settle(writer.version)


def test_a_dataset_that_cannot_be_published_fails_the_job(house: Cast, dataset: Volume) -> None:
    writer = submitted(house, "writer", writes=dataset.pk)
    Volume.objects.filter(pk=dataset.pk).update(owner=house.bob.user, shared=Shared.WRITE)
    house.alice.user.memberships.update(role="member")
    writer = drive(writer, in_phase("failed"))
    assert ((writer.failure or {})["code"], writer.version) == ("not_published", None)
    assert Snapshot.objects.count() == 0

    Volume.objects.filter(pk=dataset.pk).update(owner=house.alice.user)
    assert lifecycle.retry(house.alice, writer)
    writer = drive(writer, in_phase("succeeded"))
    assert writer.version is not None


def test_only_who_may_publish_a_dataset_lets_a_job_write_it(house: Cast, dataset: Volume) -> None:
    changes.change(house.alice, dataset, {"shared": Shared.WRITE})
    spec = JobSpec(
        tenant=house.demo.slug,
        name="of bob",
        image=image("passes"),
        size=SizeAsked(flavor="a100-1"),
        command=["train"],
        writes=dataset.pk,
    )
    with pytest.raises(NotAllowed):
        submit(house.bob, spec)
    home = keep(created(house, name="disk", kind="disk"), lambda _row: True)
    with pytest.raises(Invalid):
        submitted(house, "no dataset", writes=home.pk)
    wish = MountWish(volume=dataset.pk, path="/data")
    with pytest.raises(Invalid):
        submitted(house, "read only", writes=dataset.pk, volumes=[wish])
    kept = submitted(
        house,
        "at a path",
        writes=dataset.pk,
        volumes=[MountWish(volume=dataset.pk, path="/out", read_only=False)],
    )
    assert list(Mount.objects.filter(holder=kept.pk, volume=dataset).values_list("path")) == [("/out",)]


def test_the_latest_version_is_promised_by_a_job_before_alone(house: Cast, dataset: Volume) -> None:
    wish = MountWish(volume=dataset.pk, path="/data", version=LATEST)
    with pytest.raises(Invalid):
        submitted(house, "reader", volumes=[wish])
    with pytest.raises(Invalid):
        submitted(house, "reader", volumes=[wish], after=[After(submitted(house, "other").pk)])
