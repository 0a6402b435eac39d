"""Images on the nodes of a booking's pool before it begins: rows, pods on a real HTTP API, and who sees them."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters import labels
from clusters.api import Api
from clusters.mirror import Mirror
from clusters.models import Cluster, Installation, Node
from clusters.watch.announcements import Announcements
from clusters.watch.watcher import ClusterWatch
from devcluster.testing.waiting import until
from monitoring.drift.survey import survey
from quotas.models import Booking
from tests.cast import Cast
from tests.shared.class_rows import make_booking
from tests.shared.clients import api as api_client
from tests.shared.clients import browser
from tests.shared.looking import listed
from workloads.models import Image
from workspaces.models import ClassLaunch, Template, WarmImage
from workspaces.warming import gathering, manifests
from workspaces.warming import look as looks

pytestmark = pytest.mark.django_db

SOON = timedelta(minutes=30)
COURSE = "berth.local/course:1"


@pytest.fixture
def course(cast: Cast) -> Image:
    return Image.objects.create(slug="course", name="Course", reference=COURSE)


def book(cast: Cast, begins: timedelta = SOON, image: str = "course", **values: Any) -> Booking:
    """Make a booking with a class launch of this image."""
    booking = make_booking(cast, begins, **values)
    ClassLaunch.objects.create(
        tenant=booking.tenant, name=f"class {booking.pk}", body={"image": image}, booking=booking
    )
    return booking


def look(cast: Cast) -> None:
    cluster = Cluster.objects.get(pk=cast.cluster.pk)
    looks.look(cluster, listed(cluster, cast.demo.namespace), Installation.current_id())


def pods(cast: Cast, api: Api) -> list[dict[str, Any]]:
    found = api.list("Pod", namespace=cast.demo.namespace)
    return [pod for pod in found if labels.WARMS in pod["metadata"]["labels"]]


def node_of(pod: dict[str, Any]) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (node,) = affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"]
    return str(node)


def ready(booking: Booking) -> set[str]:
    return set(
        WarmImage.objects.filter(booking=booking, ready_at__isnull=False).values_list("node", flat=True)
    )


def test_nodes_without_the_image_pull_it_once_and_their_pods_go(house: Cast, api: Api, course: Image) -> None:
    first = book(house)
    Node.objects.filter(name="gpu-2").update(unschedulable=True)
    look(house)
    (pod,) = pods(house, api)
    assert node_of(pod) == "gpu-1" and not survey(house.cluster, api).found
    WarmImage.objects.update(pulled_since=None)  # as if the process had died before it wrote that down
    look(house)
    assert [one["metadata"]["uid"] for one in pods(house, api)] == [pod["metadata"]["uid"]]

    def is_done(booking: Booking, nodes: set[str]) -> bool:
        look(house)
        assert {node_of(one) for one in pods(house, api)} <= nodes
        return ready(booking) >= nodes and not pods(house, api)

    until(lambda: is_done(first, {"gpu-1"}), 30)
    Node.objects.update(unschedulable=False)
    second = book(house, title="later")
    until(lambda: is_done(second, {"gpu-2"}), 30)
    assert ready(second) == {"gpu-1", "gpu-2"}  # the one node told that it has the image already


def test_a_pod_that_no_booking_wants_is_removed(house: Cast, api: Api, course: Image) -> None:
    Image.objects.filter(pk=course.pk).update(reference="berth.local/course:2")
    book(house)
    look(house)
    assert {node_of(pod) for pod in pods(house, api)} == {"gpu-1", "gpu-2"}
    Booking.objects.update(cancelled_at=timezone.now())

    def is_gone() -> bool:
        look(house)
        return not pods(house, api)

    until(is_gone, 30)
    assert not WarmImage.objects.exists()


def test_an_image_that_cannot_be_pulled_is_given_up_with_the_reason(cast: Cast, course: Image) -> None:
    now = timezone.now()
    pod = {
        "metadata": {"creationTimestamp": (now - timedelta(minutes=3)).isoformat()},
        "spec": {"nodeName": "gpu-1"},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "pull", "state": {"waiting": {}}}]},
    }
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]  # type: ignore[index]
    assert looks.obstacle(pod, now) is None  # it pulls
    waiting |= {"reason": "ErrImagePull", "message": "pull access denied, repository does not exist"}
    found = looks.obstacle(pod, now)
    assert found is not None and found.code == "image_denied"
    assert looks.obstacle(pod, now - timedelta(minutes=2)) is None  # the kubelet tries again
    waiting |= {"reason": "CreateContainerError", "message": 'exec: "true": executable file not found'}
    assert looks.has_pulled(pod)
    pod["spec"] = {}
    assert looks.obstacle(pod, now) == looks.NOTHING  # its node is full


def test_what_a_node_removed_or_gave_up_is_pulled_again_after_ten_minutes(cast: Cast, course: Image) -> None:
    booking, now = book(cast), timezone.now()
    long_ago = now - timedelta(minutes=11)
    fields: dict[str, dict[str, Any]] = {
        "gone": {"ready_at": long_ago, "pulled_since": long_ago},
        "lately": {"ready_at": now - timedelta(minutes=9)},
        "full": {"ready_at": long_ago},  # its image is none of the 50 that it reports
        "reports": {"ready_at": long_ago},
        "refused": {"given_up_at": long_ago, "pulled_since": long_ago, "code": "image_denied"},
        "busy": {"given_up_at": now},
    }
    for node, values in fields.items():
        WarmImage.objects.create(booking=booking, image=course, node=node, **values)
    lists = {
        "full": [{"names": [f"other/{number}:1"]} for number in range(50)],
        "reports": [{"names": [COURSE]}],
    }
    mirror = Mirror(lambda: None)  # type: ignore[arg-type,return-value]
    nodes = [{"metadata": {"name": node}, "status": {"images": lists.get(node)}} for node in fields]
    mirror.replace("Node", nodes, "1")
    there = looks._there(cast.cluster, mirror, now)
    assert {pull.node for pull in there if pull.reference == COURSE} == {"lately", "full", "reports"}
    looks.plan(booking, list(fields), there)
    rows = WarmImage.objects.filter(ready_at=None, given_up_at=None, pulled_since=None)
    assert {(row.node, row.code) for row in rows} == {("gone", ""), ("refused", "image_denied")}
    assert ready(booking) == {"lately", "full", "reports"}


def test_the_pod_has_no_gpu_no_token_and_takes_no_room(cast: Cast, course: Image) -> None:
    cast.pool.tolerations = [{"key": "gpu", "operator": "Exists"}]
    row = WarmImage(booking=make_booking(cast, SOON), image=course, node="gpu-1")
    row.booking.pool = cast.pool
    spec = manifests.pod(row, Installation.current_id())["spec"]
    (container,) = spec["containers"]
    assert container["command"] == ["true"] and container["imagePullPolicy"] == "IfNotPresent"
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]
    assert set(container["resources"]["requests"].values()) == {"0"}
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    assert spec["tolerations"] == cast.pool.tolerations and "nodeName" not in spec
    assert spec["automountServiceAccountToken"] is False and spec["activeDeadlineSeconds"] == 1800


def test_images_are_those_of_the_tenant_and_its_class(cast: Cast, course: Image) -> None:
    Image.objects.create(slug="own-x", name="x", reference="registry.example/x:1", tenant=cast.second)
    Image.objects.create(slug="old", name="old", reference="berth.local/old:1", is_active=False)
    for tenant, slug in (
        (cast.demo, "jupyter"),
        (cast.demo, "old"),
        (cast.demo, "own-x"),
        (cast.second, "course"),
    ):
        Template.objects.create(tenant=tenant, name=slug, body={"image": slug, "flavor": "a100-1"})
    Template.objects.create(tenant=cast.demo, name="elsewhere", body={"image": "course", "pool": "other"})
    plain = make_booking(cast, SOON, title="no class")
    assert [image.slug for image in gathering.images_of(plain)] == ["jupyter"]
    assert [image.slug for image in gathering.images_of(book(cast))] == ["course", "jupyter"]


def test_people_of_the_tenant_see_how_far_it_is_and_nobody_else(cast: Cast, course: Image) -> None:
    booking, now = make_booking(cast, SOON), timezone.now()
    WarmImage.objects.create(booking=booking, image=course, node="gpu-1", ready_at=now)
    WarmImage.objects.create(
        booking=booking,
        image=course,
        node="gpu-2",
        given_up_at=now,
        code="image_not_found",
        data={"image": COURSE},
    )
    body = api_client(cast.victor).get(f"/api/v1/bookings/{booking.pk}/").json()
    (one,) = body["images_warm"]
    assert (one["image"], one["nodes_ready"], one["nodes"]) == ("course", 1, 2)
    assert one["problem"]["code"] == "image_not_found"
    assert (
        "Course: ready on 1 of 2 nodes" in browser(cast.bob).get(f"/bookings/{booking.pk}/").content.decode()
    )
    (others,) = api_client(cast.carol).get("/api/v1/bookings/").json()["results"]
    assert others["images_warm"] is None


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_watch_warms_by_itself(house: Cast, api: Api, course: Image) -> None:
    Image.objects.filter(pk=course.pk).update(reference="berth.local/course:3")
    booking = book(house)
    watch = ClusterWatch(house.cluster, Announcements())
    watch.start()
    try:
        until(lambda: ready(booking) == {"gpu-1", "gpu-2"} and not pods(house, api), 60)
    finally:
        watch.stop()
        watch.join(time.monotonic() + 10)
