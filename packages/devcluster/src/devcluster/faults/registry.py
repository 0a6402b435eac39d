"""Faults on demand, so that tests and trials can see how a client copes with a broken cluster.

`POST /_faults` with one JSON object switches a fault on, `GET /_faults` lists active faults, `DELETE /_faults/ID` ends
one and `DELETE /_faults` ends all. Only the admin may call them. The node file's `faults` are active from the start.

A module that can fail offers switches: a `Switch` holds the word that selects it in a spec, the other members that
the spec may have, and the function that begins the fault. docs/reference.md has a table of all switches.
"""

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from devcluster.errors import bad_request
from devcluster.resources import Obj


@dataclass
class Fault:
    """Active fault. `hits`: how often a call or step met it; `released`: set when the fault ends."""

    id: int
    spec: Obj
    hits: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def shown(self) -> Obj:
        return {"id": self.id, "hits": self.hits, **self.spec}

    def matches(self, facts: Mapping[str, str]) -> bool:
        """Return True if the facts that `match` names have its values or fit its patterns (`*`)."""
        wanted = self.spec.get("match") or {}
        return all(fnmatchcase(facts[name], str(pattern)) for name, pattern in wanted.items())


End = Callable[[], object]
Begin = Callable[[Fault], End | None]
"""Begins a fault and gives what ends it; None for what happens once."""


@dataclass(frozen=True)
class Switch:
    """Kind of fault. `begin` may raise ApiError (`bad_request`) if a member's value makes no sense."""

    words: tuple[str, ...]
    """A spec that has one of these members is for this switch."""
    members: frozenset[str]
    """What else the spec may have."""
    begin: Begin


class Faults:
    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._switches: list[Switch] = []
        self._on: dict[int, tuple[Fault, End]] = {}

    def offer(self, *switches: Switch) -> None:
        self._switches += switches

    def add(self, spec: Obj) -> Obj:
        switch = self._switch_of(spec)
        fault = Fault(next(self._ids), spec)
        end = switch.begin(fault)
        if end is not None:
            self._on[fault.id] = fault, end
        return {"id": fault.id, **spec}

    def _switch_of(self, spec: Obj) -> Switch:
        if not isinstance(spec, dict):
            raise bad_request("a fault is a JSON object")
        found = [s for s in self._switches if any(word in spec for word in s.words)]
        if len(found) != 1:
            words = ", ".join(word for s in self._switches for word in s.words)
            given = ", ".join(sorted(spec)) or "nothing"
            raise bad_request(f"a fault names one of: {words}; given: {given}")
        known = found[0].members | set(found[0].words)
        if unknown := sorted(set(spec) - known):
            what = f"{', '.join(unknown)}; {found[0].words[0]} knows {', '.join(sorted(known))}"
            raise bad_request(f"unknown in this fault: {what}")
        return found[0]

    def list(self) -> Obj:
        return {"faults": [fault.shown for fault, _ in self._on.values() if not fault.released.is_set()]}

    def remove(self, fault_id: int | None = None) -> None:
        """End one fault, or all if no id is given."""
        for known in [fault_id] if fault_id is not None else list(self._on):
            fault, end = self._on.pop(known, (None, None))
            if fault and end:
                fault.released.set()
                end()


def one_of(spec: Obj, member: str, values: tuple[str, ...]) -> str:
    """Return a member's value; raise ApiError (`bad_request`) if it is none of `values`."""
    value = spec.get(member)
    if value not in values:
        raise bad_request(f'unknown {member} "{value}"; it is one of: {", ".join(values)}')
    return str(value)


def check_match(spec: Obj, known: Collection[str]) -> None:
    match = spec.get("match") or {}
    if not isinstance(match, dict):
        raise bad_request("match is an object")
    if unknown := sorted(match.keys() - known):
        raise bad_request(f"unknown match: {', '.join(unknown)}; it knows {', '.join(sorted(known))}")


def number(spec: Obj, member: str, default: float = 0) -> float:
    value = spec.get(member, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise bad_request(f"{member} is a number, 0 or more")
    return value
