"""Rows that the tests of a module share: written once, and undone after the last of them.

Each test still runs in its own savepoint, so tests do not see each other's changes. Use it only for tests marked
`django_db`, never for tests that commit (`transaction=True`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import transaction

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker


@contextmanager
def shared_rows(blocker: DjangoDbBlocker) -> Iterator[None]:
    """Keep rows that are written inside until the context ends; for a fixture of the scope `module`."""
    with blocker.unblock(), transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)
