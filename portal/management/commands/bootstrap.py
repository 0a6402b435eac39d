"""`manage.py bootstrap FILE`: the configuration from a file that is kept in git, and on request the first admin."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.models import User
from accounts.trail import audit
from portal.configuration import applying
from portal.configuration.reading import read

VARIABLE = "BERTH_ADMIN_PASSWORD"
FAULTY = 2


class Command(BaseCommand):
    help = (
        "Bring clusters, pools, sizes, images, tenants, quotas and more to what a YAML file says. Run again, it "
        "changes nothing. Exits 2 and names the lines if the file has faults; then nothing was changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the configuration; - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="print the difference, and change nothing")
        parser.add_argument(
            "--admin",
            metavar="NAME",
            help=f"make this first admin, if there is no such person; the password is in {VARIABLE}",
        )
        parser.add_argument("--email", default="", help="of the first admin")
        parser.add_argument(
            "--password-file",
            metavar="PATH",
            help=f"a file with the first admin's password, instead of {VARIABLE}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            document = read(content(options["file"]))
            with transaction.atomic():
                admin, is_new = self.admin(options)
                difference = applying.apply(Actor(admin), document, dry_run=options["dry_run"])
                if options["dry_run"]:
                    transaction.set_rollback(True)
        except Refusal as refusal:
            self.stderr.write(f"{refusal.message} {refusal.hint}".strip())
            for name, texts in refusal.fields.items():
                for text in texts:
                    self.stderr.write(f"{options['file']}, {name}: {text}")
            sys.exit(FAULTY)
        if is_new:
            self.stdout.write(f"+ admin {admin}")
        for line in in_words(difference, dry_run=options["dry_run"]):
            self.stdout.write(line)

    def admin(self, options: Any) -> tuple[User, bool]:
        """Return the admin in whose name the trail records the changes, and True if the person is new: the named
        one, or the first that there is."""
        admins = User.objects.filter(is_staff=True, is_active=True)
        name = options["admin"]
        if name is None:
            found = admins.order_by("date_joined").first()
            if found is None:
                raise CommandError("There is no admin yet. Name one to make: --admin NAME.")
            return found, False
        if person := User.objects.filter(username=name).first():
            if not (person.is_staff and person.is_active):
                raise CommandError(f"There is a person “{name}” already, who is no active admin.")
            return person, False
        return made(name, options["email"], password_of(options["password_file"])), True


def made(name: str, email: str, password: str) -> User:
    person = User(username=name, email=email, is_staff=True, is_superuser=True)
    try:
        validate_password(password, person)
        person.set_password(password)
        person.full_clean()
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    person.save()
    audit.record(None, "user.create", target=person, data={"username": name, "is_staff": True})
    return person


def content(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from None


def password_of(path: str | None) -> str:
    password = content(path).decode().rstrip("\n") if path else os.environ.get(VARIABLE, "")
    if not password:
        raise CommandError(f"The first admin needs a password: in {VARIABLE}, or in --password-file.")
    return password


def in_words(difference: applying.Difference, *, dry_run: bool) -> list[str]:
    """Return the difference as lines: + created, ~ changed, - deleted."""
    lines = [f"+ {one['kind']} {one['key']}" for one in difference.created]
    for one in difference.changed:
        lines.append(f"~ {one['kind']} {one['key']}")
        lines += [f"    {name}: {each['old']} → {each['new']}" for name, each in one["fields"].items()]
    lines += [f"- {one['kind']} {one['key']}" for one in difference.deleted]
    if difference.is_empty:
        return ["Nothing to change."]
    return [*lines, "Nothing was changed: this was a dry run."] if dry_run else lines
