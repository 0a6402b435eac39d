"""Rows of models by statements that are built once.

The ORM builds a statement anew for each query, and inspects the model anew for a raw one. With a report of every node
every few seconds, both cost more than PostgreSQL's answer.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import JSONField, Model

M = TypeVar("M", bound=Model)


def read(model: type[M], where: str, values: tuple[Any, ...]) -> list[M]:
    """Return the rows. `where`: the statement after the columns; the model's table has the alias `row`."""
    columns, names, in_json = _known(model)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} {where}", values)
        found = [list(row) for row in cursor.fetchall()]
    for row in found:
        for at in in_json:
            row[at] = row[at] and json.loads(row[at])
    return [model.from_db(connection.alias, names, row) for row in found]


@cache
def _known(model: type[Model]) -> tuple[str, list[str], list[int]]:
    """Return the columns, the fields' names, and the positions of JSON fields."""
    fields = model._meta.concrete_fields
    columns = ", ".join(f'row."{field.column}"' for field in fields)
    in_json = [at for at, field in enumerate(fields) if isinstance(field, JSONField)]
    return columns, [field.attname for field in fields], in_json
