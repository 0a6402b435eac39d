"""GPU-hours of a month, held and used: 1,000 runs that ended, and 200 GPUs that were held all of it"""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import Figure
from tests.bench.helpers.parts import call, installation, spread


def measure() -> Iterator[Figure]:
    with installation() as (_folder, environ):
        call(environ, "usage.seed")
        found = call(environ, "usage.read")
    yield Figure("figures that are kept", found["figures"], "rows")
    for when, said in (("before", "as the figures are"), ("after", "once days are summed up")):
        for what, seconds in found[when].items():
            yield from spread(f"{what}, {said}", seconds)[:2]
    yield Figure(f"to sum up {found['days']} days", found["summing up"] * 1000, "ms")
