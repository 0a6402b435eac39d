"""Examples of the requests in the table: each is sent over HTTP, as a person would send it, and looked at.

An example is a function of a `Scene`, in the module of `examples/` that is named for its room:

    @example("POST bookings/", "bookings/")
    def a_booking(scene: Scene) -> None:
        made = scene.alice.api("POST bookings/", BOOKING)
        assert scene.alice.api(f"GET bookings/{made['id']}/")["title"] == "class"

It names a request of the table and all rows of the table for which it stands. `test_parity.py` says which request of
which row has no example, and `test_examples.py` sends them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from tests.portal.parity import examples

if TYPE_CHECKING:
    from tests.portal.parity.scene import Scene

Play = Callable[["Scene"], None]
_examples: list[Example] = []


@dataclass(frozen=True)
class Example:
    request: str
    rows: tuple[str, ...]
    play: Play
    on_a_cluster: bool

    def __str__(self) -> str:
        return f"{self.rows[0]} by {self.request}"


def example(request: str, *rows: str, on_a_cluster: bool = False) -> Callable[[Play], Play]:
    """Add an example of the request, for these rows. `on_a_cluster`: pools and volumes of the cast really are there."""

    def added(play: Play) -> Play:
        _examples.append(Example(request, rows, play, on_a_cluster))
        return play

    return added


def all_examples() -> list[Example]:
    for module in iter_modules(examples.__path__, f"{examples.__name__}."):
        import_module(module.name)
    return list(_examples)
