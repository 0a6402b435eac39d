"""Migrations that change rows of workspaces, forth and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Desired, Phase, Workspace

BEFORE = ("workspaces", "0005_jupyter_host")


@pytest.fixture
def as_migrated(transactional_db: None) -> Iterator[None]:
    """Restore the newest tables for the tests after this one."""
    yield
    migrate()


def migrate(target: tuple[str, str] | None = None) -> None:
    """Migrate to one of workspaces' migrations, or forward to the last."""
    executor = MigrationExecutor(connection)
    executor.migrate([target] if target else executor.loader.graph.leaf_nodes())


def phases() -> dict[str, str]:
    return dict(Workspace.objects.values_list("name", "phase"))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("as_migrated")
def test_what_is_gone_says_so_and_what_still_goes_does_not(cast: Cast) -> None:
    wanted: dict[str, Any] = {"desired": Desired.DELETED}
    make_workspace(cast, cast.bob, Phase.DELETED, name="gone", deleted_at=timezone.now(), **wanted)
    make_workspace(cast, cast.bob, Phase.DELETING, name="going", **wanted)
    make_workspace(cast, cast.bob, Phase.READY, name="runs")
    now = {"gone": "deleted", "going": "deleting", "runs": "ready"}

    migrate(BEFORE)
    assert phases() == now | {"gone": "deleting"}
    migrate()
    assert phases() == now
