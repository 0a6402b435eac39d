"""Pages of notices: the person's list, their preferences, and the link that ends mails of one kind."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from accounts.notices import inbox, preferences
from accounts.notices.forms import KindsForm
from accounts.rest.actors import actor_of


@never_cache
@login_required
@require_safe
def notices(request: HttpRequest) -> HttpResponse:
    user = actor_of(request).user
    lines, last = inbox.page(user, _before(request))
    older = urlencode({"before": f"{last.at.isoformat()} {last.pk}"}) if last else ""
    context = {"lines": lines, "older": older, "has_unread": inbox.unread(user) > 0, "tab": "list"}
    return render(request, "accounts/notices.html", context)


@never_cache
@login_required
@require_POST
def read_all(request: HttpRequest) -> HttpResponse:
    inbox.read_all(actor_of(request).user)
    return redirect("notices")


@never_cache
@login_required
@require_safe
def open_one(request: HttpRequest, id: UUID) -> HttpResponse:
    return redirect(inbox.open_one(actor_of(request).user, id))


@never_cache
@login_required
def settings(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    ways = preferences.all_ways(actor.user)
    if request.method == "POST":
        preferences.choose(actor, KindsForm(ways, request.POST).wanted())
        messages.success(request, _("Saved. You will be notified this way from now on."))
        return redirect("notices-settings")
    context = {
        "kinds": KindsForm(ways).forms,
        "has_mail": preferences.mail_is_configured(),
        "tab": "settings",
    }
    return render(request, "accounts/notices_settings.html", context)


@never_cache
@csrf_exempt  # mail programs post here on their own (RFC 8058); the signature says who asks for what
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Change nothing on GET: scanners follow the links in mails."""
    if request.method == "POST":
        kind, done = preferences.unsubscribe(token), True
    else:
        kind, done = preferences.read_token(token)[1], False
    return render(request, "accounts/notices_unsubscribe.html", {"kind": kind, "done": done})


def _before(request: HttpRequest) -> tuple[datetime, UUID] | None:
    """Return where the previous page ended; None (the first page) if the address is not valid."""
    at, _space, last = request.GET.get("before", "").partition(" ")
    try:
        moment = datetime.fromisoformat(at)
        return (moment.astimezone(UTC), UUID(last)) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
