"""`manage.py issue_token alice --scopes read workspaces`: an API token from the server's command line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.access import Actor, visible_tenants
from accounts.credentials import tokens
from accounts.errors import Refusal
from accounts.models import Scope, Tenant, User


class Command(BaseCommand):
    help = "Make an API token for a person. Its secret is the last line, and is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="user name, as in sign-in")
        parser.add_argument("--scopes", nargs="+", required=True, choices=Scope.values, help="what it may do")
        parser.add_argument("--tenant", metavar="SLUG", help="it works in this tenant alone")
        parser.add_argument(
            "--days", type=int, default=tokens.DEFAULT_DAYS, help="expires after so many (%(default)s)"
        )
        parser.add_argument(
            "--name", default="issued by an operator", help="shown in the person's list of tokens"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no person “{options['user']}”.")
        if not user.is_active:
            raise CommandError(f"{user.username} is deactivated: no token of theirs would work.")
        tenant = _tenant_of(user, options["tenant"])
        try:
            token, secret = tokens.issue(user, options["name"], options["scopes"], tenant, options["days"])
        except Refusal as refusal:
            raise CommandError(f"{refusal.message} {refusal.hint}") from None
        place = tenant.slug if tenant else "all their tenants"
        self.stderr.write(f"For {user.username} in {place}, until {token.expires_at:%Y-%m-%d}:")
        self.stdout.write(secret)


def _tenant_of(user: User, slug: str | None) -> Tenant | None:
    if slug is None:
        return None
    tenant = visible_tenants(Actor(user)).filter(slug=slug).first()
    if tenant is None:
        raise CommandError(f"{user.username} is in no tenant “{slug}”.")
    return tenant
