"""Tests that an object with nonsense in it is skipped alone: all others are followed, listed and announced as ever."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest
from django.db import OperationalError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters import signals
from clusters.api import Api
from clusters.models import Cluster, Node, PodUsage, Watcher
from clusters.nodes.inventory import NodeTable, UsageTable, node_values
from clusters.transport import Json
from clusters.watch.announcements import Announcements
from clusters.watch.changes import Changes
from clusters.watch.skipping import reading
from clusters.watch.watcher import ClusterWatch, KindThread, Pods
from clusters.watch.watching import Changed, Follower
from tests.clusters.bodies import INSTALLATION, node_body, pod_body
from vitals import figures

SECRET = "hunter2"
MOST_LISTS = 3


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(slug="lab", name="Lab")


def skipped() -> float:
    return sum(
        count for (name, _), count in figures._tally.take().items() if name == "berth_watch_skipped_total"
    )


def versioned(body: Json, version: int, **metadata: Any) -> Json:
    metadata = {**body["metadata"], "resourceVersion": str(version), **metadata}
    return {**body, "kind": "Pod", "metadata": metadata}


# --- nonsense in any field

NONSENSE: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "",
        "\0",
        "\ud800",
        "x" * 300,
        -1,
        10**40,
        1.5,
        float("nan"),
        True,
        [],
        [None],
        ["\0"],
        {},
        {"a": {}},
    ]
)
Path = tuple[Any, ...]


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Yield the path of each field, however deep, without the version, which is the watch's own."""
    parts: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in parts:
        if key != "resourceVersion":
            yield (*at, key)
            yield from paths(part, (*at, key))


def with_nonsense(body: Json, at: Path, nonsense: Any) -> Json:
    changed = copy.deepcopy(body)
    holder: Any = changed
    for key in at[:-1]:
        holder = holder[key]
    holder[at[-1]] = nonsense
    return changed


class Told:
    """Cluster that lists the items, streams the events, and is then gone."""

    def __init__(self, items: list[Json], events: list[tuple[str, Json]]) -> None:
        self.items, self.events = items, events
        self.lists = 0
        self.follower: Follower | None = None

    def list_with_version(
        self, kind: str, *, labels: Mapping[str, str] | None = None, keep: Callable[[Json], Any]
    ) -> tuple[list[Any], str]:
        self.lists += 1
        if self.lists > MOST_LISTS and self.follower is not None:  # otherwise a failing test would never end
            self.follower.stopped.set()
        return [keep(copy.deepcopy(body)) for body in self.items], "10"

    def watch(self, kind: str, **_: Any) -> Any:
        return Stream(self)


class Stream:
    def __init__(self, told: Told) -> None:
        self._told = told

    def __iter__(self) -> Iterator[str]:
        for change, body in self._told.events:
            yield json.dumps({"type": change, "object": body})
        assert self._told.follower is not None
        self._told.follower.stopped.set()

    def close(self) -> None:
        pass


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusters.watch.watcher.PAUSE_AFTER_FAULT_SECONDS", 0.01)


def followed(cluster: Cluster, told: Told) -> KindThread:
    """Return a thread that follows all pods of the cluster until its stream ends."""
    watch = ClusterWatch(cluster, Announcements())
    pods = Pods(watch, Announcements(), INSTALLATION)
    follower = Follower(lambda: cast(Api, told), "Pod", keep=pods.keep)
    told.follower = follower
    return KindThread(watch, follower, pods)


RICH = versioned(pod_body("odd", **{"berth.dev/instance": INSTALLATION}), 11)
RICH["metadata"] |= {
    "annotations": {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,100,10"},
    "managedFields": [{"time": "2026-03-01T10:00:00Z"}],
    "ownerReferences": [{"uid": "o"}],
}
RICH["status"]["conditions"] = [{"type": "Ready", "lastTransitionTime": "2026-03-01T10:00:00Z"}]


@pytest.mark.django_db(transaction=True)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.sampled_from(sorted(paths(RICH), key=str)), nonsense=NONSENSE)
def test_nonsense_in_a_pod_affects_no_other(short_pauses: None, at: Path, nonsense: Any) -> None:
    Cluster.objects.all().delete()
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    PodUsage.objects.create(cluster=cluster, uid="gone", namespace="a", name="b", node="n1")
    odd = with_nonsense(RICH, at, nonsense)
    changes = (
        ["ADDED", "MODIFIED", "DELETED"] if at != ("metadata",) else []
    )  # without metadata, and so without a version, it is no event
    told = Told(
        [versioned(pod_body("a"), 1), odd, versioned(pod_body("b"), 2)],
        [
            *((change, odd) for change in changes),
            ("DELETED", versioned(pod_body("a"), 12)),
            ("ADDED", versioned(pod_body("c"), 13)),
        ],
    )
    followed(cluster, told).run()
    uids = set(PodUsage.objects.values_list("uid", flat=True))
    assert (uids & {"a", "b", "c", "gone"}, told.lists) == ({"b", "c"}, 1)


