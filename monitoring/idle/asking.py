"""Ask many runs at once what runs in them: their Jupyter, or where there is none their SSH server. Bounded in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from uuid import UUID

from accounts.credentials.secrets import decrypt
from workspaces.gateway import inside as by_jupyter
from workspaces.gateway import upstream
from workspaces.models import Workspace
from workspaces.ssh_jump import inside as by_ssh
from workspaces.ssh_jump.inside import Host
from workspaces.state import jupyter
from workspaces.state.inside import Inside

AT_ONCE = 64
# Of one call: a worker ends a task after 120 seconds.
MOST_SECONDS = 40.0

Place = Host | tuple[str, str]  # the address and token of a Jupyter


def ask(
    workspaces: Iterable[Workspace], texts: Mapping[UUID, str] | None = None
) -> dict[UUID, Inside | None]:
    """Return the answers by run; None: it did not answer. `texts`: by run, for its open terminals.

    A run that is not in the result was not asked: there was no time left.
    """
    places = {one.run: place for one in workspaces if one.run and (place := place_of(one)) is not None}
    answers: dict[UUID, Inside | None] = dict.fromkeys(one.run for one in workspaces if one.run)
    for run in places:
        del answers[run]
    return answers | asyncio.run(_ask_all(places, texts or {}))


def place_of(workspace: Workspace) -> Place | None:
    """Return where to ask; None: it offers neither, or is not reached."""
    image = workspace.image
    if image.offers_jupyter:
        address = jupyter.address(workspace)
        return (address, jupyter.gateway_token(workspace)) if address else None
    if not image.offers_ssh or not workspace.host or not workspace.ssh_port:
        return None
    secret = workspace.secret
    private = decrypt(secret.host_key)
    return Host(workspace.host, workspace.ssh_port, image.username, secret.host_key_public, private)


async def _ask_all(places: Mapping[UUID, Place], texts: Mapping[UUID, str]) -> dict[UUID, Inside | None]:
    room, answers = asyncio.Semaphore(AT_ONCE), dict[UUID, Inside | None]()

    async def one(run: UUID, place: Place) -> None:
        async with room:
            text = texts.get(run, "")
            if isinstance(place, Host):
                answers[run] = await by_ssh.ask(place, text)
            else:
                answers[run] = await by_jupyter.ask(*place, text)

    try:
        async with asyncio.timeout(MOST_SECONDS):
            await asyncio.gather(*(one(run, place) for run, place in places.items()))
    except TimeoutError:
        pass
    finally:
        await upstream.close()
    return answers
