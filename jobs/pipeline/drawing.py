"""Places of a pipeline's boxes and arrows in a picture, and its steps as a list. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.models import Phase

from .graph import Edge, Graph, Node

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 56, 64, 20, 8
MOST_LETTERS = 23
TONES = {
    "succeeded": "ok", "ready": "ok", "failed": "bad", "waiting": "warn", "pending": "warn", "": "warn",
    "starting": "info", "running": "info",
}  # fmt: skip
OF_VERSIONS: Mapping[str, str | Promise] = {
    "": gettext_lazy("not published yet"),
    "pending": gettext_lazy("being published"),
    "ready": gettext_lazy("published"),
    "failed": gettext_lazy("not published"),
    "deleting": gettext_lazy("being deleted"),
    "deleted": gettext_lazy("deleted"),
}


@dataclass(frozen=True)
class Box:
    id: str
    kind: str
    x: int
    y: int
    title: str
    short: str
    words: str
    tone: str
    is_this: bool
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def rounding(self) -> int:
        return 8 if self.kind == "job" else self.height // 2

    @property
    def text_x(self) -> int:
        return self.x + 12

    @property
    def title_y(self) -> int:
        return self.y + 23

    @property
    def words_y(self) -> int:
        return self.y + 43


@dataclass(frozen=True)
class Arrow:
    path: str
    kind: str


@dataclass(frozen=True)
class Step:
    """Line of the list: a job, with the names of what it waits for, reads and writes."""

    box: Box
    after: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Picture:
    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    steps: tuple[Step, ...]
    is_whole: bool

    @property
    def is_worth_it(self) -> bool:
        """True if there is more than the one job."""
        return len(self.boxes) > 1


def picture_of(graph: Graph, this: str) -> Picture:
    columns = layers(graph)
    places = {
        node.id: (MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y))
        for column, nodes in enumerate(columns)
        for row, node in enumerate(nodes)
    }
    boxes = tuple(_box(node, *places[node.id], this) for nodes in columns for node in nodes)
    rows = max((len(nodes) for nodes in columns), default=0)
    return Picture(
        width=2 * MARGIN + len(columns) * (WIDTH + GAP_X) - GAP_X,
        height=2 * MARGIN + rows * (HEIGHT + GAP_Y) - GAP_Y,
        boxes=boxes,
        arrows=tuple(
            Arrow(_path(places[one.first], places[one.then]), one.kind) for one in drawn(graph.edges)
        ),
        steps=_steps(graph, boxes),
        is_whole=graph.is_whole,
    )


def drawn(edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges without those between two jobs of which one writes the version that the other reads."""
    read = {(edge.first, edge.then) for edge in edges if edge.kind == "reads"}
    written = [(edge.first, edge.then) for edge in edges if edge.kind == "writes"]
    shown = {(job, then) for job, version in written for first, then in read if first == version}
    return [edge for edge in edges if edge.kind != "after" or (edge.first, edge.then) not in shown]


def layers(graph: Graph) -> list[list[Node]]:
    """Return the nodes in columns: each stands behind all that come before it, near those that it follows."""
    before: defaultdict[str, list[str]] = defaultdict(list)
    for edge in graph.edges:
        before[edge.then].append(edge.first)
    depths: dict[str, int] = {}
    left = list(graph.nodes)
    while left:
        able = [node for node in left if all(first in depths for first in before[node.id])]
        if not able:
            raise ValueError("jobs wait in a circle")
        for node in able:
            depths[node.id] = max((depths[first] + 1 for first in before[node.id]), default=0)
        left = [node for node in left if node.id not in depths]
    columns: list[list[Node]] = [[] for _column in range(max(depths.values(), default=-1) + 1)]
    for node in graph.nodes:
        columns[depths[node.id]].append(node)
    rows: dict[str, int] = {}
    for column in columns:
        column.sort(key=lambda node: _mean([rows[first] for first in before[node.id]]))
        rows |= {node.id: row for row, node in enumerate(column)}
    return columns


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def _box(node: Node, x: int, y: int, this: str) -> Box:
    title = title_of(node)
    short = title if len(title) <= MOST_LETTERS else title[: MOST_LETTERS - 1] + "…"
    words = Phase(node.phase).label if node.kind == "job" else OF_VERSIONS.get(node.phase, node.phase)
    tone = TONES.get(node.phase, "muted")
    return Box(node.id, node.kind, x, y, title, short, str(words), tone, node.id == this)


def title_of(node: Node) -> str:
    return node.name if node.kind == "job" or node.number is None else f"{node.name} v{node.number}"


def _path(first: tuple[int, int], then: tuple[int, int]) -> str:
    """Return a curve from the right of one box to the left of another, as SVG has it."""
    x, y = first[0] + WIDTH, first[1] + HEIGHT // 2
    to_x, to_y = then[0] - 5, then[1] + HEIGHT // 2  # the arrow's head has its place
    bend = GAP_X // 2
    return f"M{x} {y} C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"


def _steps(graph: Graph, boxes: Sequence[Box]) -> tuple[Step, ...]:
    titles = {node.id: title_of(node) for node in graph.nodes}

    def named(edges: list[Edge], *, at_then: bool) -> list[str]:
        return [
            titles[edge.then if at_then else edge.first]
            + (f" ({_('in any case')})" if edge.on == "end" else "")
            for edge in edges
        ]

    by: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        by[edge.first if edge.kind == "writes" else edge.then, edge.kind].append(edge)
    return tuple(
        Step(
            box,
            after=named(by[box.id, "after"], at_then=False),
            reads=named(by[box.id, "reads"], at_then=False),
            writes=named(by[box.id, "writes"], at_then=True),
        )
        for box in boxes
        if box.kind == "job"
    )
