"""`manage.py reset_second_factor alice`: for when no admin is left who could do it on the pages."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from accounts.sign_on import second_factor


class Command(BaseCommand):
    help = "Remove a person's second factor and recovery codes: their password alone lets them in again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="user name, as in sign-in")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no person “{options['user']}”.")
        if not second_factor.is_on(user):
            raise CommandError(f"{user.username} has no second factor.")
        second_factor.reset(None, user)
        self.stdout.write(f"{user.username} signs in with the password alone again.")
