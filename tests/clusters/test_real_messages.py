"""Tests that real messages are recognised, and that their collection keeps its rules: linked, distinct, labelled."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from clusters.explain import audience, diagnose_any
from tests.clusters.judged import EXAMINATIONS, VAGUE, Message, real_messages

MESSAGES = real_messages()
HELD_OUT = [message for message in MESSAGES if message.part == "held out"]
OPEN = [message for message in MESSAGES if message.part == "open"]
THREAD = re.compile(
    r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+|https://support\.huaweicloud\.com/\S+"
)


def test_there_are_enough_and_one_in_three_is_held_out() -> None:
    assert len(OPEN) + len(HELD_OUT) >= 150
    assert len(HELD_OUT) * 2 == pytest.approx(len(OPEN), abs=3)


@pytest.mark.parametrize("part", ["open", "held out", *EXAMINATIONS])
def test_nine_in_ten_are_recognised_and_none_is_misread(part: str) -> None:
    messages = [message for message in MESSAGES if message.part == part]
    verdicts = Counter(message.verdict for message in messages)
    assert verdicts["right"] >= 0.9 * len(messages)
    assert verdicts["misread"] == 0


def test_a_text_whose_source_nobody_tells_is_hardly_ever_misread() -> None:
    told = [(diagnose_any(message.text), message) for message in MESSAGES]
    right = [found for found, message in told if found.code in (message.code, *message.also_true)]
    misread = [
        found for found, message in told if found.known and found not in right and found.code not in VAGUE
    ]
    assert len(right) >= 0.95 * len(MESSAGES)
    assert len(misread) <= 5


def test_each_links_to_the_public_thread_it_is_from() -> None:
    assert [message.thread for message in MESSAGES if not THREAD.fullmatch(message.thread)] == []


def test_each_says_where_it_stood_what_it_means_and_who_can_end_it() -> None:
    for message in MESSAGES:
        assert message.text.strip() and message.where.strip(), message
        assert message.means.endswith("."), message
        assert message.who in {"you", "admin", "nobody"}, message
        assert message.code not in message.also_true, message
        assert all(code.isidentifier() for code in (message.code, *message.also_true)), message


def test_no_two_tell_the_same_in_the_same_words() -> None:
    def kind(message: Message) -> str:
        return re.sub(r'"[^"]*"|[\w-]*\d[\w.:/-]*|\W+', "", message.text.lower())[:120]

    twins = [kind for kind, count in Counter(map(kind, MESSAGES)).items() if count > 1]
    assert twins == []


def test_nineteen_in_twenty_are_told_to_whom_they_concern() -> None:
    """Allow a few misses: some texts are ambiguous (a queue is full or offers nothing, a GPU is taken or unknown)."""
    concern = [message for message in MESSAGES if message.who != "nobody"]
    others = [message for message in concern if audience(message.read_as) != message.who]
    assert len(others) <= 0.05 * len(MESSAGES)
