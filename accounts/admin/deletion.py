"""Words on what a deletion in the admin takes along: kinds of things with their names, not a tree of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

from django.contrib.admin.utils import NestedObjects
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, QuerySet
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MOST_NAMED = 5

Deleted = tuple[list[str], dict[str, int], set[str], list[str]]


def in_words(objs: Sequence[Model] | QuerySet[Any]) -> Deleted:
    """Return lines on what goes, counts by kind, no missing permission, and what forbids the deletion."""
    collector = NestedObjects(using=DEFAULT_DB_ALIAS)
    collector.collect(objs)
    chosen = {(type(obj), obj.pk) for obj in objs}
    found: dict[type[Model], Collection[Model]] = dict(cast(Any, collector.model_objs))
    counts = {str(model._meta.verbose_name_plural): len(rows) for model, rows in found.items()}
    lines = [_("%(kind)s “%(name)s”") % {"kind": _kind(type(obj)), "name": obj} for obj in objs]
    unnamed = 0
    for model, rows in found.items():
        others = [row for row in rows if (type(row), row.pk) not in chosen]
        if not says_its_name(model):
            unnamed += len(others)
        elif others:
            lines.append(of_kind(model, others))
    if unnamed:
        text = ngettext("%(count)d internal record", "%(count)d internal records", unnamed)
        lines.append(text % {"count": unnamed})
    protected = [f"{_kind(type(obj))} “{obj}”" for obj in collector.protected]
    return lines, counts, set(), protected


def of_kind(model: type[Model], rows: Collection[Model]) -> str:
    """Return the kind, how many there are, and the first names."""
    kind = model._meta.verbose_name if len(rows) == 1 else model._meta.verbose_name_plural
    facts = {"count": len(rows), "kind": kind, "names": _named(map(str, rows))}
    return _("%(count)d %(kind)s: %(names)s") % facts


def says_its_name(model: type[Model]) -> bool:
    return model.__str__ is not Model.__str__


def _kind(model: type[Model]) -> str:
    return str(capfirst(model._meta.verbose_name))


def _named(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = [f"+{len(ordered) - MOST_NAMED}"] if len(ordered) > MOST_NAMED else []
    return _(", ").join([*ordered[:MOST_NAMED], *more])
