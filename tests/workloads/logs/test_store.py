"""Storing of lines: whole chunks in order, once, whoever else writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cast import Cast
from tests.shared.log_rows import NOON, NOON_NS, make_stream, stored, write
from workloads.logs import readers, store
from workloads.logs.chunks import CHUNK_BYTES, Entry, size_of
from workloads.logs.intake import SECOND, moment
from workloads.logs.models import LogChunk, LogStream
from workloads.logs.readers import Line
from workloads.logs.store import Batch, Chunk, append, fill, times

pytestmark = pytest.mark.django_db
DAY = date(2026, 12, 27)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from([1, 30, 30_000, 65_535, 65_536, 80_000]), max_size=6), max_size=5))
def test_chunks_hold_all_lines_in_order_and_none_is_too_large(batches: list[list[int]]) -> None:
    filled: dict[int, Chunk] = {}
    open_chunk: Chunk | None = None
    first_line = 1
    for sizes in batches:
        entries = [Entry(NOON_NS + first_line + n, "x" * (size - 1)) for n, size in enumerate(sizes)]
        changed = fill(entries, times(entries, None), open_chunk, first_line, DAY)
        filled |= {chunk.first_line: chunk for chunk in changed}
        open_chunk = changed[-1] if changed else open_chunk
        first_line += len(entries)
    found = [entry for _, chunk in sorted(filled.items()) for entry in chunk.entries]
    assert [size_of(entry.text) for entry in found] == [size for sizes in batches for size in sizes]
    for chunk in filled.values():
        assert chunk.text_bytes == sum(size_of(entry.text) for entry in chunk.entries)
        assert chunk.text_bytes <= CHUNK_BYTES or len(chunk.entries) == 1


def test_a_chunk_lasts_an_hour_at_most() -> None:
    entries = [Entry(NOON_NS + minute * 60 * SECOND, "x") for minute in range(0, 121, 10)]
    chunks = fill(entries, times(entries, None), None, 1, DAY)
    assert [len(chunk.entries) for chunk in chunks] == [6, 6, 1]


def test_times_never_go_back_within_a_log() -> None:
    entries = [Entry(NOON_NS + offset * SECOND, "x") for offset in (5, 3, 6)]
    assert times(entries, moment(NOON_NS + 4 * SECOND)) == [NOON + timedelta(seconds=n) for n in (5, 5, 6)]
    assert times(entries, moment(NOON_NS + 9 * SECOND)) == [NOON + timedelta(seconds=9)] * 3


def test_lines_are_added_to_the_last_chunk_until_it_is_full(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    texts = [f"{number}\r{'x' * 400}" for number in range(400)]
    for begin in range(0, 400, 25):
        write(stream, texts[begin : begin + 25], at_ns=NOON_NS + begin * SECOND)
    assert stored(stream) == texts
    assert LogChunk.objects.count() == 3
    stream.refresh_from_db()
    assert (stream.lines, stream.last_ns) == (400, NOON_NS + 399 * SECOND)


def test_who_lost_the_lead_cannot_store_a_line_again(cast: Cast) -> None:
    stream, other = make_stream(cast.demo), make_stream(cast.demo)
    batch = Batch(stream.pk, 0, [Entry(NOON_NS, "once")])
    assert append([batch]) == set()
    assert append([batch, Batch(other.pk, 0, [Entry(NOON_NS, "of another")])]) == {stream.pk}
    assert (stored(stream), stored(other)) == (["once"], ["of another"])
    assert append([Batch(stream.pk, 1, [], has_ended=True)]) == set()
    assert append([Batch(stream.pk, 1, [Entry(NOON_NS, "late")])]) == {stream.pk}


def test_a_log_whose_last_chunk_is_gone_goes_on_with_a_new_one(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    write(stream, ["old"])
    LogChunk.objects.all().delete()
    write(stream, ["new"])
    assert [(chunk.first_line, chunk.last_line) for chunk in LogChunk.objects.all()] == [(2, 2)]


def test_readers_hear_what_is_stored(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Sequence[Line]] = []
    monkeypatch.setattr(readers, "_readers", [heard.append])
    stream = make_stream(cast.demo, index=3, attempt=2)
    write(stream, ["a", "b"])
    append([Batch(stream.pk, 0, [Entry(NOON_NS, "twice")])])
    [batch] = heard
    assert [line.text for line in batch] == ["a", "b"]
    assert batch[0] == Line("job", stream.holder_id, stream.run, 3, 2, NOON, "a")


def test_what_is_stored_is_known_when_reading_goes_on(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    write(stream, ["a", "b", "c"])
    stream.refresh_from_db()
    known = store.stored_of(stream)
    assert [known.has(Entry(NOON_NS + n * SECOND, text)) for n, text in enumerate("abcd")] == [
        False,  # from before the second that is asked for again
        True,
        True,
        False,
    ]


def test_queries_do_not_grow_with_logs(cast: Cast, django_assert_max_num_queries: object) -> None:
    streams = [make_stream(cast.demo) for _ in range(20)]
    for row in streams:
        write(row, ["first"])
    batches = [Batch(row.pk, 1, [Entry(NOON_NS, "next")]) for row in streams]
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        append(batches)
    assert LogStream.objects.filter(lines=2).count() == 20
