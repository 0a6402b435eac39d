"""Settings that a pod takes when it starts: image, environment, secrets, repository.

A change during a run waits beside the row for the next start: what runs keeps what it began with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from accounts.credentials.secrets import encrypt
from workloads.models import Image
from workloads.repositories import VARIABLE, as_secret, without_credentials
from workspaces.models import Event, Workspace

from .story import add_event

FIELDS = ("image", "env", "secret_env", "repository")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Values in clear. `repository`: without its credentials, which are in `secrets` with the whole address."""

    image: str
    env: Mapping[str, str]
    repository: str
    secrets: Mapping[str, str] = field(repr=False)

    @property
    def secret_env(self) -> dict[str, str]:
        """Secrets that the person set by name."""
        return {name: value for name, value in self.secrets.items() if name != VARIABLE}

    @property
    def whole_address(self) -> str:
        return self.secrets.get(VARIABLE, self.repository)

    def with_repository(self, address: str) -> Settings:
        """Return these with another repository. The address as it is shown keeps its credentials."""
        if address == self.repository:
            return self
        secrets = {**self.secret_env, **as_secret(address)}
        return replace(self, repository=without_credentials(address), secrets=secrets)

    def with_secrets(self, changes: Mapping[str, str | None]) -> Settings:
        """Return these with the named secrets set, or removed where the value is None; others stay."""
        secrets = {**self.secrets, **changes}
        kept = {name: value for name, value in secrets.items() if value is not None}
        return replace(self, secrets=kept)

    def differences(self, other: Settings) -> list[str]:
        """Return the names of the fields in which the two differ."""
        pairs = {
            "image": (self.image, other.image),
            "env": (self.env, other.env),
            "secret_env": (self.secret_env, other.secret_env),
            "repository": (self.whole_address, other.whole_address),
        }
        return [name for name in FIELDS if pairs[name][0] != pairs[name][1]]


def present(row: Workspace) -> Settings:
    """Return what the present run has, or the next one if there is none."""
    secrets = row.secret.clear_env()
    return Settings(image=row.image.slug, env=row.env, repository=row.repository, secrets=secrets)


def coming(row: Workspace) -> Settings:
    """Return the settings from the next start on."""
    waits = row.next_settings
    return Settings(
        image=waits.get("image", row.image.slug),
        env=waits.get("env", row.env),
        repository=waits.get("repository", row.repository),
        secrets=row.secret.clear_next_env(),
    )


def coming_image(row: Workspace) -> Image:
    """Return the image from the next start on: the present one if nothing else is asked for, or that is gone."""
    slug = row.next_settings.get("image")
    return (slug and Image.objects.filter(slug=slug).first()) or row.image


def changes_of(row: Workspace) -> list[str]:
    """Return the names of the fields that the next start changes."""
    return [name for name in FIELDS if name in row.next_settings]


def keep(row: Workspace, wanted: Settings) -> None:
    """Keep these for the next start. Inside `changing`."""
    now = present(row)
    names = wanted.differences(now)
    values: dict[str, Any] = {"image": wanted.image, "env": dict(wanted.env), "repository": wanted.repository}
    row.next_settings = {name: values.get(name, True) for name in names}
    row.secret.next_env = "" if wanted.secrets == now.secrets else encrypt(json.dumps(dict(wanted.secrets)))
    row.secret.save(update_fields=["next_env"])


def take_up(row: Workspace) -> None:
    """Put in force what waited for the next start. Inside `changing`, with no run on."""
    if not row.next_settings:
        return
    names, image = changes_of(row), coming_image(row)
    if image.pk != row.image_id:
        add_event(row, "image_changed", old=row.image.name, new=image.name)
        row.previous_image, row.image = row.image.slug, image
    elif "image" in names:
        level = Event.Level.WARNING
        add_event(row, "image_gone", level=level, gone=row.next_settings["image"], name=image.name)
    row.env = row.next_settings.get("env", row.env)
    row.repository = row.next_settings.get("repository", row.repository)
    if row.secret.next_env:
        row.secret.env, row.secret.next_env = row.secret.next_env, ""
        row.secret.save(update_fields=["env", "next_env"])
    row.next_settings = {}
    if others := [name for name in names if name != "image"]:
        add_event(row, "settings_changed", fields=others)