@pytest.mark.django_db
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.sampled_from(sorted(paths(node_body("odd", taints=[{"key": "a"}])), key=str)), nonsense=NONSENSE)
def test_nonsense_in_a_node_affects_no_other(at: Path, nonsense: Any) -> None:
    Cluster.objects.all().delete()
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    Node.objects.create(cluster=cluster, name="gone")
    odd = with_nonsense(node_body("odd", taints=[{"key": "a"}]), at, nonsense)
    read = reading("lab", "Node", node_values)
    NodeTable(cluster).replace(map(read, [node_body("n1"), odd, node_body("n2")]))
    assert set(Node.objects.values_list("name", flat=True)) >= {"n1", "n2"}
    assert not Node.objects.filter(name="gone").exists()


# --- rows and logs of skipped objects


@pytest.mark.parametrize("quantity", ["seven", 1], ids=["unreadable", "refused by the database"])
def test_the_row_of_a_skipped_object_stays(
    cluster: Cluster, quantity: Any, caplog: pytest.LogCaptureFixture
) -> None:
    table = UsageTable(cluster, INSTALLATION)
    table.put(pod_body("odd"))
    odd = pod_body("odd")
    odd["spec"]["containers"][0]["resources"]["requests"] = {"cpu": quantity, f"{SECRET}\0": "1"}
    read = reading("lab", "Pod", table.values)
    figures._tally.begin_anew()

    table.replace(map(read, [odd, pod_body("a")]))
    assert set(PodUsage.objects.values_list("uid", "requests__cpu")) == {("odd", 500), ("a", 500)}
    assert skipped() == 1
    (line,) = [record.getMessage() for record in caplog.records if record.name == "clusters.watch.skipping"]
    assert "lab: skipped Pod 'berth-demo/ws-odd'" in line
    assert SECRET not in line

    mended = pod_body("odd")
    mended["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2"}
    assert table.put(mended)
    assert PodUsage.objects.get(uid="odd").requests["cpu"] == 2000
    table.replace(map(read, [odd, pod_body("a")]))
    assert table.remove(odd)
    assert [row.uid for row in PodUsage.objects.all()] == ["a"]


@pytest.mark.django_db(transaction=True)
def test_without_the_database_nothing_is_skipped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, short_pauses: None
) -> None:
    cluster = Cluster.objects.create(slug="lab", name="Lab")
    told = Told([], [("ADDED", versioned(pod_body("a"), 12))])
    thread = followed(cluster, told)
    put, failures = UsageTable.put, iter([OperationalError("the database system is shutting down")])

    def away_once(table: UsageTable, body: Json) -> bool:
        for failure in failures:
            raise failure
        return put(table, body)

    monkeypatch.setattr(UsageTable, "put", away_once)
    figures._tally.begin_anew()
    thread.run()
    assert told.lists == 2
    assert skipped() == 0
    assert "the database is away" in caplog.text
    assert PodUsage.objects.filter(uid="a").exists()
    assert Watcher.objects.filter(cluster=cluster, kind="Pod").exists()


@pytest.mark.django_db(transaction=True)
def test_a_change_that_a_receiver_fails_on_is_skipped_alone(caplog: pytest.LogCaptureFixture) -> None:
    heard: set[str] = set()

    def receive(*, changes: list[Changed], **_: Any) -> None:
        names = {step.body["metadata"]["labels"]["name"] for step in changes}
        heard.update(names)

    signals.objects_changed.connect(receive)
    try:
        gathering = Changes(Cluster(slug="lab"))
        for uid, labels in (("a", {"name": "a"}), ("odd", []), ("b", {"name": "b"}), ("c", {"name": "c"})):
            body = {"kind": "Pod", "metadata": {"uid": uid, "name": uid, "labels": labels}, "spec": {}}
            gathering.add(Changed("MODIFIED", body))
        figures._tally.begin_anew()
        assert gathering._tell()
    finally:
        signals.objects_changed.disconnect(receive)
    assert heard == {"a", "b", "c"}
    assert skipped() == 1
    assert "lab: skipped Pod 'odd'" in caplog.text
