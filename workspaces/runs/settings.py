"""Change what a workspace's pod takes when it starts: image, environment, secrets, repository.

What has no run gets it at once. A run keeps what it began with: the change waits for the next start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _

from accounts.errors import Invalid
from storage.mounts import mounting
from workloads import drivers, images
from workloads.asking import check_env, check_repository
from workloads.models import Image
from workspaces.models import Desired, Phase, Workspace
from workspaces.state import settings
from workspaces.state.settings import FIELDS, Settings
from workspaces.state.story import add_event


@dataclass(frozen=True, kw_only=True)
class NewSettings:
    """Requested values. None: leave as it is. `secret_env` sets those it names, and removes those with None."""

    image: str | None = None
    image_reference: str | None = None  # instead of `image`
    env: Mapping[str, str] | None = None
    secret_env: Mapping[str, str | None] | None = field(default=None, repr=False)
    repository: str | None = None

    @property
    def names_image(self) -> bool:
        return bool(self.image or self.image_reference)

    @property
    def named(self) -> list[str]:
        return [
            name
            for name in FIELDS
            if getattr(self, name) is not None or (name == "image" and self.names_image)
        ]

    def onto(self, values: Settings) -> Settings:
        """Return the values with these changes."""
        if self.image is not None:
            values = replace(values, image=self.image)
        if self.env is not None:
            values = replace(values, env=dict(self.env))
        if self.secret_env is not None:
            values = values.with_secrets(self.secret_env)
        return values if self.repository is None else values.with_repository(self.repository)


def set_settings(row: Workspace, wanted: NewSettings) -> bool:
    """Set the values, or keep them for the next start. Return True if anything changed. Inside `changing`.

    Raise Invalid with all faulty fields, by the rules of a launch.
    """
    before, wanted = settings.coming(row), _with_own_image(row, wanted)
    after = wanted.onto(before)
    _check(row, wanted, after)
    changed = after.differences(before)
    if not changed:
        return False
    settings.keep(row, after)
    if has_run(row):
        _announce(row, changed)
    else:
        settings.take_up(row)
    return True


def _with_own_image(row: Workspace, wanted: NewSettings) -> NewSettings:
    """Return the values with the slug of an image that is named by its reference."""
    if not wanted.image_reference:
        return wanted
    image, faults = images.asked(row.tenant, wanted.image, wanted.image_reference)
    if image is None:
        text = _("Some fields are not valid.")
        raise Invalid("invalid", text, _("Correct the named fields."), fields=faults)
    return replace(wanted, image=images.kept(image).slug, image_reference=None)


def has_run(row: Workspace) -> bool:
    """Return True if a pod may exist that was made of the present values."""
    return bool(row.ending) or (row.desired != Desired.STOPPED and row.phase != Phase.WAITING)


def _check(row: Workspace, wanted: NewSettings, after: Settings) -> None:
    faults = check_repository(wanted.repository or "")
    env: dict[str, list[str]] = {}
    if wanted.env is not None or wanted.secret_env is not None:
        # By the names alone first: one that Berth keeps among the secrets must be neither set nor removed.
        named = {name: value or "" for name, value in (wanted.secret_env or {}).items()}
        env = check_env({}, named) or check_env(after.env, after.secret_env)
    image = row.image
    if wanted.image is not None:
        found, unknown = (
            (row.image, {}) if after.image == row.image.slug else images.offered(row.tenant, after.image)
        )
        faults |= unknown or _check_mounts(row, found)
        image = found or image
    if faults := faults | env:
        text = _("Some fields are not valid.")
        raise Invalid("invalid", text, _("Correct the named fields."), fields=faults)
    if wanted.image is not None:
        drivers.refuse_too_old(image, row.pool, row.units)


def _check_mounts(row: Workspace, image: Image | None) -> dict[str, list[str]]:
    """Refuse an image whose home lies where a volume is mounted."""
    mounts = mounting.all_of([row.pk]).get(row.pk, [])
    paths = [wish.path for _name, wish in mounting.wished(mounts)]
    if image is None or not (taken := [path for path in paths if mounting.overlap(path, image.home)]):
        return {}
    text = _(
        "Its home is at %(home)s, and a volume is mounted at %(path)s. Mount the volume elsewhere first."
    )
    return {"image": [text % {"home": image.home, "path": taken[0]}]}


def _announce(row: Workspace, changed: Sequence[str]) -> None:
    """Report what the next start changes, without values: others of the tenant read events, too."""
    waits = settings.changes_of(row)
    if "image" in changed:
        code = "image_later" if "image" in waits else "image_stays"
        add_event(row, code, new=settings.coming_image(row).name)
    others = [name for name in changed if name != "image"]
    if later := [name for name in others if name in waits]:
        add_event(row, "settings_later", fields=later)
    if stay := [name for name in others if name not in waits]:
        add_event(row, "settings_stay", fields=stay)
