"""Pages of volumes: the list with the form for a new one, and the page of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor
from accounts.errors import SHOWN_IN_PLACE, Refusal
from accounts.forms import show_refusal
from accounts.rest.actors import actor_of
from accounts.tenancy import current_tenant
from accounts.trail import audit
from storage import access, changes, copies, problems
from storage.api.serializers import adoption_of, problem_of
from storage.cluster.keeper import MOVING
from storage.copies import LONGEST_NOTE
from storage.files import sessions
from storage.models import Kind, Phase, Snapshot, Volume
from storage.mounts.choosing import Offer, path_for, ways
from storage.mounts.leasing import NO_USE, uses_of

from .forms import CloneForm, CreateForm, NameForm, NoteForm, SizeForm, TransferForm

PER_PAGE = 50
# The word of a workspace's status that looks like it.
LOOKS = {
    Phase.PENDING: "starting", Phase.GROWING: "starting", Phase.IN_BIN: "stopped", Phase.READY: "ready",
    Phase.DELETING: "deleting", Phase.FAILED: "failed", Phase.DELETED: "deleted",
}  # fmt: skip
CALLED = {"size_mib": "size_gib"}


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def volumes(request: HttpRequest) -> HttpResponse:
    """List volumes; members create theirs here."""
    actor = actor_of(request)
    form = CreateForm(actor, request.POST or None, tenant=current_tenant(request))
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                volume = changes.create(actor, *form.asked())
            except SHOWN_IN_PLACE as refusal:
                status = refused(request, actor, form, refusal)
            else:
                messages.success(request, _("“%(name)s” is being created.") % {"name": volume.name})
                return redirect("volume", volume.pk)
    show = request.GET.get("show", "mine")
    page = Paginator(shown(request, actor, show), PER_PAGE).get_page(request.GET.get("page"))
    rows = [described(volume) for volume in page.object_list]
    context = {
        "section": "volumes",
        "show": show,
        "page": page,
        "rows": rows,
        "form": form if form.may_create else None,
        "moves": any(row["volume"].phase in MOVING for row in rows),
        "may_adopt": actor.is_admin,
    }
    return render(request, "storage/volumes.html", context, status=status)


def shown(request: HttpRequest, actor: Actor, show: str) -> QuerySet[Volume]:
    rows = access.visible(actor).select_related(*access.RELATED).order_by("-created_at", "-pk")
    if (tenant := current_tenant(request)) is not None:
        rows = rows.filter(tenant=tenant)
    if show == "everyone":
        return rows.filter(bin_until=None)
    return rows.filter(owner=actor.user, bin_until__isnull=show != "bin")


def described(volume: Volume) -> dict[str, Any]:
    return {"volume": volume, "look": LOOKS[Phase(volume.phase)], "problem": problem_of(volume)}


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def volume(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show one volume. Who may manage it grows, renames and shares it here."""
    actor = actor_of(request)
    found = access.get(actor, id)
    is_size = "size_gib" in request.POST
    size = SizeForm(
        request.POST if is_size else None, initial={"size_gib": f"{found.requested_mib / 1024:g}"}
    )
    name = NameForm(
        request.POST if request.method == "POST" and not is_size else None,
        initial={"name": found.name, "shared": found.shared},
    )
    status = 200
    if request.method == "POST":
        access.require_manage(actor, found)
        form: forms.Form = size if is_size else name
        status = 422
        if form.is_valid():
            wanted = {"size_mib": size.size_mib()} if is_size else dict(name.cleaned_data)
            try:
                changes.change(actor, found, wanted)
            except SHOWN_IN_PLACE as refusal:
                status = refused(request, actor, form, refusal)
            else:
                messages.success(request, _("Saved."))
                return redirect("volume", id)
    may_manage = access.may_manage(actor, found)
    taken = list(copies.shown(found))
    offered = list(ways(actor, found, [row for row in taken if row.number]))
    context = {
        **described(found),
        "taken": described_copies(found, taken, offered),
        "note": NoteForm(),
        "clone": CloneForm(found, taken),
        "section": "volumes",
        "size": size,
        "name": name,
        "transfer": TransferForm(found) if may_manage else None,
        "ways": [
            way
            for way in offered
            if found.is_inspected and not way.wish.version.isdigit() and found.kind != Kind.HOME
        ],
        "path": path_for(found),
        "use": uses_of([found.pk]).get(found.pk, NO_USE),
        "may_manage": may_manage,
        "may_open": sessions.may_open(actor, found),
        "moves": found.phase in MOVING or (found.is_read_only and found.inspection is None),
        "adoption": adoption_of(found),
        "is_owner": found.owner_id == actor.user.pk,
        "may_inspect": found.owner_id == actor.user.pk or actor.is_admin,
        "copies_move": any(row.phase in MOVING for row in taken),
    }
    return render(request, "storage/volume.html", context, status=status)


