"""Sign in and out."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts import sign_in as signing_in
from accounts.errors import Refusal
from accounts.forms import SignInForm
from accounts.language import with_language
from accounts.models import User
from accounts.signals import access_changed


@never_cache
@sensitive_post_parameters("password")
def sign_in(request: HttpRequest) -> HttpResponse:
    target = _safe_target(request)
    if request.user.is_authenticated:
        return redirect(target)
    form = SignInForm(request.POST or None)
    refusal = None
    if form.is_valid():
        try:
            user = signing_in.authenticate(request, **form.cleaned_data)
        except Refusal as refused:
            refusal = refused
        else:
            login(request, user)
            return with_language(redirect(target), user)
    context = {"form": form, "refusal": refusal, "next": target}
    response = render(request, "accounts/sign_in.html", context, status=refusal.status if refusal else 200)
    if refusal is not None and refusal.retry_after_seconds is not None:
        response["Retry-After"] = str(refusal.retry_after_seconds)
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    user = request.user
    if isinstance(user, User):
        signing_in.sign_out(user)
    logout(request)
    if isinstance(user, User):
        access_changed.send(sender=User, user=user)  # what this session has open ends with it
    return redirect("sign-in")


def _safe_target(request: HttpRequest) -> str:
    """Where to go after signing in: back, but only within this site."""
    target = request.POST.get("next") or request.GET.get("next", "")
    inside = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if inside else resolve_url(settings.LOGIN_REDIRECT_URL)
