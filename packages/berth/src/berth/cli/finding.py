"""Workspaces, jobs and defaults by what a person types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar
from uuid import UUID

from berth import Client
from berth.api import calls
from berth.api.shapes import JobShape, WorkspaceShape
from berth.cli.exits import not_found, usage

One = TypeVar("One", WorkspaceShape, JobShape)


def workspace(berth: Client, name: str) -> WorkspaceShape:
    """Return the workspace with this id or name; of several, one's own. Raise Ended if it is not clear which."""
    if is_id(name):
        return berth.send(calls.workspaces_retrieve(name))
    return only(berth, "workspace", name, list(berth.rows(calls.workspaces_list(name=name))))


def job(berth: Client, name: str) -> JobShape:
    """Return the job with this id or name; of several, the newest of one's own."""
    if is_id(name):
        return berth.send(calls.jobs_retrieve(name))
    found = list(berth.rows(calls.jobs_list(name=name)))
    mine = own(berth, found) or found
    return only(berth, "job", name, sorted(mine, key=lambda one: one["created_at"])[-1:])


def only(berth: Client, kind: Literal["workspace", "job"], name: str, found: Sequence[One]) -> One:
    candidates = found if len(found) < 2 else own(berth, found) or found
    if not candidates:
        raise not_found(f"You see no {kind} with the name “{name}”.", "berth ls and berth jobs ls list them.")
    if len(candidates) > 1:
        lines = "; ".join(f"{one['id']} of {one['owner']} in {one['tenant']}" for one in candidates)
        raise usage(f"Several have the name “{name}”: use the id. {lines}")
    return candidates[0]


def own(berth: Client, found: Sequence[One]) -> list[One]:
    if not found:
        return []
    me = berth.send(calls.me_retrieve())["username"]
    return [one for one in found if one["owner"] == me]


def is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def tenant(berth: Client, wanted: str | None) -> str:
    """Return the tenant to start something in: the only one that there is, if none is named."""
    if wanted:
        return wanted
    able = [one["slug"] for one in berth.send(calls.me_retrieve())["tenants"] if one["role"] != "viewer"]
    if len(able) == 1:
        return able[0]
    raise usage(
        f"Say in which tenant: --tenant {' | '.join(able)}"
        if able
        else "You may start something in no tenant."
    )


def image(berth: Client) -> str:
    """Return the only image of the catalogue."""
    names = [one["slug"] for one in berth.rows(calls.images_list())]
    if len(names) == 1:
        return names[0]
    raise usage(f"Say which image: --image {' | '.join(names)}")


def check_size(berth: Client, *given: object) -> None:
    """Raise Ended with what can be chosen, if no size is given."""
    if not any(given):
        names = [one["slug"] for one in berth.rows(calls.flavors_list())]
        raise usage(
            f"Say which size: --flavor {' | '.join(names)}", "Or --pool with --gpus, --cpu, --memory-mib."
        )
