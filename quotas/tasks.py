"""Tasks that the worker runs; `enqueue.py` enqueues them."""

from uuid import UUID

from quotas import admission, forecasts
from quotas.accounting import spending


def admission_pass(pool_id: str) -> None:
    admission.admit(UUID(pool_id))
    forecasts.update_forecasts(UUID(pool_id))


def look_at_spending() -> None:
    spending.look()