def described_copies(volume: Volume, taken: list[Snapshot], offered: list[Offer]) -> list[dict[str, Any]]:
    """Return snapshots and versions with what is wrong, what mounts them, and the key to launch with a version."""
    mounted = Volume.objects.filter(source__volume=volume, is_version=True, deleted_at=None)
    by_copy = dict(mounted.values_list("source_id", "pk"))
    uses = uses_of(by_copy.values())
    keys = {offer.wish.version: offer.wish.key for offer in offered}
    return [
        {
            "row": row,
            "look": LOOKS[Phase(row.phase)],
            "problem": problem(row),
            "key": keys.get(str(row.number)),
            "users": [mount["name"] for mount in uses.get(by_copy.get(row.pk, row.pk), NO_USE).mounts],
        }
        for row in taken
    ]


def problem(row: Snapshot) -> dict[str, str] | None:
    return problems.shown(row.problem, row.problem_data)


def refused(request: HttpRequest, actor: Actor, form: forms.Form, refusal: Refusal) -> int:
    """Show the refusal in the form and record it. Return its status."""
    audit.record_refusal(request, actor, refusal)
    show_refusal(form, refusal, lambda name: CALLED.get(name, name))
    return refusal.status


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, id: UUID) -> HttpResponse:
    """Show the effect first; then put it into the bin, or delete it from there for good."""
    actor = actor_of(request)
    found = access.get(actor, id)
    access.require_manage(actor, found)
    if request.method == "POST":
        try:
            changes.delete(actor, found, now=found.bin_until is not None)
        except SHOWN_IN_PLACE as refusal:
            audit.record_refusal(request, actor, refusal)
            messages.error(request, f"{refusal.message} {refusal.hint}")
            return redirect("volume", id)
        goes = found.bin_until is not None or found.kind == Kind.SCRATCH
        text = _("“%(name)s” is being deleted.") if goes else _("“%(name)s” is in the bin.")
        messages.success(request, text % {"name": found.name})
        return redirect("volumes")
    return render(request, "storage/volume_delete.html", {"section": "volumes", "volume": found})


@login_required
@require_POST
def restore(request: HttpRequest, id: UUID) -> HttpResponse:
    return act(request, id, changes.restore, _("“%(name)s” was restored."))


@login_required
@require_POST
def make_main(request: HttpRequest, id: UUID) -> HttpResponse:
    return act(request, id, lambda actor, found: changes.change(actor, found, {"main": True}))


@login_required
@require_POST
def transfer(request: HttpRequest, id: UUID) -> HttpResponse:
    username = request.POST.get("username", "").replace("\0", "")
    return act(request, id, lambda actor, found: changes.transfer(actor, found, username))


@login_required
@require_POST
def snapshot(request: HttpRequest, id: UUID) -> HttpResponse:
    note, said = note_of(request), _("The snapshot is being taken.")
    return act(request, id, lambda actor, found: copies.snapshot(actor, found, note), said)


@login_required
@require_POST
def publish(request: HttpRequest, id: UUID) -> HttpResponse:
    note, said = note_of(request), _("The new version is being published.")
    return act(request, id, lambda actor, found: copies.publish(actor, found, note), said)


def note_of(request: HttpRequest) -> str:
    return request.POST.get("note", "").replace("\0", "")[:LONGEST_NOTE]


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def delete_snapshot(request: HttpRequest, id: UUID, snapshot: UUID) -> HttpResponse:
    """Show the effect first; then delete the snapshot or version with its data."""
    actor = actor_of(request)
    found = access.get(actor, id)
    access.require_manage(actor, found)
    taken = copies.get(actor, found, snapshot)
    if request.method == "POST":
        return act(request, id, lambda actor, found: copies.delete(actor, found, taken))
    context = {"section": "volumes", "volume": found, "taken": taken}
    return render(request, "storage/snapshot_delete.html", context)


@login_required
@require_POST
def clone(request: HttpRequest, id: UUID) -> HttpResponse:
    """Create a volume that begins with the files of this one, and show it."""
    actor = actor_of(request)
    found = access.get(actor, id)
    form = CloneForm(found, list(copies.shown(found)), request.POST)
    try:
        if not form.is_valid():
            messages.error(request, str(next(iter(form.errors.values()))[0]))
            return redirect("volume", id)
        made = changes.create(actor, found.tenant.slug, form.wish(found))
    except SHOWN_IN_PLACE as refusal:
        audit.record_refusal(request, actor, refusal)
        messages.error(request, f"{refusal.message} {refusal.hint}")
        return redirect("volume", id)
    messages.success(request, _("“%(name)s” is being created.") % {"name": made.name})
    return redirect("volume", made.pk)


def act(
    request: HttpRequest, id: UUID, use_case: Callable[[Actor, Volume], object], said: str = ""
) -> HttpResponse:
    """Do what a button asks for, and say so; a refusal is shown on the volume's page."""
    actor = actor_of(request)
    found = access.get(actor, id)
    try:
        use_case(actor, found)
    except SHOWN_IN_PLACE as refusal:
        audit.record_refusal(request, actor, refusal)
        messages.error(request, f"{refusal.message} {refusal.hint}")
    else:
        messages.success(request, said % {"name": found.name} if said else _("Saved."))
    return redirect("volume", id)
