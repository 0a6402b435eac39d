"""First values of the launch form: from the last launch, from a workspace to launch again, or from a link.

A link only fills in the form; it never launches. Anybody can write one, so each value passes its field's own check,
refused values are reported, and variables come by name alone: the reader gives their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import NotThere
from quotas.pools.needs import unit_memory_mib
from storage.mounts.mounting import all_of, wished
from workloads.asking import ENV_NAME, RESERVED_ENV
from workloads.figures import number
from workloads.sizes.parts import is_part, part_value
from workloads.sizes.sizing import portion_of
from workspaces import access
from workspaces.api.representation import gpus
from workspaces.launch.suggestions import PoolChoice
from workspaces.models import Workspace

from .forms import FIND, FINDING, MIB_PER_GIB, LaunchForm

# Fields in the form's own links. Not the environment: its values do not belong into links, and secrets least of all.
IN_LINKS = ("tenant", "image", "flavor", "name", "disk_gib", "max_runtime_minutes", "repository")
FROM_LINKS = (*IN_LINKS, *FINDING, "notify", "volumes")
FLAGS = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
# Names that choose the first values; `tenant` and `pool` are read before the form is made.
OTHERS = ("again", "fresh", "pool", "env")
# A link with one of these describes a whole launch: nothing of the reader's last launch may get into it.
WHOLE_LAUNCH = frozenset({"image", "repository", "env"})
MOST_NOTES = 8
LONGEST_QUOTE = 60


def beginning(actor: Actor, link: Mapping[str, str]) -> tuple[Workspace | None, dict[str, Any], list[str]]:
    """Return the workspace that the form is filled in from, its settings as first values, and notes for the reader."""
    if "fresh" in link or ("again" not in link and describes_a_launch(link)):
        return None, {}, []
    if "again" not in link:
        row = (
            Workspace.objects.filter(owner=actor.user)
            .select_related("tenant", "image", "flavor", "pool")
            .first()
        )
        return row, settings_of(actor, row) if row else {}, []
    try:
        row = access.get(actor, UUID(link["again"]))
    except (NotThere, ValueError):
        return None, {}, [_("The workspace that this link copies does not exist.")]
    volumes = [wish.key for _name, wish in wished(all_of([row.pk]).get(row.pk, ()))]
    return row, settings_of(actor, row) | {"volumes": volumes}, []


def describes_a_launch(link: Mapping[str, str]) -> bool:
    return not WHOLE_LAUNCH.isdisjoint(link)


def settings_of(actor: Actor, row: Workspace) -> dict[str, Any]:
    """Settings of a workspace as first values, without secrets; environment and repository only for the owner."""
    values: dict[str, Any] = {
        "tenant": row.tenant.slug,
        "image": row.image.slug,
        "disk_gib": row.disk_mib // MIB_PER_GIB,
        "max_runtime_minutes": row.max_runtime_minutes or "",
        "notify": row.notify,
    }
    if access.is_own(actor, row):
        values["env"] = "\n".join(f"{name}={value}" for name, value in row.env.items())
        values["repository"] = row.repository
    if row.flavor:
        values["flavor"] = row.flavor.slug
    elif is_part(row.pool, portion_of(row)):
        values["flavor"] = part_value(row.pool, row.units)
    elif row.units:
        values |= {
            "flavor": FIND,
            "in_pool": row.pool.slug,
            "gpus": gpus(row),
            "gpu_memory_gb": unit_memory_mib(row.pool) * 2**20 // 10**9 or None,
            "compute_capability": row.pool.compute_capability,
            "cpu": number(row.cpu_millicores / 1000),
            "memory_gib": row.memory_mib // MIB_PER_GIB,
        }
    return values


def fill_in(
    form: LaunchForm, link: Mapping[str, str], pools: Iterable[PoolChoice], variables: list[str]
) -> list[str]:
    """Put the link's values into the form's first values. Return notes about values that were refused."""
    notes = []
    for name in FROM_LINKS:
        if name in link:
            try:
                form.initial[name] = _cleaned(form, name, link[name])
            except forms.ValidationError as error:
                notes.append(_in_vain(form, name, link[name], error))
    if "pool" in link and "flavor" not in link:
        flavors = next((choice.flavors for choice in pools if choice.pool["slug"] == link["pool"]), None)
        if flavors:
            form.initial["flavor"] = flavors[0].slug
        else:
            notes.append(
                _("There is no pool “%(pool)s” with ready-made sizes.") % {"pool": _quoted(link["pool"])}
            )
    notes += _fill_in_environment(form, variables)
    notes += [
        _("The link also says “%(name)s”, which this form does not know.") % {"name": _quoted(name)}
        for name in link
        if name not in FROM_LINKS and name not in OTHERS
    ]
    return notes[:MOST_NOTES]


def _cleaned(form: LaunchForm, name: str, text: str) -> Any:
    """Return the text as a first value. Raise ValidationError if the field refuses it."""
    field = form.fields[name]
    if "\0" in text:
        raise forms.ValidationError(_("It has a NUL character."))
    if isinstance(field, forms.BooleanField):
        if text.lower() not in FLAGS:
            raise forms.ValidationError(_("Write 1 or 0."))
        return FLAGS[text.lower()]
    if name == "max_runtime_minutes":
        return form.lifetime(text)
    value = [text] if name == "volumes" else text
    field.clean(value)
    return value


def _in_vain(form: LaunchForm, name: str, text: str, error: forms.ValidationError) -> str:
    quoted = {"field": form.fields[name].label, "value": _quoted(text)}
    if isinstance(form.fields[name], forms.ChoiceField) and name != "max_runtime_minutes":
        return _("%(field)s: the link says “%(value)s”, which you cannot choose here.") % quoted
    return _("%(field)s: the link says “%(value)s”. %(why)s") % {**quoted, "why": " ".join(error.messages)}


def _fill_in_environment(form: LaunchForm, names: list[str]) -> list[str]:
    """Add the names of variables, for the reader to fill in. Return notes about refused names."""
    lines, notes = [], []
    for name in dict.fromkeys(names):
        if ENV_NAME.fullmatch(name) and len(name) <= LONGEST_QUOTE and not RESERVED_ENV.fullmatch(name):
            lines.append(f"{name}=")
        else:
            notes.append(
                _("A link gives variables by name alone, and no reserved ones: “%(name)s” was left out.")
                % {"name": _quoted(name)}
            )
    if lines:
        there = {line.partition("=")[0] for line in str(form.initial.get("env") or "").splitlines()}
        added = [line for line in lines if line[:-1] not in there]
        form.initial["env"] = "\n".join([*str(form.initial.get("env") or "").splitlines(), *added])
    return notes


def _quoted(text: str) -> str:
    """Shorten a text to quote it in a sentence: one line, not too long."""
    line = " ".join(text.replace("\0", " ").split())
    return line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…"
