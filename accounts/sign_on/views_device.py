"""The page on which a signed-in person confirms the code of a terminal."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.access import Actor
from accounts.credentials import device_codes
from accounts.errors import Refusal
from accounts.forms import DeviceCodeForm, show_refusal
from accounts.models import DeviceCode
from accounts.rest.actors import actor_of
from accounts.trail import audit


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def device(request: HttpRequest) -> HttpResponse:
    """Ask for a code, then whether its terminal may sign in, then do as the person says."""
    actor = actor_of(request)
    given = request.GET if request.method == "GET" else request.POST
    form = DeviceCodeForm(given if "code" in given else None)
    if not form.is_valid():
        return _page(request, form, status=422 if request.method == "POST" else 200)
    try:
        return _answered(request, actor, form.cleaned_data["code"])
    except Refusal as refusal:
        audit.record_refusal(request, actor, refusal)
        show_refusal(form, refusal)
        return _page(request, form, status=refusal.status)


def _answered(request: HttpRequest, actor: Actor, code: str) -> HttpResponse:
    """Do what the button said that was pressed; only a POST has some. Without one, show what asks."""
    match request.POST.get("answer"):
        case "allow":
            return _page(request, allowed=device_codes.allow(actor, code))
        case "refuse":
            device_codes.refuse(actor, code)
            return _page(request, is_refused=True)
    return _page(request, asks=device_codes.waiting(actor, code))


def _page(
    request: HttpRequest,
    form: DeviceCodeForm | None = None,
    *,
    asks: DeviceCode | None = None,
    allowed: DeviceCode | None = None,
    is_refused: bool = False,
    status: int = 200,
) -> HttpResponse:
    words = {
        "form": form,
        "asks": asks,
        "code": device_codes.shown(asks.user_code) if asks else "",
        "is_own_address": asks is not None and asks.address == audit.client_address.get(),
        "allowed": allowed,
        "is_refused": is_refused,
    }
    return render(request, "accounts/device.html", words, status=status)
