"""What the worker runs for accounts, and how it is enqueued: the only module here that knows the task queue."""

from django_q.tasks import async_task


def enqueue_mail() -> None:
    """With the current transaction; several that come together cost one look each."""
    async_task("accounts.tasks.send_mail", group="mail")


def send_mail() -> None:
    from accounts.notices import outbox

    outbox.send_due()
