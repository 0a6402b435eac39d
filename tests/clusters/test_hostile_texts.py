"""Tests that any message, even one printed by a hostile image, is read without failing and without taking long.

A pattern takes at most about n ** (d + 1) steps for a text of n characters, where d counts the unbounded repeats that
follow each other in one branch. An unbounded repeat inside another would take 2 ** n steps. So nesting is refused, d
is small, and texts are cut before they are read.
"""

from __future__ import annotations

import re
import time
from re import _constants as what  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from clusters.explain import BY_CODE, LONGEST_TEXT, TABLES, diagnose

CAUSES = [BY_CODE[code] for code in sorted(BY_CODE) if BY_CODE[code].pattern]
MOST_IN_A_ROW = 4
A_WHILE_SECONDS = 10


def in_a_row(tree: Any, *, inside: bool = False) -> int:
    """Return how many unbounded repeats follow each other in the branch that has most; refuse nested ones."""
    found = 0
    for name, told in tree:
        if name in (what.MAX_REPEAT, what.MIN_REPEAT, what.POSSESSIVE_REPEAT):
            _least, most, body = told
            endless = most is what.MAXREPEAT
            assert not (endless and inside), "a repeat without a bound inside another"
            found += endless + in_a_row(body, inside=inside or endless)
        elif name is what.BRANCH:
            found += max(in_a_row(branch, inside=inside) for branch in told[1])
        elif name is what.SUBPATTERN:
            found += in_a_row(told[3], inside=inside)
        elif name in (what.ASSERT, what.ASSERT_NOT):
            found += in_a_row(told[1], inside=inside)
    return found


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|b*)*c", r"(?:\w+\s?)*$"])
def test_this_measure_finds_a_pattern_that_takes_for_ever(pattern: str) -> None:
    with pytest.raises(AssertionError):
        in_a_row(parser.parse(pattern))


def test_no_pattern_takes_for_ever() -> None:
    for cause in CAUSES:
        for pattern in (cause.pattern, cause.details):
            assert in_a_row(parser.parse(pattern)) <= MOST_IN_A_ROW, cause.code


@pytest.mark.parametrize("source", TABLES)
def test_a_text_without_end_is_cut_before_it_is_read(source: str) -> None:
    text = "the flux capacitor hums, " * 400_000
    assert diagnose(source, text + "OOMKilled") == diagnose(source, text[:LONGEST_TEXT])
    assert len(diagnose(source, text).data["raw"]) <= LONGEST_TEXT


@pytest.mark.slow
@pytest.mark.parametrize("source", TABLES)
def test_the_words_of_the_patterns_again_and_again_are_read_in_a_while(source: str) -> None:
    """Time the worst case: texts that repeat the start of a pattern as often as fits and never complete it."""
    words = sorted({word for cause in CAUSES for word in re.findall(r"[\w ,:]{4,}", cause.pattern)})
    for word in words[:: len(TABLES)]:
        began = time.process_time()
        diagnose(source, word * LONGEST_TEXT)
        diagnose(source, f"{word} " * LONGEST_TEXT)
        assert time.process_time() - began < A_WHILE_SECONDS, word
