"""Row of the tables: a pattern of the cluster's text, and what it means for a person."""

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

# Data is stored with events, so quotes from a message are cut to this.
LONGEST_VALUE = 300


@dataclass(frozen=True)
class Cause:
    """Cause of a problem. Named groups of the pattern are the data of the sentence and the hint, as in "%(image)s".

    A cause may stand in several tables: problems that mean the same to a reader, and are fixed in the same way, share
    one. A cause without a pattern shows in no message; Berth finds it by watching (monitoring/health).
    """

    code: str
    pattern: str
    sentence: StrOrPromise
    hint: StrOrPromise
    # Who can fix it.
    audience: Audience = "you"
    # Phrase for one of several reasons, with a plural by `nodes` (or GPUs), as "3 nodes are full".
    in_short: StrOrPromise = ""
    # A second pattern, for data that may stand anywhere in the text.
    details: str = ""
    # Everyday words, such as "timed out": they mean this cause only where the text has this source.
    of_its_source: bool = False

    def read(self, text: str) -> Data | None:
        """Return the data if the text is about this cause, else None."""
        match = _compiled(self.pattern).search(text) if self.pattern else None
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
    """Problem, as a code and the data of its sentence. `known` is False when no rule matched."""

    code: str
    data: Data
    known: bool = True


# Data of sentences that has an everyday name. A resource "": the message does not say which.
_NAMED = ("resource", "how", "what")
_NAMES = {
    "": _("room"),
    "cpu": _("CPU"),
    "memory": _("memory"),
    "ephemeral-storage": _("temporary disk space"),
    "nodefs": _("disk space"),
    "imagefs": _("disk space"),
    "storage": _("disk space"),
    "capacity": _("disk space"),
    "diskpressure": _("disk space"),
    "memorypressure": _("memory"),
    "pidpressure": _("numbers for processes"),
    "claims": _("devices"),
    "resourceclaim": _("devices"),
    "kernel": _("kernel"),
    "container runtime": _("container runtime"),
    "nvidia driver": _("NVIDIA driver"),
    "disk": _("disk space"),
    "disk time": _("disk time"),
    "nvidia.com/gpu": _("GPUs"),
    "cardinsufficientmemory": _("memory"),
    "cardinsufficientcore": _("compute"),
    "cardcomputeunitsexhausted": _("compute"),
    "cardtimeslicingexhausted": _("places"),
    "crashloopbackoff": _("again and again"),
    "restarting failed container": _("again and again"),
}


class _Words(dict[str, Any]):
    """Data of a sentence, with a stand-in for values that an older or shorter message lacks."""

    def __init__(self, untold: str, data: Mapping[str, Any]) -> None:
        super().__init__(data)
        self._untold = untold

    def __missing__(self, name: str) -> str:
        return self._untold


def in_words(text: StrOrPromise, data: Mapping[str, Any], untold: str = "?") -> str:
    """Return a sentence with its data, in the reader's language, with everyday names where there are any."""
    told = {"resource": "", **data}
    for name in _NAMED:
        told[name] = _NAMES.get(str(told[name]).lower(), told[name]) if name in told else untold
    return str(text % _Words(untold, told))


def first_match(causes: Iterable[Cause], text: str) -> Diagnosis | None:
    for cause in causes:
        data = cause.read(text)
        if data is not None:
            return Diagnosis(cause.code, data)
    return None
