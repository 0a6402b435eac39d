"""Migrations only expand: the code of the release before works on the new tables until it is replaced.

What removes or narrows something belongs into a later release, when no code that uses it may run any more. Its file
then says `contracts = N`: the first release whose code does without.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently, ValidateConstraint
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.fields import NOT_PROVIDED

from portal.environment import BASE_DIR
from vitals.release import OLDEST

HARMLESS = (
    migrations.CreateModel,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
    migrations.RunPython,
    migrations.RunSQL,
    migrations.RemoveIndex,
    AddIndexConcurrently,
    AddConstraintNotValid,
    ValidateConstraint,
)
"""RunPython and RunSQL say nothing of what they do: whoever reviews them reads them."""
RECIPE = "see “A migration” in CONTRIBUTING.md"


def problems(migration: migrations.Migration, state: ProjectState) -> Iterator[str]:
    """Yield why code of the release before could not work beside this migration, and what to do instead."""
    made: set[str] = set()
    added: set[tuple[str, str]] = set()
    for operation in migration.operations:
        if isinstance(operation, migrations.CreateModel):
            made.add(operation.name_lower)
        if isinstance(operation, migrations.AddField):
            added.add((operation.model_name_lower, operation.name))
        if getattr(operation, "model_name", "").lower() not in made and (
            why := narrows(operation, migration.app_label, state, added)
        ):
            yield f"{migration.app_label}.{migration.name}: {operation.describe()}: {why} ({RECIPE})"
        operation.state_forwards(migration.app_label, state)


def narrows(operation: Operation, app: str, state: ProjectState, added: set[tuple[str, str]]) -> str:
    """Return what old code would notice of the operation on a table that exists; empty if nothing."""
    match operation:
        case _ if isinstance(operation, HARMLESS):
            return ""
        case migrations.SeparateDatabaseAndState():
            inner = [*operation.database_operations, *operation.state_operations]
            return next(filter(None, (narrows(each, app, state, added) for each in inner)), "")
        case migrations.AddField(field=field):
            fits = field.null or field.many_to_many or field.db_default is not NOT_PROVIDED
            return "" if fits else "old code inserts rows without it: give it db_default=, or null=True"
        case migrations.AlterField():
            old = state.models[app, operation.model_name_lower].fields[operation.name]
            return narrower(old, operation.field)
        case migrations.AddConstraint(constraint=models.CheckConstraint() as constraint):
            named = {
                (operation.model_name_lower, name.split("__")[0]) for name, _ in leaves(constraint.condition)
            }
            return (
                ""
                if named & added
                else "it locks the table while it reads it: AddConstraintNotValid, then validate"
            )
        case migrations.RemoveConstraint():
            constraints = state.models[app, operation.model_name_lower].options["constraints"]
            [constraint] = [each for each in constraints if each.name == operation.name]
            is_check = isinstance(constraint, models.CheckConstraint)
            return "" if is_check else "old code relies on it: remove it in a later release"
        case migrations.AddIndex() | migrations.AddConstraint():
            return "it locks the table while it reads it: AddIndexBeside in a migration with atomic = False"
    return "old code still uses what goes away: stop using it now, remove it a release later and write contracts = N"


def narrower(old: models.Field[Any, Any], new: models.Field[Any, Any]) -> str:
    """Return why rows that old code writes or reads would not fit the altered column; empty if they do."""
    if old.null and not new.null:
        return "old code writes NULL: fill the rows now, forbid NULL a release later"
    if new.unique and not old.unique:
        return "old code writes the same value twice: make it unique a release later"
    if old.db_default is not NOT_PROVIDED and new.db_default is NOT_PROVIDED:
        return "old code inserts rows without it: keep db_default="
    was, will_be = old.db_type(connection), new.db_type(connection)
    both = isinstance(old, models.CharField) and isinstance(new, models.CharField | models.TextField)
    longest = new.max_length or 2**31 if both else 0
    if was != will_be and not (both and (old.max_length or 0) <= longest):
        return f"{was} becomes {will_be}: add a column, copy, and remove the old one a release later"
    return ""


def leaves(condition: Any) -> Iterator[tuple[str, Any]]:
    for child in getattr(condition, "children", ()):
        if isinstance(child, tuple):
            yield child
        else:
            yield from leaves(child)


def test_old_code_works_beside_every_migration() -> None:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    ours = {config.label for config in apps.get_app_configs() if Path(config.path).parent == BASE_DIR}
    found: list[str] = []
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app not in ours or migration.initial:
            continue
        contracts = getattr(import_module(migration.__module__), "contracts", OLDEST + 1)
        if contracts > OLDEST:  # some code that may run on these tables does not do without
            found += problems(migration, loader.project_state((app, name), at_end=False))
    assert not found, "\n".join(found)


class Before(migrations.Migration):
    operations = [
        migrations.CreateModel(
            "Thing",
            [("id", models.AutoField(primary_key=True)), ("name", models.CharField(max_length=9, null=True))],
            {"constraints": [models.UniqueConstraint(fields=["name"], name="one")]},
        )
    ]


ADDS = migrations.AddField("thing", "size", models.IntegerField(db_default=0))
SIZED = models.CheckConstraint(condition=models.Q(size__gte=0), name="sized")


@pytest.mark.parametrize(
    ("fits", "operations"),
    [
        (True, [ADDS]),
        (True, [ADDS, migrations.AddConstraint("thing", SIZED)]),
        (True, [migrations.AlterField("thing", "name", models.CharField(max_length=20, null=True))]),
        (True, [migrations.AlterField("thing", "name", models.TextField(null=True))]),
        (True, [AddIndexConcurrently("thing", models.Index(fields=["name"], name="i"))]),
        (False, [migrations.AddField("thing", "size", models.IntegerField(default=0))]),
        (
            False,
            [
                migrations.AddConstraint(
                    "thing", models.CheckConstraint(condition=~models.Q(name=""), name="n")
                )
            ],
        ),
        (False, [migrations.AddIndex("thing", models.Index(fields=["name"], name="i"))]),
        (False, [migrations.AlterField("thing", "name", models.CharField(max_length=20))]),
        (False, [migrations.AlterField("thing", "name", models.CharField(max_length=8, null=True))]),
        (False, [migrations.AlterField("thing", "name", models.IntegerField(null=True))]),
        (False, [migrations.RenameField("thing", "name", "title")]),
        (False, [migrations.RemoveField("thing", "name")]),
        (False, [migrations.RemoveConstraint("thing", "one")]),
        (False, [migrations.DeleteModel("Thing")]),
        (False, [migrations.SeparateDatabaseAndState([migrations.RemoveField("thing", "name")], [])]),
    ],
)
def test_what_old_code_would_notice_is_found(*, fits: bool, operations: list[Operation]) -> None:
    state = Before("0001", "things").mutate_state(ProjectState())
    migration = type("Migration", (migrations.Migration,), {"operations": operations})("0002", "things")
    assert (list(problems(migration, state)) == []) is fits
