"""Tasks that the worker runs; `enqueue.py` enqueues them."""

from accounts.directory import sync
from accounts.notices import outbox
from accounts.trail import keeping


def send_mail() -> None:
    outbox.send_due()


def keep_trail() -> None:
    keeping.keep()


def sync_directory() -> None:
    sync.run_if_due()
