"""Reading a configuration's YAML: plain values, and the line of each, so that a fault can name it. Pure.

A file has maps, lists, texts, numbers, true, false and null, and nothing else: no tags, so that no object of Python is
made, and no anchors, so that a small file cannot stand for a large one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.utils.translation import gettext as _

from accounts.errors import Invalid

DEEPEST = 8  # maps and lists inside each other; a pool's tolerations need five
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
RESOLVER = yaml.resolver.Resolver()
PLAIN = yaml.constructor.SafeConstructor()
TAG = "tag:yaml.org,2002:"
MOST = 2**63  # of an integer; more is no amount of anything, and Python writes no text of 4,300 digits

Path = tuple[str | int, ...]
Faults = Mapping[int, Sequence[str]]


@dataclass
class Document:
    """Values of a file, and the line of each map's key and each list's item by its path."""

    values: dict[str, Any]
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, *path: str | int) -> int:
        """Return the line of a value; of what it is in, if it has none."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class Unreadable(Exception):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line, self.text = line, text


def read(text: str | bytes) -> Document:
    """Return what a file says. Raise Invalid with the line of the first fault in its syntax."""
    document = Document({})
    try:
        _fill(document, text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except UnicodeDecodeError:
        raise refused({1: [_("The file is not UTF-8.")]}) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or getattr(error, "reason", "")).strip()
        words = _("This is not YAML: %(problem)s.") % {"problem": problem[:200]}
        raise refused({mark.line + 1 if mark else 1: [words]}) from None
    except Unreadable as fault:
        raise refused({fault.line: [fault.text]}) from None
    return document


def refused(faults: Faults) -> Invalid:
    """Return the refusal of a file. Its fields are the lines, as in "line 12", from the first on."""
    return Invalid(
        "configuration_invalid",
        _("The configuration has faults. Nothing was changed."),
        _("See “fields” for the lines to correct."),
        fields={f"line {line}": faults[line] for line in sorted(faults)},
    )


def _fill(document: Document, text: str) -> None:
    events = _Events(text)
    found = [value for value in events.documents(document.lines) if value is not None]
    if len(found) > 1:
        raise Unreadable(1, _("Write one document: without “---” between its parts."))
    if found and not isinstance(found[0], dict):
        raise Unreadable(1, _("Write a map of kinds, as in “pools:”, with a list below each."))
    document.values = found[0] if found else {}


class _Events:
    """Makes values of the parser's events. Composing them by PyYAML would lose lines, and follow any depth."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=LOADER)

    def documents(self, lines: dict[Path, int]) -> Iterator[Any]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                yield self._value(next(self._events), (), lines)

    def _value(self, event: Any, path: Path, lines: dict[Path, int]) -> Any:
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:
            raise Unreadable(line, _("Anchors and aliases (& and *) are not allowed: write the value out."))
        if event.tag is not None:
            raise Unreadable(line, _("Tags (!) are not allowed: write the plain value."))
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event, line)
        if len(path) >= DEEPEST:
            raise Unreadable(line, _("The file nests too deeply."))
        if isinstance(event, yaml.SequenceStartEvent):
            return list(self._items(path, lines))
        return dict(self._pairs(path, lines))

    def _items(self, path: Path, lines: dict[Path, int]) -> Iterator[Any]:
        for number, event in enumerate(self._events):
            if isinstance(event, yaml.SequenceEndEvent):
                return
            lines[*path, number] = event.start_mark.line + 1
            yield self._value(event, (*path, number), lines)

    def _pairs(self, path: Path, lines: dict[Path, int]) -> Iterator[tuple[str, Any]]:
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            line = event.start_mark.line + 1
            key = event.value if isinstance(event, yaml.ScalarEvent) and event.tag is None else None
            if key is None:
                raise Unreadable(line, _("A key must be plain text."))
            if (*path, key) in lines:
                raise Unreadable(line, _("“%(key)s” is here twice.") % {"key": key[:80]})
            lines[*path, key] = line
            yield key, self._value(next(self._events), (*path, key), lines)


def _scalar(event: yaml.ScalarEvent, line: int) -> Any:
    """Return a plain text as the number, true, false or null that it is. What is in quotes stays text."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    tag: str = RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    node = yaml.ScalarNode(tag, text)
    kind = node.tag.removeprefix(TAG)
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return PLAIN.construct_yaml_bool(node)
        if kind == "int" and ":" not in text:  # 12:30 is a time, and not the number 750
            return _within(PLAIN.construct_yaml_int(node))
        if kind == "float" and ":" not in text:
            return _within(PLAIN.construct_yaml_float(node))
    except ValueError:
        raise Unreadable(line, _("Write a finite number of at most 64 bits.")) from None
    return text


def _within(number: int | float) -> int | float:
    """Return the number. Raise ValueError for infinity, for what is no number, and for integers beyond 64 bits."""
    if not (abs(number) < MOST if isinstance(number, int) else math.isfinite(number)):
        raise ValueError(MOST)
    return number
