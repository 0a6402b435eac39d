"""Reading of stored lines: each page goes on where the last ended, in order of time, over all logs."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import Q
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cast import Cast
from tests.shared.log_rows import NOON, NOON_NS, make_stream, write
from workloads.logs import chunks, reading, store
from workloads.logs.intake import SECOND
from workloads.logs.models import LogChunk
from workloads.logs.reading import Cursor, Wanted, last, of_holder, page

pytestmark = pytest.mark.django_db
SETTINGS = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def all_pages(wanted: Wanted, limit: int) -> list[reading.Shown]:
    found, after = [], None
    for _ in range(200):
        one = page(wanted, after, limit)
        assert len(one.lines) <= limit
        found += one.lines
        if one.following is None:
            return found
        after = Cursor.parse(str(one.following))
    raise AssertionError("the pages have no end")


LOGS = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["ok", "Error: x", "step"]))), max_size=4
)


@pytest.mark.slow
@SETTINGS
@given(LOGS, st.booleans(), st.integers(1, 7), st.sampled_from(["", "ERROR", "e", "step"]), st.integers(1, 4))
def test_pages_show_each_wanted_line_once_and_in_order(
    cast: Cast, logs: list[list[tuple[int, str]]], newest_first: bool, limit: int, search: str, most: int
) -> None:
    holder = uuid4()
    expected = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "CHUNK_BYTES", 20)
        patch.setattr(reading, "MOST_CHUNKS", most)
        for log in logs:
            stream = make_stream(cast.demo, holder)
            at = NOON_NS
            for number, (gap, text) in enumerate(log, 1):
                at += gap * SECOND
                write(stream, [text], at_ns=at)
                if search.casefold() in text.casefold():
                    expected.append((at // 1000, stream.pk, number, text))
        wanted = Wanted(of_holder(holder), search, newest_first=newest_first)
        found = all_pages(wanted, limit)
    assert [(*line.cursor, line.text) for line in found] == sorted(expected, reverse=newest_first)


def test_a_part_an_attempt_and_a_time_can_be_chosen(cast: Cast) -> None:
    holder = uuid4()
    for index in (0, 1):
        for attempt in (1, 2):
            stream = make_stream(cast.demo, holder, index=index, attempt=attempt)
            write(stream, [f"{index}/{attempt}/{n}" for n in range(3)])
    make = of_holder(holder, index=1, attempt=2)
    assert [line.text for line in page(Wanted(make), None, 9).lines] == ["1/2/0", "1/2/1", "1/2/2"]
    second = timedelta(seconds=1)
    one_second = Wanted(of_holder(holder, index=0), since=NOON + second, until=NOON + 2 * second)
    found = page(one_second, None, 9).lines
    assert [line.text for line in found] == ["0/1/1", "0/2/1"]


def test_the_last_lines_come_in_order(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    write(stream, [str(n) for n in range(100)])
    assert [line.text for line in last(Wanted(of_holder(stream.holder_id)), 3)] == ["97", "98", "99"]


@pytest.mark.parametrize(
    "text", ["", "1.2", "1.2.3.4", "a.b.c", "1.2.-3", "1.2.٣", f"{10**18}.1.1", f"1.{2**70}.1"]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Cursor.parse(text)


def test_the_filter_spares_chunks_without_the_words(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = make_stream(cast.demo)
    for number in range(30):
        write(stream, [f"epoch {number}: all is well {'x' * 60_000}"], at_ns=NOON_NS + number * SECOND)
    write(stream, ["CUDA out of memory"], at_ns=NOON_NS + 99 * SECOND)
    opened: list[bytes] = []

    def unpack(data: bytes) -> list[chunks.Entry]:
        opened.append(data)
        return chunks.unpack(data)

    monkeypatch.setattr(reading, "unpack", unpack)
    found = page(Wanted(Q(tenant_id=cast.demo.pk), "cuda OUT of"), None, 10)
    assert ([line.text for line in found.lines], len(opened)) == (["CUDA out of memory"], 1)


def test_queries_do_not_grow_with_what_is_stored(cast: Cast, django_assert_max_num_queries: object) -> None:
    stream = make_stream(cast.demo)
    for number in range(40):
        write(stream, ["x" * 40_000], at_ns=NOON_NS + number * SECOND)
    assert LogChunk.objects.count() == 40
    with django_assert_max_num_queries(1):  # type: ignore[operator]
        page(Wanted(of_holder(stream.holder_id)), None, 5)
