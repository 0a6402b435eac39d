"""Checks of what a person asks for, the same for a workspace and a job: name, environment, repository, priority."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Invalid

LONGEST_NAME = 63
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._ -]{0,61}[A-Za-z0-9])?")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Set by Berth alone: they decide which GPUs a container sees, its user and how it is reached.
RESERVED_ENV = re.compile(
    r"NVIDIA_.*|CUDA_MPS_.*|CUDA_DEVICE_.*|CUDA_DISABLE_CONTROL|CUDA_TASK_PRIORITY|CUDA_OVERSUBSCRIBE"
    r"|GPU_CORE_.*|LD_PRELOAD"
    r"|JUPYTER_.*|KUBERNETES_.*|BERTH_.*|HOME|PATH|POD_IP"
)
REPOSITORY = re.compile(r"(?:https?://|ssh://|git://|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)[^\s'\"\\]+")
LONGEST_ENV_BYTES = 64 * 1024


def check_name(name: str) -> dict[str, list[str]]:
    if NAME.fullmatch(name):
        return {}
    return {
        "name": [
            _("Use 1 to 63 letters, digits, spaces, dots, dashes; begin and end with a letter or digit.")
        ]
    }


def check_repository(address: str) -> dict[str, list[str]]:
    if not address or REPOSITORY.fullmatch(address):
        return {}
    return {"repository": [_("Give an address that git can clone, as https://host/group/project.git")]}


def check_env(
    env: Mapping[str, str], secret_env: Mapping[str, str], also_reserved: re.Pattern[str] | None = None
) -> dict[str, list[str]]:
    """Faults by field: malformed or reserved names, a name twice, too much."""
    faults: dict[str, list[str]] = {}
    for where, values in (("env", env), ("secret_env", secret_env)):
        texts = [
            _("“%(name)s” is not a name: use letters, digits and _; not a digit first.") % {"name": name}
            for name in values
            if not ENV_NAME.fullmatch(name)
        ]
        texts += [
            _("“%(name)s” is reserved: Berth sets it. Use another name.") % {"name": name}
            for name in values
            if RESERVED_ENV.fullmatch(name) or (also_reserved and also_reserved.fullmatch(name))
        ]
        texts += [
            _("The value of “%(name)s” has a NUL character, which no environment can hold.") % {"name": name}
            for name, value in values.items()
            if "\0" in value
        ]
        if sum(len(name) + len(value.encode()) for name, value in values.items()) > LONGEST_ENV_BYTES:
            texts.append(_("Together they are longer than 64 KiB. Put long values into a file."))
        if texts:
            faults[where] = texts
    if twice := sorted(set(env) & set(secret_env)):
        faults.setdefault("secret_env", []).append(
            _("%(names)s is in both env and secret_env. Keep one.") % {"names": ", ".join(twice)}
        )
    return faults


def refuse_unfair(actor: Actor, priority: int) -> None:
    """Refuse a priority above 0 except from admins: it would jump the queue of all tenants."""
    if priority > 0 and not actor.is_admin:
        text = _("Only admins may give a priority above 0.")
        raise Invalid("priority_too_high", text, _("Use 0 or less."), fields={"priority": [text]})
