"""Real messages are recognised, and the collection is what it says it is: linked, told apart, judged."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.clusters.judged import Message, real_messages

MESSAGES = real_messages()
HELD_OUT = [message for message in MESSAGES if message.held_out]
OPEN = [message for message in MESSAGES if not message.held_out]
THREAD = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/issues/\d+")


def test_there_are_enough_and_one_in_three_is_held_out() -> None:
    assert len(MESSAGES) >= 150
    assert len(HELD_OUT) * 3 == pytest.approx(len(MESSAGES), abs=3)


@pytest.mark.parametrize("messages", [OPEN, HELD_OUT], ids=["open", "held out"])
def test_nine_in_ten_are_recognised_and_none_is_misread(messages: list[Message]) -> None:
    verdicts = Counter(message.verdict for message in messages)
    assert verdicts["right"] >= 0.9 * len(messages)
    assert verdicts["misread"] == 0


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
