"""One row of the tables: a pattern of the cluster's text, and what it means for a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Audience = Literal["you", "admin"]
Data = dict[str, Any]

# Data is stored with events: what a message quotes is cut to this.
LONGEST_VALUE = 300


@dataclass(frozen=True)
class Cause:
    """Named groups of the pattern are the data of the sentence and the hint, as in "%(image)s"."""

    code: str
    pattern: str
    sentence: StrOrPromise
    hint: StrOrPromise
    audience: Audience = "you"
    # As one of several reasons for several nodes: a plural by `nodes`, as "3 nodes are full".
    in_short: StrOrPromise = ""
    # A second pattern, for data that may stand anywhere in the text.
    details: str = ""

    def read(self, text: str) -> Data | None:
        """The data, if the text is about this cause."""
        match = _compiled(self.pattern).search(text)
        if match is None:
            return None
        detailed = _compiled(self.details)
        found = detailed.search(text)
        groups = {
            **dict.fromkeys(detailed.groupindex, ""),
            **(found.groupdict() if found else {}),
            **match.groupdict(),
        }
        return {name: (value or "").strip()[:LONGEST_VALUE] for name, value in groups.items()}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, as a code and the data of its sentence. `known` is False when no rule matched."""

    code: str
    data: Data
    known: bool = True


_RESOURCES = {
    "cpu": _("CPU"),
    "memory": _("memory"),
    "ephemeral-storage": _("temporary disk space"),
    "nvidia.com/gpu": _("GPUs"),
}


class _Words(dict[str, Any]):
    """The data of a sentence; what an older or shorter message did not tell is a question mark."""

    def __missing__(self, name: str) -> str:
        return "?"


def in_words(text: StrOrPromise, data: Mapping[str, Any]) -> str:
    """A sentence with its data, in the reader's language; resources by the names that people use."""
    resource = data.get("resource")
    named = {"resource": str(_RESOURCES[resource])} if resource in _RESOURCES else {}
    return str(text % _Words(data, **named))


def first_match(causes: Iterable[Cause], text: str) -> Diagnosis | None:
    for cause in causes:
        data = cause.read(text)
        if data is not None:
            return Diagnosis(cause.code, data)
    return None
