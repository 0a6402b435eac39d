"""What the worker runs for accounts; `enqueue.py` has it run."""

from accounts.notices import outbox


def send_mail() -> None:
    outbox.send_due()
