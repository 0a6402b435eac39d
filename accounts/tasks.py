"""Tasks that the worker runs; `enqueue.py` enqueues them."""

from accounts.notices import outbox


def send_mail() -> None:
    outbox.send_due()
