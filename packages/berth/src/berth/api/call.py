"""What a request to the API is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

Answer_co = TypeVar("Answer_co", covariant=True)
Row = TypeVar("Row")
Content = str | bytes | Iterable[bytes]


class Page(TypedDict, Generic[Row]):
    """One page of a list. `next`: address of the next one."""

    results: list[Row]
    next: str | None


@dataclass(frozen=True)
class Call(Generic[Answer_co]):
    """A request that is not sent yet. Its type says what the answer is."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None  # JSON
    content: Content | None = None
    content_type: str = "application/octet-stream"

    @property
    def is_repeatable(self) -> bool:
        """True if a second one does no more than the first."""
        return self.method in ("GET", "PUT", "DELETE") and isinstance(self.content, str | bytes | None)

    def asking(self, **query: Any) -> Call[Answer_co]:
        """Return the same with more in its query."""
        return replace(self, query={**self.query, **query})


def place(text: str) -> str:
    """Return the text as one part of an address."""
    return quote(str(text), safe="")
