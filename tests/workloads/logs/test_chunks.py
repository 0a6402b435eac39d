"""Lines as bytes, and the bits by which chunks are searched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workloads.logs.chunks import FILTER_BITS, Entry, bits_of, folded, pack, size_of, unpack, with_bits

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=60)
ENTRIES = st.lists(st.builds(Entry, st.integers(0, 2**63 - 1), TEXTS), max_size=20)


@given(ENTRIES)
def test_what_goes_into_a_chunk_comes_out(entries: list[Entry]) -> None:
    assert unpack(pack(entries)) == entries


@given(TEXTS)
def test_the_size_of_a_line_is_its_bytes(text: str) -> None:
    assert size_of(text) == len(f"{text}\n".encode())


def get_bit(grams: bytes, number: int) -> int:
    """Count as PostgreSQL does: https://www.postgresql.org/docs/current/functions-binarystring.html"""
    return grams[number // 8] >> (number % 8) & 1


@given(ENTRIES, ENTRIES, st.data())
def test_a_chunk_has_the_bits_of_all_that_is_in_it(
    before: list[Entry], after: list[Entry], data: st.DataObject
) -> None:
    grams = with_bits(with_bits(b"", [text for _, text in before]), [text for _, text in after])
    assert len(grams) == FILTER_BITS // 8
    for _, text in before + after:
        begin = data.draw(st.integers(0, len(text)))
        part = text[begin : data.draw(st.integers(begin, len(text)))]
        assert folded(part) in folded(text)
        for search in (part, part.upper().lower()):
            if folded(search) in folded(text):
                assert all(get_bit(grams, number) for number in bits_of(search))


def test_a_filter_of_a_full_chunk_tells_most_other_texts_apart() -> None:
    lines = [
        f"step {n} loss={n * 7919 % 9973 / 9973:.4f} throughput={n * 31 % 977} img/s" for n in range(1200)
    ]
    grams = with_bits(b"", lines)
    others = [f"needle-{n * 104729:x}-absent" for n in range(200)]
    passed = sum(all(get_bit(grams, number) for number in bits_of(text)) for text in others)
    assert passed == 0
