"""Findings of doctor: how bad, about what, in a sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.utils.translation import ngettext

MOST_NAMED = 5


class Level(TextChoices):
    OK = "ok", _lazy("OK")
    WARN = "warn", _lazy("Warning")
    FAIL = "fail", _lazy("missing")


class Check(TextChoices):
    CONNECTION = "connection", _lazy("Connection and version")
    RIGHTS = "rights", _lazy("Rights")
    NODES = "nodes", _lazy("Nodes and GPUs")
    AGREEMENT = "agreement", _lazy("What nodes run")
    AGENTS = "agents", _lazy("Agents of nodes")
    POOLS = "pools", _lazy("Pools")
    STORAGE = "storage", _lazy("Storage")
    ADDRESSES = "addresses", _lazy("Addresses of workspaces")
    FIGURES = "figures", _lazy("What pods use")
    ISOLATION = "isolation", _lazy("Isolation of tenants")


@dataclass(frozen=True)
class Finding:
    level: Level
    message: str
    hint: str = ""
    check: Check | None = None  # None: the check of the look that found it
    yaml: str = ""  # what to add to the ClusterRole


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as JSON, with their sentences in the language of now."""
    return [
        {
            "level": one.level.value,
            "message": str(one.message),
            "hint": str(one.hint),
            "check": one.check and one.check.value,
            "yaml": one.yaml,
        }
        for one in findings
    ]


def from_json(told: Iterable[dict[str, Any]]) -> list[Finding]:
    return [
        Finding(
            **{**one, "level": Level(one["level"]), "check": Check(one["check"]) if one["check"] else None}
        )
        for one in told
    ]


def ok(message: str) -> Finding:
    return Finding(Level.OK, message)


def warn(message: str, hint: str = "") -> Finding:
    return Finding(Level.WARN, message, hint)


def fail(message: str, hint: str) -> Finding:
    return Finding(Level.FAIL, message, hint)


def by_check(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    """Group findings in the order of the checks; leave out checks without findings."""
    found = ((check, [finding for finding in findings if finding.check == check]) for check in Check)
    return [(str(check.label), rows) for check, rows in found if rows]


def named(nodes: Iterable[str]) -> str:
    """Return the first five names, and how many more there are."""
    names = sorted(nodes)
    told = names[:MOST_NAMED]
    if more := len(names) - len(told):
        told.append(ngettext("%(n)d more", "%(n)d more", more) % {"n": more})
    return _(", ").join(told)
