"""`manage.py rotate_secrets`: after a change of BERTH_SECRET_KEY, so that the old key can go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Model

from accounts.credentials.secrets import Unreadable, rotated
from accounts.locks import locked
from accounts.models import IdempotentAnswer
from clusters.models import Cluster, Installation
from jobs.models import JobSecret
from monitoring.models import AlertRoute
from storage.models import Connection, FilesSession
from workspaces.models import HostKey, WorkspaceSecret

AT_ONCE = 200
# Fields that hold encrypted text, by model.
FIELDS: dict[type[Model], tuple[str, ...]] = {
    WorkspaceSecret: ("jupyter_token", "host_key", "env", "next_env"),
    HostKey: ("host_key",),
    JobSecret: ("env", "script"),
    Installation: ("ssh_jump_key",),
    Cluster: ("kubeconfig", "registries"),
    FilesSession: ("token",),
    Connection: ("keys",),
    AlertRoute: ("address", "secret"),
    IdempotentAnswer: ("body",),
    apps.get_model("mfa", "Authenticator"): ("data",),
}
IN_JSON = ("secret", "seed")  # of an authenticator app, and of recovery codes


class Command(BaseCommand):
    help = (
        "Encrypt all stored secrets with BERTH_SECRET_KEY, so that BERTH_SECRET_KEY_FALLBACKS can be emptied."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        changed, unreadable = 0, list[str]()
        for model, fields in FIELDS.items():
            for pk in _keys(model):
                try:
                    changed += _rotate(model, pk, fields)
                except Unreadable:
                    unreadable.append(f"{model._meta.label} {pk}")
        self.stdout.write(f"{changed} rows are encrypted with the present key now.")
        if unreadable:
            raise CommandError(
                f"{len(unreadable)} rows cannot be read, such as {unreadable[0]}: put the key that they were encrypted "
                "with into BERTH_SECRET_KEY_FALLBACKS, and run this again. Keep the other keys there until then."
            )
        self.stdout.write(
            "The keys in BERTH_SECRET_KEY_FALLBACKS can go, once all processes run with the present one."
        )


def _keys(model: type[Model]) -> Iterator[Any]:
    return model._default_manager.order_by("pk").values_list("pk", flat=True).iterator(chunk_size=AT_ONCE)


@transaction.atomic
def _rotate(model: type[Model], pk: Any, fields: tuple[str, ...]) -> bool:
    """Encrypt the row's fields anew, under its lock. Return False if nothing had to change."""
    row = locked(model._default_manager.filter(pk=pk)).first()
    changes = {name: new for name in fields if row and (new := _anew(getattr(row, name))) is not None}
    if changes:
        model._default_manager.filter(pk=pk).update(**changes)
    return bool(changes)


def _anew(value: Any) -> Any:
    """Return the text, or the second factor's JSON, with its secrets encrypted anew; None if nothing had to change."""
    if isinstance(value, str):
        return rotated(value)
    changes = {name: new for name in IN_JSON if name in value and (new := rotated(value[name])) is not None}
    return value | changes if changes else None
