"""Tests of indexes that are added to tables in use."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, migrations, models
from django.db.migrations.state import ProjectState

from vitals.indexes import AddIndexBeside

INDEX = models.Index(fields=["host"], name="left_behind")


@pytest.mark.django_db(transaction=True)
def test_what_a_killed_migration_left_is_made_anew() -> None:
    before = ProjectState()
    fields: list[tuple[str, models.Field[Any, Any]]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("host", models.TextField()),
    ]
    migrations.CreateModel("Process", fields).state_forwards("vitals", before)
    operation, after = AddIndexBeside("process", INDEX), before.clone()
    operation.state_forwards("vitals", after)
    with connection.cursor() as cursor, connection.schema_editor(atomic=False) as editor:
        cursor.execute("CREATE INDEX left_behind ON vitals_process (pid)")
        operation.database_forwards("vitals", editor, before, after)
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'left_behind'")
        [(made,)] = cursor.fetchall()
        operation.database_backwards("vitals", editor, after, before)
    assert made.endswith("(host)")
