"""Values over time, thinned: a part keeps a bounded number of points, however long it runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_POINTS = 256
Point = list[float]  # [step, value, seconds since 1970]


@dataclass
class Thinned:
    """Series that keeps one of each `stride` points that were added. When there are too many, every other one goes."""

    points: list[Point] = field(default_factory=list)
    stride: int = 1
    seen: int = 0

    def add(self, new: Iterable[Point]) -> None:
        for point in new:
            if self.seen % self.stride == 0:
                self.points.append(point)
            self.seen += 1
            if len(self.points) > MOST_POINTS:
                self.points = self.points[::2]
                self.stride *= 2
