"""Tasks of accounts for the worker, and their enqueueing: the only module here that knows the task queue."""

from django_q.tasks import async_task


def enqueue_mail() -> None:
    """Enqueue a mail pass with the current transaction. Several at once are cheap: each makes one look."""
    async_task("accounts.tasks.send_mail", group="mail")


def send_mail() -> None:
    from accounts.notices import outbox

    outbox.send_due()
