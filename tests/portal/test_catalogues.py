"""Catalogues: each sentence is there in every language, complete, and with the same values."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from babel.messages.catalog import Message
from babel.messages.checkers import checkers
from django.conf import settings
from django.utils import translation
from django.utils.formats import date_format

from portal import translations

ELEMENT = re.compile(r"</?[a-z][^>]*>")
VALUE = re.compile(r"%(?:\((\w+)\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z%]|\{(\w*)\}")

of_each_language = pytest.mark.parametrize("path", translations.po_files(), ids=lambda path: path.parts[-3])


@pytest.fixture(scope="module")
def wanted() -> dict[object, Message]:
    return {key(message): message for message in translations.extracted() if message.id}


def test_each_language_that_people_can_choose_has_a_catalogue() -> None:
    there = {path.parts[-3].lower().replace("_", "-") for path in translations.po_files()}
    assert there == {code for code, _name in settings.LANGUAGES} - {"en"}


@of_each_language
def test_every_sentence_is_translated(path: Path, wanted: dict[object, Message]) -> None:
    there = {key(message): message for message in translations.read(path) if message.id}
    assert not wanted.keys() - there.keys(), "new sentences: make messages, then translate them"
    assert not there.keys() - wanted.keys(), "sentences that nobody says any more: make messages"
    assert not [said for said, message in there.items() if message.fuzzy or not all(texts(message.string))]


@of_each_language
def test_a_translation_keeps_values_and_markup(path: Path) -> None:
    catalog = translations.read(path)
    for message in catalog:
        for check in checkers:
            check(catalog, message)
        # The language has one plural form: the number's placeholder may be in the English plural only
        original = texts(message.id)[-1]
        for text in texts(message.string) if message.id else ():
            assert set(VALUE.findall(text)) == set(VALUE.findall(original)), (original, text)
            assert sorted(ELEMENT.findall(text)) == sorted(ELEMENT.findall(original)), (original, text)


def test_korean_hours_go_from_0_to_23() -> None:
    with translation.override("ko"):
        assert date_format(datetime(2026, 1, 2, 15, 4), "DATETIME_FORMAT") == "2026년 1월 2일 15:04"


def key(message: Message) -> tuple[object, str | None]:
    return message.id if isinstance(message.id, str) else tuple(message.id), message.context


def texts(string: object) -> tuple[str, ...]:
    return tuple(string) if isinstance(string, list | tuple) else (str(string),)
