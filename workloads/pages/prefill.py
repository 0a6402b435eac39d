"""First values of a form: from a workspace or job whose settings are copied, or from a link.

A link only fills in the form; it starts nothing. Anybody can write one, so each value passes its field's own check,
refused values are reported, and variables come by name alone: the reader gives their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import NotThere
from clusters.site import environment
from quotas.pools.needs import unit_memory_mib
from workloads.copies import Source, find
from workloads.figures import number
from workloads.models import Workload
from workloads.sizes.choices import PoolChoice
from workloads.sizes.parts import is_part, part_value
from workloads.sizes.sizing import portion_of

from .fields import lines_of_env
from .forms import FIND, FINDING, MIB_PER_GIB, WorkloadForm
from .images import OWN, first_image

FLAGS = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
# Names that choose the first values; `tenant` and `pool` are read before the form is made.
OTHERS = ("again", "workspace", "job", "template", "fresh", "pool", "env")
# A link with one of these describes all: nothing of what the reader did last may get into it.
WHOLE = frozenset({"image", "image_reference", "repository", "env", "command", "notebook", "sweep"})
MOST_NOTES = 8
LONGEST_QUOTE = 60


def copied(
    actor: Actor, link: Mapping[str, str], kinds: Mapping[str, str]
) -> tuple[str, Source | None, list[str]]:
    """Return the name in the link that says what is copied ("" for none), its settings, and notes for the reader.

    `kinds`: kind of workload by the name in a link.
    """
    name = next((name for name in kinds if name in link), "")
    if not name:
        return "", None, []
    try:
        return name, find(kinds[name], actor, UUID(link[name])), []
    except (NotThere, ValueError):
        return name, None, [_("What this link copies does not exist.")]


def fell_away(form: WorkloadForm, link: Mapping[str, str]) -> list[str]:
    """Say which first values are not offered any more, such as the size of a template."""
    said = {
        "flavor": _("The size “%(value)s” is not offered any more. Another one is selected."),
        "image": _("The image “%(value)s” is not offered any more. Another one is selected."),
        "in_pool": _("The pool “%(value)s” is not offered any more."),
    }
    gone = {name: value for name, value in form.not_offered.items() if name in said and name not in link}
    return [said[name] % {"value": _quoted(str(value))} for name, value in gone.items()]


def describes_all(link: Mapping[str, str]) -> bool:
    return not WHOLE.isdisjoint(link)


def settings_of(source: Source) -> dict[str, Any]:
    """Settings that workspaces and jobs share as first values, without secrets."""
    return row_values(source.row, is_own=source.is_own) | {
        "volumes": [wish.key for wish in source.wishes],
        "connections": [str(pk) for pk in source.connections],
    }


def row_values(row: Workload, *, is_own: bool) -> dict[str, Any]:
    """The same of a row without its volumes; environment and repository only for the owner."""
    values: dict[str, Any] = {"tenant": row.tenant.slug, **first_image(row.image)}
    if is_own:
        values["env"] = lines_of_env(row.env)
        values["repository"] = row.repository
    return values | size_values(row)


def size_values(row: Workload) -> dict[str, Any]:
    """First values that choose the row's size."""
    if row.flavor:
        return {"flavor": row.flavor.slug}
    if is_part(row.pool, portion_of(row)):
        return {"flavor": part_value(row.pool, row.units)}
    if not row.units:
        return {}
    return {
        "flavor": FIND,
        "in_pool": row.pool.slug,
        "gpus": number(round(float(row.pool.gpus(row.units)), 4)),
        "gpu_memory_gb": unit_memory_mib(row.pool) * 2**20 // 10**9 or None,
        "compute_capability": row.pool.compute_capability,
        "cpu": number(row.cpu_millicores / 1000),
        "memory_gib": row.memory_mib // MIB_PER_GIB,
    }


def fill_in(
    form: WorkloadForm, link: Mapping[str, str], pools: Iterable[PoolChoice], variables: list[str]
) -> list[str]:
    """Put the link's values into the form's first values. Return notes about values that were refused."""
    notes = []
    from_links = (*form.in_links, *FINDING, "notify", "volumes")
    for name in from_links:
        if name in link:
            try:
                form.initial[name] = _cleaned(form, name, link[name])
            except forms.ValidationError as error:
                notes.append(_in_vain(form, name, link[name], error))
    if link.get("image_reference") and "image" not in link and form.registries:
        form.initial["image"] = OWN
    if "pool" in link and "flavor" not in link:
        chosen = next((choice for choice in pools if choice.pool["slug"] == link["pool"]), None)
        if chosen:
            form.initial["flavor"] = (chosen.starts_now or chosen.flavors[0]).slug
        else:
            notes.append(
                _("There is no pool “%(pool)s” with ready-made sizes.") % {"pool": _quoted(link["pool"])}
            )
    notes += _fill_in_environment(form, variables)
    notes += [
        _("The link also says “%(name)s”, which this form does not know.") % {"name": _quoted(name)}
        for name in link
        if name not in from_links and name not in OTHERS
    ]
    return notes[:MOST_NOTES]


def _cleaned(form: WorkloadForm, name: str, text: str) -> Any:
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
    value = text.split(",") if isinstance(field, forms.MultipleChoiceField) else text
    field.clean(value)
    return value


def _in_vain(form: WorkloadForm, name: str, text: str, error: forms.ValidationError) -> str:
    quoted = {"field": form.fields[name].label, "value": _quoted(text)}
    if isinstance(form.fields[name], forms.ChoiceField) and name != "max_runtime_minutes":
        return _("%(field)s: the link says “%(value)s”, which you cannot choose here.") % quoted
    return _("%(field)s: the link says “%(value)s”. %(why)s") % {**quoted, "why": " ".join(error.messages)}


def _fill_in_environment(form: WorkloadForm, names: list[str]) -> list[str]:
    """Add the names of variables, for the reader to fill in. Return notes about refused names."""
    lines, notes = [], []
    for name in dict.fromkeys(names):
        if (
            environment.NAME.fullmatch(name)
            and len(name) <= LONGEST_QUOTE
            and not environment.RESERVED.fullmatch(name)
        ):
            lines.append(f"{name}=")
        else:
            notes.append(
                _("A link gives variables by name alone, and no reserved ones: “%(name)s” was left out.")
                % {"name": _quoted(name)}
            )
    if lines:
        there = {re.split("=|<<", line)[0] for line in str(form.initial.get("env") or "").splitlines()}
        added = [line for line in lines if line[:-1] not in there]
        form.initial["env"] = "\n".join([*str(form.initial.get("env") or "").splitlines(), *added])
    return notes


def _quoted(text: str) -> str:
    """Shorten a text to quote it in a sentence: one line, not too long."""
    line = " ".join(text.replace("\0", " ").split())
    return line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…"
