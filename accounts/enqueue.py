"""Enqueue what accounts/tasks.py runs, in the current transaction, by dotted name: nothing here imports it."""

from django_q.tasks import async_task


def send_mail() -> None:
    """Several that are enqueued together cost one query each."""
    async_task("accounts.tasks.send_mail", group="mail")


def keep_trail() -> None:
    async_task("accounts.tasks.keep_trail", group="trail")


def sync_directory() -> None:
    async_task("accounts.tasks.sync_directory", group="directory")
