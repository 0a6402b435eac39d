"""The profile: SSH keys, API tokens, language, time zone, theme, and ending all sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts import preferences
from accounts.access import Actor
from accounts.asking import ask
from accounts.credentials import sessions, ssh_keys, tokens
from accounts.errors import Refusal
from accounts.forms import PreferencesForm, SSHKeyForm, TokenForm, show_refusal
from accounts.models import SSHKey
from accounts.rest.actors import actor_of
from accounts.trail import audit

View = Callable[..., HttpResponse]


@never_cache
@login_required
def profile(request: HttpRequest) -> HttpResponse:
    return _profile(request)


def _changes_profile(view: View) -> View:
    """Wrap a view that handles a form of the profile page; a GET, such as a reload, leads to that page."""

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
            messages.success(
                request, _("You can now log in to your workspaces with “%(name)s”.") % {"name": key.name}
            )
            return redirect("profile")
    form.forget_private_key()
    return _profile(request, key_form=form, status=422)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def remove_ssh_key(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    if request.method == "GET":
        title = _("Remove the SSH key “%(name)s”?") % {"name": ssh_keys.get(actor, id).name}
        effects = [
            _("Nobody can log in with it from now on. To use it again, you have to add it again."),
            _("Your workspaces keep running, and your other keys stay valid."),
        ]
        return ask(request, "profile", reverse("profile"), title, effects, _("Remove"))
    ssh_keys.remove(actor, id)
    messages.success(request, _("Key removed. It no longer gives access to anything."))
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


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def revoke_token(request: HttpRequest, id: UUID) -> HttpResponse:
    actor = actor_of(request)
    if request.method == "GET":
        title = _("Revoke the token “%(name)s”?") % {"name": tokens.get(actor, id).name}
        effects = [
            _("Scripts that use it are refused from now on. This cannot be undone."),
            _("Workspaces and jobs that it started keep running."),
        ]
        return ask(request, "profile", reverse("profile"), title, effects, _("Revoke"))
    tokens.revoke(actor, id)
    messages.success(request, _("The token is revoked."))
    return redirect("profile")


@_changes_profile
def set_preferences(request: HttpRequest, actor: Actor) -> HttpResponse:
    form = PreferencesForm(request.POST, instance=actor.user)
    if not form.is_valid():
        return _profile(request, preferences_form=form, status=422)
    user = actor.user
    preferences.choose(user, **form.cleaned_data)
    with preferences.applied(request, user):
        messages.success(request, _("Saved for every browser that you sign in with."))
    return preferences.remembered(redirect("profile"), user)


@_changes_profile
def sign_out_everywhere(request: HttpRequest, actor: Actor) -> HttpResponse:
    sessions.sign_out_everywhere(actor)
    logout(request)
    messages.success(request, _("You are signed out in every browser."))
    return redirect("sign-in")


def _profile(
    request: HttpRequest,
    *,
    key_form: SSHKeyForm | None = None,
    token_form: TokenForm | None = None,
    preferences_form: PreferencesForm | None = None,
    secret: str | None = None,
    status: int = 200,
) -> HttpResponse:
    actor = actor_of(request)
    context = {
        "section": "profile",
        "memberships": actor.user.memberships.select_related("tenant").order_by("tenant__name"),
        "keys": SSHKey.objects.filter(user=actor.user),
        "tokens": tokens.usable(actor).select_related("tenant"),
        "key_form": key_form or SSHKeyForm(),
        "token_form": token_form or TokenForm(actor),
        "preferences_form": preferences_form or PreferencesForm(instance=actor.user),
        "secret": secret,
        "api": request.build_absolute_uri("/api/v1/me/"),
    }
    return render(request, "accounts/profile.html", context, status=status)
