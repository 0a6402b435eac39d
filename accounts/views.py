"""Sign in and out, and the profile: SSH keys, API tokens, language."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts import audit, ssh_keys, tokens
from accounts import sign_in as signing_in
from accounts.access import Actor
from accounts.errors import Refusal
from accounts.forms import LanguageForm, SignInForm, SSHKeyForm, TokenForm, show_refusal
from accounts.models import SSHKey, User
from accounts.rest.actors import actor_of
from accounts.signals import access_changed

View = Callable[..., HttpResponse]


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
            return _with_language(redirect(target), user)
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


@never_cache
@login_required
def profile(request: HttpRequest) -> HttpResponse:
    return _profile(request)


def _changes_profile(view: View) -> View:
    """A form of the profile page. Who reloads its address afterwards gets the page."""

    @never_cache
    @login_required
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method != "POST":
            return redirect("profile")
        return view(request, actor_of(request), *args, **kwargs)

    return wrapped


@_changes_profile
def add_ssh_key(request: HttpRequest, actor: Actor) -> HttpResponse:
    form = SSHKeyForm(request.POST)
    if form.is_valid():
        try:
            key = ssh_keys.add(actor, **form.cleaned_data)
        except Refusal as refusal:
            audit.record_refusal(request, actor, refusal)
            show_refusal(form, refusal)
        else:
            messages.success(request, _("“%(name)s” now opens your workspaces.") % {"name": key.name})
            return redirect("profile")
    return _profile(request, key_form=form, status=422)


@_changes_profile
def remove_ssh_key(request: HttpRequest, actor: Actor, id: UUID) -> HttpResponse:
    ssh_keys.remove(actor, id)
    messages.success(request, _("The key is removed; it opens nothing any more."))
    return redirect("profile")


@_changes_profile
def create_token(request: HttpRequest, actor: Actor) -> HttpResponse:
    form = TokenForm(actor, request.POST)
    if form.is_valid():
        wanted = form.cleaned_data
        try:
            _token, secret = tokens.create(
                actor, wanted["name"], wanted["scopes"], wanted["tenant"] or None, wanted["days"]
            )
        except Refusal as refusal:
            audit.record_refusal(request, actor, refusal)
            show_refusal(form, refusal)
        else:
            return _profile(request, secret=secret)  # not a redirect: the secret is kept nowhere
    return _profile(request, token_form=form, status=422)


@_changes_profile
def revoke_token(request: HttpRequest, actor: Actor, id: UUID) -> HttpResponse:
    tokens.revoke(actor, id)
    messages.success(request, _("The token is revoked."))
    return redirect("profile")


@_changes_profile
def choose_language(request: HttpRequest, actor: Actor) -> HttpResponse:
    form = LanguageForm(request.POST, instance=actor.user)
    if not form.is_valid():
        return _profile(request, status=422)
    return _with_language(redirect("profile"), form.save())


def _profile(
    request: HttpRequest,
    *,
    key_form: SSHKeyForm | None = None,
    token_form: TokenForm | None = None,
    secret: str | None = None,
    status: int = 200,
) -> HttpResponse:
    actor = actor_of(request)
    context = {
        "keys": SSHKey.objects.filter(user=actor.user),
        "tokens": tokens.usable(actor).select_related("tenant"),
        "key_form": key_form or SSHKeyForm(),
        "token_form": token_form or TokenForm(actor),
        "language_form": LanguageForm(instance=actor.user) if len(settings.LANGUAGES) > 1 else None,
        "secret": secret,
    }
    return render(request, "accounts/profile.html", context, status=status)


def _safe_target(request: HttpRequest) -> str:
    """Where to go after signing in: back, but only within this site."""
    target = request.POST.get("next") or request.GET.get("next", "")
    inside = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if inside else resolve_url(settings.LOGIN_REDIRECT_URL)


def _with_language(response: HttpResponse, user: User) -> HttpResponse:
    """The person's language goes along as a cookie, so that no request has to look it up."""
    if user.language:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            user.language,
            max_age=365 * 24 * 3600,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response
