"""Migrations forth and back in a test's database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


@pytest.fixture
def as_migrated(transactional_db: None) -> Iterator[None]:
    """Restore the newest tables for the tests after this one."""
    yield
    migrate()


def migrate(target: tuple[str, str] | None = None) -> None:
    """Migrate to one migration, or forward to the last."""
    executor = MigrationExecutor(connection)
    executor.migrate([target] if target else executor.loader.graph.leaf_nodes())
