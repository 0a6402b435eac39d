"""Pipelines: the connected jobs with the versions between them, their picture, and what others see of them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.template.loader import render_to_string
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from jobs.models import Dependency, Job
from jobs.pipeline import graph as graphs
from jobs.pipeline.drawing import layers, picture_of
from jobs.pipeline.graph import Edge, Graph, Node, graph_of
from jobs.runs.following import After
from storage.models import LATEST
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.jobs.driving import RUNS, submitted
from tests.shared.clients import api as client_of
from tests.shared.datasets import dataset

pytestmark = pytest.mark.django_db


@st.composite
def acyclic(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 12))
    pairs = [(one, two) for two in range(size) for one in range(two)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else []
    nodes = tuple(Node(str(number), "job", "n" * number, "running") for number in range(size))
    order = draw(st.permutations(nodes))
    return Graph(tuple(order), tuple(Edge(str(one), str(two), "after") for one, two in chosen))


@given(acyclic())
def test_arrows_point_to_the_right_and_no_boxes_overlap(graph: Graph) -> None:
    depth = {node.id: column for column, nodes in enumerate(layers(graph)) for node in nodes}
    assert all(depth[edge.first] < depth[edge.then] for edge in graph.edges)
    picture = picture_of(graph, "0")
    assert {box.id for box in picture.boxes} == {node.id for node in graph.nodes}
    assert len({(box.x, box.y) for box in picture.boxes}) == len(graph.nodes)
    for box in picture.boxes:
        assert 0 <= box.x <= picture.width - box.width
        assert 0 <= box.y <= picture.height - box.height
    assert [step.box.id for step in picture.steps] == [box.id for box in picture.boxes]


def pipeline(cast: Cast) -> tuple[Job, Job, Job]:
    cast.cluster.dataset_class = "net-shared"
    cast.cluster.save()
    data = dataset(cast, "corpus")
    writer = submitted(cast, "prepare", ends=RUNS, writes=data.pk)
    wish = MountWish(volume=data.pk, path="/data", version=LATEST)
    reader = submitted(cast, "train", ends=RUNS, volumes=[wish], after=[After(writer.pk)])
    last = submitted(cast, "report", ends=RUNS, after=[After(reader.pk, "end")])
    submitted(cast, "unconnected", ends=RUNS)
    return writer, reader, last


def test_the_connected_jobs_and_what_they_write_and_read_are_one_graph(cast: Cast) -> None:
    writer, reader, last = pipeline(cast)
    found = graph_of(writer, cast.alice)
    for job in (writer, reader, last):
        found = graph_of(job, cast.alice)
        assert [node.name for node in found.nodes] == ["prepare", "train", "report", "corpus"]
    version = f"of-{writer.pk}"
    assert {(edge.first, edge.then, edge.kind, edge.on) for edge in found.edges} == {
        (str(writer.pk), str(reader.pk), "after", "success"),
        (str(reader.pk), str(last.pk), "after", "end"),
        (str(writer.pk), version, "writes", ""),
        (version, str(reader.pk), "reads", ""),
    }


def test_a_graph_takes_as_many_queries_for_many_jobs_as_for_one(
    cast: Cast, django_assert_max_num_queries: Any
) -> None:
    first = submitted(cast, "first", ends=RUNS)
    for number in range(8):
        submitted(cast, f"then {number}", ends=RUNS, after=[After(first.pk)])
    with django_assert_max_num_queries(6):
        assert len(graph_of(first, cast.alice).nodes) == 9


def test_a_large_graph_is_cut_off(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_JOBS", 3)
    first = submitted(cast, "first", ends=RUNS)
    for number in range(3):
        submitted(cast, f"then {number}", ends=RUNS, after=[After(first.pk)])
    found = graph_of(first, cast.alice)
    assert (len(found.nodes), found.is_whole) == (3, False)


def test_jobs_of_other_tenants_are_left_out(cast: Cast) -> None:
    first = submitted(cast, "first", ends=RUNS)
    other = submitted(cast, "other", ends=RUNS)
    Job.objects.filter(pk=other.pk).update(tenant=cast.second)
    Dependency.objects.create(job=other, predecessor=first)
    assert [node.name for node in graph_of(first, cast.alice).nodes] == ["first"]


def test_the_api_gives_nodes_and_edges(cast: Cast) -> None:
    writer, reader, _last = pipeline(cast)
    answer = client_of(cast.bob).get(f"/api/v1/jobs/{writer.pk}/pipeline/")
    assert (answer.status_code, answer.json()["is_whole"]) == (200, True)
    assert {"from": str(writer.pk), "to": str(reader.pk), "kind": "after", "on": "success"} in answer.json()[
        "edges"
    ]
    assert client_of(cast.carol).get(f"/api/v1/jobs/{writer.pk}/pipeline/").status_code == 404
    assert client_of(cast.bob).get(f"/api/v1/jobs/{uuid4()}/pipeline/").status_code == 404


def test_the_fragment_draws_it_and_says_it_as_a_list(cast: Cast, rf: RequestFactory) -> None:
    writer, _reader, _last = pipeline(cast)
    Job.objects.filter(pk=writer.pk).update(name="<prepare>")
    request = rf.get("/")
    request.user, request.session = cast.alice.user, SessionStore()
    html = render_to_string("jobs/_pipeline.html", {"job": writer, "request": request})
    assert html.count('class="box is-job') == 3
    assert html.count('class="box is-version') == 1
    assert "&lt;prepare&gt;" in html
    assert "<prepare>" not in html
    assert "style=" not in html
    assert "After train (in any case)" in html
    assert html.count('class="arrow is-after"') == 1  # what the version shows is not drawn twice
    alone = submitted(cast, "alone", ends=RUNS)
    assert "svg" not in render_to_string("jobs/_pipeline.html", {"job": alone, "request": request})
