"""Pages of a volume's files: the list with its session, and the questions before something is renamed or deleted."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor
from accounts.errors import SHOWN_IN_PLACE, Refusal
from accounts.rest.actors import actor_of
from accounts.trail import audit
from storage import access, problems
from storage.files import client, sessions
from storage.files.answers import Failed
from storage.models import FilesPhase, FilesSession, Volume

LONGEST_PATH = 4000
SIMPLE = re.compile(r"[a-z0-9._-]+", re.IGNORECASE | re.ASCII)
# The word of a workspace's status that looks like it.
LOOKS = {FilesPhase.STARTING: "starting", FilesPhase.READY: "ready", FilesPhase.ENDING: "stopping"}


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def files(request: HttpRequest, id: UUID) -> HttpResponse:
    """List a folder while the session is ready; a button opens the files."""
    actor, volume = opened(request, id)
    if request.method == "POST":
        return done(request, actor, volume, lambda: sessions.start(actor, volume))
    session, path = sessions.open_one(volume), text_of(request.GET, "path").strip("/")
    context: dict[str, Any] = {
        "section": "volumes",
        "volume": volume,
        "session": session,
        "look": LOOKS.get(FilesPhase(session.phase)) if session else "",
        "problem": problems.shown(session.problem, session.problem_data) if session else None,
        "path": path,
        "crumbs": crumbs(path),
        "may_write": sessions.may_open(actor, volume, writes=True) and (session is None or session.writes),
        "moves": session is not None and session.phase != FilesPhase.READY,
        "sftp": sftp_command(actor, volume),
    }
    if session is not None and session.phase == FilesPhase.READY:
        context |= listed(session, path, text_of(request.GET, "after"))
    return render(request, "storage/files.html", context)


def sftp_command(actor: Actor, volume: Volume) -> str:
    """Return the command that reaches the files from a terminal; empty: Berth's SSH address is not set up."""
    if not settings.SSH_JUMP_HOST:
        return ""
    is_plain = volume.owner_id == actor.user.pk and SIMPLE.fullmatch(volume.name)
    person = f"{actor.user.get_username()}+{volume.name if is_plain else volume.pk}"
    return f"sftp -P {settings.SSH_JUMP_PORT} {person}@{settings.SSH_JUMP_HOST}"


def opened(request: HttpRequest, id: UUID, *, writes: bool = False) -> tuple[Actor, Volume]:
    """Return who asks, and the volume whose files they may open."""
    actor = actor_of(request)
    volume = access.get(actor, id)
    sessions.require(actor, volume, writes=writes)
    return actor, volume


def listed(session: FilesSession, path: str, after: str) -> dict[str, Any]:
    """Return the folder for the page, or why it cannot be shown."""
    sessions.touch(session)
    try:
        found = client.ask(session, "GET", "/list", path=path, after=after)[1]
    except Refusal as refusal:
        return {"refusal": refusal}
    before = f"{path}/" if path else ""
    entries = [
        one
        | {
            "path": before + one["name"],
            "at": datetime.fromtimestamp(one["modified"], UTC),
            "size": in_words(one["size"]),
        }
        for one in found["entries"]
    ]
    return {"entries": entries, "next": found["next"], "free": in_words(found["free"])}


def in_words(size: int) -> str:
    """Return a number of bytes as people say it: 512 B, 1.5 MiB."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}".removesuffix(".0") + f"\N{NO-BREAK SPACE}{unit}"


def crumbs(path: str) -> list[tuple[str, str]]:
    """Return the names in a path, each with the path to it."""
    parts = [part for part in path.split("/") if part]
    return [(part, "/".join(parts[: number + 1])) for number, part in enumerate(parts)]


def text_of(values: Any, name: str) -> str:
    return str(values.get(name, "")).replace("\0", "")[:LONGEST_PATH]


@login_required
@require_POST
def close(request: HttpRequest, id: UUID) -> HttpResponse:
    actor, volume = opened(request, id)
    return done(request, actor, volume, lambda: sessions.end(actor, volume))


@login_required
@require_POST
def new_folder(request: HttpRequest, id: UUID) -> HttpResponse:
    actor, volume = opened(request, id, writes=True)
    folder, name = text_of(request.POST, "path"), text_of(request.POST, "name")

    def make() -> object:
        session = sessions.ready_one(actor, volume, writes=True)
        return client.ask(session, "POST", "/folder", path=f"{folder}/{name}" if name else "")

    return done(request, actor, volume, make, folder)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def rename(request: HttpRequest, id: UUID) -> HttpResponse:
    """Ask for the new name, or another path; then rename or move."""
    actor, volume = opened(request, id, writes=True)
    if request.method == "GET":
        return asked(request, volume, "storage/file_rename.html")
    path, to = text_of(request.POST, "path"), text_of(request.POST, "to")

    def move() -> object:
        session = sessions.ready_one(actor, volume, writes=True)
        return client.ask(session, "POST", "/move", path=path, to=to)

    return done(request, actor, volume, move, path.rpartition("/")[0])


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show the effect first; then delete a file, or a folder with all that is in it."""
    actor, volume = opened(request, id, writes=True)
    if request.method == "GET":
        return asked(request, volume, "storage/file_delete.html")
    path = text_of(request.POST, "path")

    def remove() -> object:
        session = sessions.ready_one(actor, volume, writes=True)
        status, _facts = client.ask(session, "DELETE", "/content", path=path, recursive="true")
        if status == 202:
            messages.info(request, _("The folder is large, and not empty yet. Delete it again to continue."))
        return status

    return done(request, actor, volume, remove, path.rpartition("/")[0])


def asked(request: HttpRequest, volume: Volume, template: str) -> HttpResponse:
    path = text_of(request.GET, "path").strip("/")
    folder, _slash, name = path.rpartition("/")
    context = {"section": "volumes", "volume": volume, "path": path, "folder": folder, "name": name}
    return render(request, template, context)


def done(
    request: HttpRequest, actor: Actor, volume: Volume, use_case: Callable[[], object], folder: str = ""
) -> HttpResponse:
    """Do what a button asks for, and show the folder again; a refusal is shown there."""
    try:
        use_case()
    except (*SHOWN_IN_PLACE, Failed) as refusal:
        audit.record_refusal(request, actor, refusal)
        messages.error(request, f"{refusal.message} {refusal.hint}")
    where = reverse("volume-files", args=[volume.pk])
    return redirect(f"{where}?{urlencode({'path': folder})}" if folder else where)
