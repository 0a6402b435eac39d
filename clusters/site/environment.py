"""Environment of containers: names that people and admins may not set, and a cluster's own lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Set by Berth alone: they decide which GPUs a container sees, its user and how it is reached.
RESERVED = re.compile(
    r"NVIDIA_.*|CUDA_MPS_.*|CUDA_DEVICE_.*|CUDA_DISABLE_CONTROL|CUDA_TASK_PRIORITY|CUDA_OVERSUBSCRIBE"
    r"|GPU_CORE_.*|LD_PRELOAD"
    r"|JUPYTER_.*|KUBERNETES_.*|BERTH_.*|HOME|PATH|POD_IP"
)
LONGEST_BYTES = 64 * 1024
PROXY = "_proxy"  # such names are read in small and in capital letters


def faults(values: Mapping[str, str], also_reserved: re.Pattern[str] | None = None) -> list[str]:
    """Return what is wrong: malformed or reserved names, values that none can have, too much."""
    texts = [
        _("“%(name)s” is not a name: use letters, digits and _; not a digit first.") % {"name": name}
        for name in values
        if not NAME.fullmatch(name)
    ]
    texts += [
        _("“%(name)s” is reserved: Berth sets it. Use another name.") % {"name": name}
        for name in values
        if RESERVED.fullmatch(name) or (also_reserved and also_reserved.fullmatch(name))
    ]
    texts += [
        _("The value of “%(name)s” has a NUL character, which no environment can hold.") % {"name": name}
        for name, value in values.items()
        if "\0" in value
    ]
    if sum(len(name) + len(value.encode()) for name, value in values.items()) > LONGEST_BYTES:
        texts.append(_("Together they are longer than 64 KiB. Put long values into a file."))
    return texts


def lines_of(text: str) -> list[tuple[str, str]]:
    """Return names and values of lines NAME=value; empty lines are left out."""
    found = (line.strip().partition("=") for line in text.split("\n"))
    return [(name.strip(), value.strip()) for name, sign, value in found if name or sign]


def validate(text: str) -> None:
    """Raise ValidationError for lines that are no environment, or set a reserved name."""
    if any(line.strip() and "=" not in line for line in text.split("\n")):
        raise ValidationError(_("Write one NAME=value per line."))
    lines = lines_of(text)
    if texts := faults(dict(lines)):
        raise ValidationError(texts)
    if twice := next((name for name, _value in lines if [one for one, _v in lines].count(name) > 1), None):
        raise ValidationError(_("“%(name)s” is there twice. Keep one.") % {"name": twice})


def of_cluster(text: str, taken: frozenset[str] | set[str]) -> dict[str, str]:
    """Return a cluster's lines without what the person sets, a proxy in either spelling."""
    return {
        name: value
        for name, value in lines_of(text)
        if not (spellings(name) if name.lower().endswith(PROXY) else {name}) & taken
    }


def spellings(name: str) -> set[str]:
    return {name.lower(), name.upper()}
