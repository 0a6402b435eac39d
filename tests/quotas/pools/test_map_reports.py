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
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def gpu(cast: Cast, index: int, *, node: str = "gpu-1", **values: Any) -> Gpu:
    use = {"utilization_percent": 73, "memory_used_mib": 12_595, "sample": {"temperature_celsius": 54}}
    reported = {"memory_mib": 81_920, "seen_at": timezone.now(), **use}
    return Gpu(cluster=cast.cluster, node=node, uuid=f"GPU-{node}-{index}", index=index, **reported | values)


def report(cast: Cast, count: int = 4, *, held: int | None = None, broken: int | None = None) -> None:
    """Create GPUs of gpu-1 as the agent reports them. Bob's workspace has the one that is held."""
    pod = in_pod(make_workspace(cast, cast.bob)) if held is not None else {}
    Gpu.objects.bulk_create(
        gpu(cast, at, held_by=[pod] if at == held else [], out_code="gpu_lost" if at == broken else "")
        for at in range(count)
    )


def in_pod(workspace: Workspace) -> dict[str, str]:
    """Create the workspace's pod on gpu-1. Return its names as the kubelet reports them."""
    names = {"namespace": "berth-demo", "name": f"{workspace.name}-0"}
    counted = {"run": workspace.run, "requests": {workspace.pool.resource_name: 1}}
    cluster, uid = workspace.pool.cluster, str(workspace.pk)
    PodUsage.objects.create(cluster=cluster, uid=uid, node="gpu-1", **names, **counted)
    return {"namespace": names["namespace"], "pod": names["name"], "container": "main"}


def offer_three_of_four(cast: Cast) -> None:
    resource = cast.pool.resource_name
    Node.objects.filter(name="gpu-1").update(capacity={resource: 4}, allocatable={resource: 3})


def row(cast: Cast, node: str = "gpu-1") -> NodeRow:
    viewer, found = Viewer(cast.bob), Nodes.read([cast.pool], nodes_of([cast.pool]))
    found.look_closer(found.of(cast.pool), viewer)
    return found.row(cast.pool, Node.objects.get(name=node), 1, viewer)


def kinds(node: NodeRow) -> list[list[str]]:
    return [[str(part.kind) for part in gpu] for gpu in node.gpus]


def test_the_use_of_a_gpu_is_said_in_words(cast: Cast) -> None:
    late = gpu(cast, 1, seen_at=timezone.now() - timedelta(minutes=5))
    mig = gpu(cast, 0, utilization_percent=None, memory_used_mib=None, sample={})
    Gpu.objects.bulk_create([mig, late, gpu(cast, 2)])
    [seen] = read_gpus([Node.objects.get(name="gpu-1")]).values()
    found = [ReportTexts().report_on(one) for one in seen]
    assert [one.words for one in found] == [
        "GPU 0: no metrics available",
        "GPU 1: no metrics at the moment",
        "GPU 2: 73% busy, 12.3 of 80 GiB of its memory in use, 54 °C",
    ]
    assert [one.use_percent for one in found] == [None, None, 73]


def test_a_unit_is_drawn_on_the_gpu_that_the_kubelet_gave(cast: Cast) -> None:
    report(cast, held=2)
    assert kinds(row(cast)) == [["free"], ["free"], ["mine"], ["free"]]
    assert row(cast).words == "1 yours · 3 free"


def test_slices_of_one_gpu_are_drawn_on_it(cast: Cast) -> None:
    cast.pool.sharing, cast.pool.units_per_gpu = "time-slicing", 2
    cast.pool.save()
    report(cast, 2, held=1)
    assert kinds(row(cast)) == [["free", "free"], ["mine", "free"]]


def test_a_broken_gpu_is_out_where_it_is_and_says_why(cast: Cast) -> None:
    report(cast, broken=1)
    node = row(cast)
    assert kinds(node)[1] == ["out"]
    assert node.words == "4 out of use"  # the next pod there might get the broken one
    assert [one.is_broken for _parts, one in node.cells if one] == [False, True, False, False]
    assert node.reports[1].words.startswith("GPU 1 is out of use.")


def test_a_withdrawn_gpu_is_drawn_on_one_that_nobody_has(cast: Cast) -> None:
    report(cast, held=3)
    offer_three_of_four(cast)
    assert kinds(row(cast)) == [["free"], ["free"], ["out"], ["mine"]]
    assert row(cast).words == "1 yours · 2 free · 1 out of use"


def test_a_run_on_a_withdrawn_gpu_keeps_one_that_works_from_others(cast: Cast) -> None:
    report(cast, held=3, broken=3)
    offer_three_of_four(cast)
    assert row(cast).words == "1 yours · 2 free · 1 out of use"  # one of three usable GPUs is taken
    assert sorted(kinds(row(cast))) == [["free"], ["free"], ["mine"], ["out"]]


def test_where_agents_and_kubernetes_count_differently_places_are_not_claimed(cast: Cast) -> None:
    report(cast, 3)
    node = row(cast)
    assert node.words == "4 free"
    assert [one for _parts, one in node.cells] == [None] * 4
    assert len(node.reports) == 3


def test_everybody_sees_the_use_of_each_gpu_and_no_names_of_others(cast: Cast) -> None:
    held = in_pod(make_workspace(cast, cast.carol, name="carols-secret"))
    Gpu.objects.bulk_create(gpu(cast, index, held_by=[held] if index == 0 else []) for index in range(4))
    seen = browser(cast.bob).get("/gpus/").content.decode()
    assert "GPU 0: 73% busy" in seen
    for hidden in ("carol", "berth-demo", "GPU-gpu-1"):
        assert hidden not in seen


def test_one_query_reads_all_reports(cast: Cast) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            browser(cast.bob).get("/gpus/")
        return len(queries)

    few = asked()
    Gpu.objects.bulk_create(gpu(cast, index, node=node) for node in ("gpu-1", "gpu-2") for index in range(4))
    assert asked() == few


def test_words_in_the_drawing_are_escaped() -> None:
    piece, used = Segment(Kind.OTHER, 0, 50, "<b>&"), GpuReport("<i>", use_percent=80)
    drawn = gpu_cells(
        NodeRow("", Trouble.NONE, (), ((piece,),), reports=(used,), is_by_card=True), is_cut=True
    )
    assert "<title>&lt;b&gt;&amp;\n&lt;i&gt;</title>" in drawn
    assert 'class="use-3" width="80%"' in drawn
    assert "<b>" not in drawn
    assert "<i>" not in drawn
