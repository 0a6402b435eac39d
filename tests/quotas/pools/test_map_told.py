"""Agents' reports on the GPU map: how busy each GPU is, which pod has it, and why it is out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Gpu, Node, PodUsage
from quotas.pools.gpu_map import Kind, NodeRow, Segment
from quotas.pools.gpu_reports import GpuReport, ReportTexts, read_gpus
from quotas.pools.health import Trouble
from quotas.pools.map_queries import Nodes, Viewer
from quotas.pools.nodes import nodes_of
from quotas.templatetags.gpus import gpu_cells
from tests.cast import Cast, make_cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Cast:
    return make_cast()


def gpu(cast: Cast, index: int, *, node: str = "gpu-1", **values: Any) -> Gpu:
    told_now = {
        "memory_mib": 81_920,
        "utilization_percent": 73,
        "memory_used_mib": 12_595,
        "sample": {"temperature_celsius": 54},
        "seen_at": timezone.now(),
    }
    return Gpu(cluster=cast.cluster, node=node, uuid=f"GPU-{node}-{index}", index=index, **told_now | values)


def in_pod(workspace: Workspace) -> dict[str, str]:
    """Create the workspace's pod on gpu-1. Return its names as the kubelet reports them."""
    PodUsage.objects.create(
        cluster=workspace.pool.cluster,
        uid=str(workspace.pk),
        namespace="berth-demo",
        name=f"{workspace.name}-0",
        node="gpu-1",
        run=workspace.run,
        requests={workspace.pool.resource_name: 1},
    )
    return {"namespace": "berth-demo", "pod": f"{workspace.name}-0", "container": "main"}


def row(cast: Cast, node: str = "gpu-1") -> NodeRow:
    viewer, found = Viewer(cast.bob), Nodes.read([cast.pool], nodes_of([cast.pool]))
    found.look_closer(found.of(cast.pool), viewer)
    return found.row(cast.pool, Node.objects.get(name=node), 1, viewer)


def kinds(node: NodeRow) -> list[list[str]]:
    return [[str(part.kind) for part in gpu] for gpu in node.gpus]


def test_how_busy_a_gpu_is_is_said_in_words(cast: Cast) -> None:
    late = gpu(cast, 1, seen_at=timezone.now() - timedelta(minutes=5))
    mig = gpu(cast, 0, utilization_percent=None, memory_used_mib=None, sample={})
    Gpu.objects.bulk_create([mig, late, gpu(cast, 2)])
    [seen] = read_gpus([Node.objects.get(name="gpu-1")]).values()
    found = [ReportTexts().told(one) for one in seen]
    assert [one.words for one in found] == [
        "GPU 0: no metrics available",
        "GPU 1: no metrics at the moment",
        "GPU 2: 73% busy, 12.3 of 80 GiB of its memory in use, 54 °C",
    ]
    assert [one.use_percent for one in found] == [None, None, 73]


def test_a_unit_is_drawn_on_the_gpu_that_the_kubelet_gave(cast: Cast) -> None:
    held = in_pod(make_workspace(cast, cast.bob))
    Gpu.objects.bulk_create(gpu(cast, index, held_by=[held] if index == 2 else []) for index in range(4))
    assert kinds(row(cast)) == [["free"], ["free"], ["mine"], ["free"]]
    assert row(cast).words == "1 yours · 3 free"


def test_slices_of_one_gpu_are_drawn_on_it(cast: Cast) -> None:
    cast.pool.sharing, cast.pool.units_per_gpu = "time-slicing", 2
    cast.pool.save()
    held = in_pod(make_workspace(cast, cast.bob))
    Gpu.objects.bulk_create(gpu(cast, index, held_by=[held] if index == 1 else []) for index in range(2))
    assert kinds(row(cast)) == [["free", "free"], ["mine", "free"]]


def test_a_broken_gpu_is_out_where_it_is_and_says_why(cast: Cast) -> None:
    rows = [gpu(cast, index, out_code="gpu_lost" if index == 1 else "") for index in range(4)]
    Gpu.objects.bulk_create(rows)
    node = row(cast)
    assert kinds(node)[1] == ["out"]
    assert node.words == "4 out of use"  # the next pod there might get the broken one
    assert [one.is_broken for _parts, one in node.cells if one] == [False, True, False, False]
    assert node.told[1].words.startswith("GPU 1 is out of use.")


def test_what_the_device_plugin_withdrew_is_none_that_somebody_has(cast: Cast) -> None:
    held = in_pod(make_workspace(cast, cast.bob))
    Gpu.objects.bulk_create(gpu(cast, index, held_by=[held] if index == 3 else []) for index in range(4))
    resource = cast.pool.resource_name
    Node.objects.filter(name="gpu-1").update(capacity={resource: 4}, allocatable={resource: 3})
    assert kinds(row(cast)) == [["free"], ["free"], ["out"], ["mine"]]
    assert row(cast).words == "1 yours · 2 free · 1 out of use"


def test_who_holds_a_withdrawn_gpu_leaves_one_that_works_to_nobody(cast: Cast) -> None:
    held = in_pod(make_workspace(cast, cast.bob))
    Gpu.objects.bulk_create(
        [*(gpu(cast, index) for index in range(3)), gpu(cast, 3, out_code="gpu_lost", held_by=[held])]
    )
    resource = cast.pool.resource_name
    Node.objects.filter(name="gpu-1").update(capacity={resource: 4}, allocatable={resource: 3})
    assert row(cast).words == "1 yours · 2 free · 1 out of use"  # one of three usable GPUs is taken
    assert sorted(kinds(row(cast))) == [["free"], ["free"], ["mine"], ["out"]]


def test_where_agents_and_kubernetes_count_differently_places_are_not_claimed(cast: Cast) -> None:
    Gpu.objects.bulk_create(gpu(cast, index) for index in range(3))
    node = row(cast)
    assert node.words == "4 free"
    assert [one for _parts, one in node.cells] == [None] * 4
    assert len(node.told) == 3


def test_everybody_reads_how_busy_each_is_and_nobody_more_of_others_than_before(cast: Cast) -> None:
    held = in_pod(make_workspace(cast, cast.carol, name="carols-secret"))
    Gpu.objects.bulk_create(gpu(cast, index, held_by=[held] if index == 0 else []) for index in range(4))
    seen = browser(cast.bob).get("/gpus/").content.decode()
    assert "GPU 0: 73% busy" in seen
    for hidden in ("carol", "berth-demo", "GPU-gpu-1"):
        assert hidden not in seen


def test_one_query_reads_what_all_agents_tell(cast: Cast) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            browser(cast.bob).get("/gpus/")
        return len(queries)

    few = asked()
    Gpu.objects.bulk_create(gpu(cast, index, node=node) for node in ("gpu-1", "gpu-2") for index in range(4))
    assert asked() == few


def test_what_is_drawn_is_text_and_never_markup() -> None:
    piece, used = Segment(Kind.OTHER, 0, 50, "<b>&"), GpuReport("<i>", use_percent=80)
    drawn = gpu_cells(NodeRow("", Trouble.NONE, (), ((piece,),), told=(used,), is_by_card=True), is_cut=True)
    assert "<title>&lt;b&gt;&amp;\n&lt;i&gt;</title>" in drawn
    assert 'class="use-3" width="80%"' in drawn
    assert "<b>" not in drawn
    assert "<i>" not in drawn
