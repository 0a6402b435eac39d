"""The database is emptied after each test, whatever a failed one left behind."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from accounts.models import Tenant
from tests import emptying

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def left_open() -> Iterator[psycopg.Connection]:
    """Transaction that holds a lock, as a thread leaves it that failed."""
    settings = connection.get_connection_params()
    settings = {name: settings[name] for name in settings if name not in ("cursor_factory", "context")}
    with psycopg.connect(**settings) as other:
        other.execute("DELETE FROM accounts_tenant")
        yield other


def test_a_transaction_that_was_left_open_is_ended(
    left_open: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emptying, "LONGEST_WAIT_SECONDS", 0.1)
    emptying._statements.cache_clear()
    Tenant.objects.create(slug="one", name="One")
    emptying.delete_all_rows(None)  # type: ignore[arg-type]
    emptying._statements.cache_clear()
    assert not Tenant.objects.exists()
    with pytest.raises(psycopg.OperationalError):
        left_open.execute("SELECT 1")
    left_open.close()
