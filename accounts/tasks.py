"""Tasks that the worker runs; `enqueue.py` enqueues them."""

from accounts.notices import outbox
from accounts.trail import keeping


def send_mail() -> None:
    outbox.send_due()


def keep_trail() -> None:
    keeping.keep()
