"""Which images a booking's people will most likely start, and which node pulls which of them next. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

MOST_IMAGES = 3  # of a booking
MOST_NODES = 50  # of a booking
MOST_AT_ONCE = 3  # pulls in a pool: a registry serves others, too
MOST_FAILURES = 2  # nodes that could not get an image, after which no other tries
AGAIN_AFTER = timedelta(minutes=10)  # a kubelet reports its images later than its pods


@dataclass(frozen=True)
class Named:
    """Image as a launch names it: by its slug, or by its reference."""

    slug: str = ""
    reference: str = ""

    @classmethod
    def of(cls, launch: Mapping[str, Any]) -> Named:
        return cls(launch.get("image") or "", launch.get("image_reference") or "")


Counted = Iterable[tuple[Named, int]]


def likeliest(classes: Counted, recent: Counted, templates: Iterable[Named]) -> list[Named]:
    """Return the images, the likeliest first, each once.

    `classes`: of class launches with this booking, with their people; they start for certain. `recent`: of the tenant's
    workspaces in this pool, with the number of people. `templates`: of the tenant's templates for this pool.
    """
    sources = (classes, recent, Counter(templates).items())
    found = [name for source in sources for name in _most_first(source)]
    return list(dict.fromkeys(name for name in found if name != Named()))


def _most_first(counted: Counted) -> list[Named]:
    total: Counter[Named] = Counter()
    for name, count in counted:
        total[name] += count
    return sorted(total, key=lambda name: (-total[name], name.slug, name.reference))


class Pull(NamedTuple):
    """Image, by its complete reference, on a node."""

    reference: str
    node: str


def next_pulls(
    references: Sequence[str],
    nodes: Sequence[str],
    *,
    there: Collection[Pull],
    ready: Collection[Pull],
    under_way: Collection[Pull],
    given_up: Mapping[Pull, str],
    in_pool: int,
) -> list[Pull]:
    """Return what to pull now: the likeliest image on all nodes first, and few at once.

    `references` and `nodes`: in order. `there`: what nodes have. `ready`: what they had lately, for this booking.
    `under_way`: for any booking. `given_up`: for this one, with the code; a mishap that says nothing about the image
    has none. `in_pool`: pulls under way in its pool.
    """
    failures = Counter(pull.reference for pull, code in given_up.items() if code)
    wanted = (
        pull
        for pull in _each(references, nodes)
        if failures[pull.reference] < MOST_FAILURES
        and not any(pull in known for known in (there, ready, under_way, given_up))
    )
    free = max(0, MOST_AT_ONCE - in_pool)
    return [pull for pull, _place in zip(wanted, range(free), strict=False)]


def is_due_again(
    *, ready_at: datetime | None, given_up_at: datetime | None, is_there: bool, now: datetime
) -> bool:
    """Return True if an image is looked at as if anew: its node removed it, or it was given up a while ago."""
    ended_at = given_up_at or (None if is_there else ready_at)
    return ended_at is not None and now - ended_at > AGAIN_AFTER


def _each(references: Sequence[str], nodes: Sequence[str]) -> Iterator[Pull]:
    return (Pull(reference, node) for reference in references for node in nodes)
