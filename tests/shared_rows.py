"""Rows that the tests of a module share: written once, and undone after the last of them.

Each test still runs in a savepoint of its own, so what one changes no other sees. For tests that are marked
`django_db`, never for those that commit (`transaction=True`).
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
