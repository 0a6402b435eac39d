"""Lines of a log as bytes, and the bits by which chunks are searched. Pure.

A chunk holds up to 64 KiB of text. Beside it stands a filter: a bit for each sequence of three bytes, and of five, in
the words of its lines, by a hash. Five tell numbers apart, of which any three digits are in most chunks. A chunk whose
filter lacks a bit of what is searched cannot hold it. So a search reads 3.5 KiB for a chunk instead of 64, and the
index is written with the lines. docs/operator/logs.md has figures.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

CHUNK_BYTES = 64 * 2**10
# Two rows with such a filter fit a page of PostgreSQL.
FILTER_BITS = 7 * 2**12
GRAMS = (3, 5)
LEVEL = 5


class Entry(NamedTuple):
    """Line by the node's clock: nanoseconds since 1970, and text without line feed."""

    ns: int
    text: str


def size_of(text: str) -> int:
    """Return the bytes of a line, with its line feed."""
    return (len(text) if text.isascii() else len(text.encode())) + 1


def pack(entries: Iterable[Entry]) -> bytes:
    return zlib.compress("".join(f"{ns} {text}\n" for ns, text in entries).encode(), LEVEL)


def unpack(data: bytes) -> list[Entry]:
    """Return the entries. Texts may hold anything but a line feed, so other line ends are left alone."""
    entries = []
    for line in zlib.decompress(data).decode().split("\n")[:-1]:
        ns, _, text = line.partition(" ")
        entries.append(Entry(int(ns), text))
    return entries


def holds(data: bytes, needle: str) -> bool:
    """Return False if no line of a chunk can hold this folded text."""
    return needle in folded(zlib.decompress(data).decode())


# --- search


def folded(text: str) -> str:
    """Return the text as it is compared: searches do not tell small letters from capitals."""
    return text.casefold()


def with_bits(grams: bytes, texts: Sequence[str]) -> bytes:
    """Return the filter with the bits of more lines; begin with b""."""
    bits = bytearray(grams or bytes(FILTER_BITS // 8))
    for number in _numbers("\n".join(texts)):
        bits[number >> 3] |= 1 << (number & 7)
    return bytes(bits)


def bits_of(search: str) -> list[int]:
    """Return the numbers of the bits that a chunk with this text has, as PostgreSQL's get_bit counts them."""
    return sorted(_numbers(search))


def _numbers(text: str) -> set[int]:
    grams: set[bytes] = set()
    for word in set(folded(text).split()):
        raw = word.encode()
        for length in GRAMS:
            grams.update(raw[begin : begin + length] for begin in range(len(raw) - length + 1))
    return {zlib.crc32(gram) % FILTER_BITS for gram in grams}
