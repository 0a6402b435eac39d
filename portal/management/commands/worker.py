"""`manage.py worker`: do Berth's tasks. Start as many as you like."""

from __future__ import annotations

from typing import Any

from django_q.management.commands import qcluster

from vitals.part import PartCommand


class Command(PartCommand, qcluster.Command):  # type: ignore[misc]
    help = "Do the tasks of Berth. Any number of processes may run."

    def add_arguments(self, parser: Any) -> None:
        """Take none: django-q's own are for several queues."""

    def handle(self, *args: Any, **options: Any) -> None:
        qcluster.Command.handle(self, *args, **options)
