"""Workspaces, jobs and defaults by what a person types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn
from uuid import UUID

from berth import Client
from berth.api import calls
from berth.api.shapes import JobShape, WorkspaceShape
from berth.cli.exits import not_found, usage


def workspace(berth: Client, name: str) -> WorkspaceShape:
    """Return the workspace with this id, or one's own with this name. Raise Ended if there is none, or several."""
    if is_id(name):
        return berth.send(calls.workspaces_retrieve(name))
    found = list(berth.rows(calls.workspaces_list(name=name, owner=me(berth))))
    if len(found) > 1:
        lines = "; ".join(f"{one['id']} in {one['tenant']}" for one in found)
        raise usage(f"Several workspaces have the name “{name}”: use the id. {lines}")
    return found[0] if found else nobodys("workspace", name, berth.rows(calls.workspaces_list(name=name)))


def job(berth: Client, name: str) -> JobShape:
    """Return the job with this id, or the newest of one's own with this name. Raise Ended if there is none."""
    if is_id(name):
        return berth.send(calls.jobs_retrieve(name))
    if found := list(berth.rows(calls.jobs_list(name=name, owner=me(berth)))):
        return max(found, key=lambda one: one["created_at"])
    return nobodys("job", name, berth.rows(calls.jobs_list(name=name)))


def nobodys(kind: str, name: str, others: Iterator[WorkspaceShape] | Iterator[JobShape]) -> NoReturn:
    """Raise Ended for a name that is not one's own. Those of other people are listed with their ids."""
    lines = "; ".join(f"{one['id']} of {one['owner']} in {one['tenant']}" for one in others)
    hint = (
        f"Use the id for one of another person: {lines}" if lines else "berth ls and berth jobs ls list them."
    )
    raise not_found(f"You have no {kind} with the name “{name}”.", hint)


def me(berth: Client) -> str:
    return berth.send(calls.me_retrieve())["username"]


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
        f"Say in which tenant: --tenant {' | '.join(able)}" if able else "You cannot launch in any team."
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
