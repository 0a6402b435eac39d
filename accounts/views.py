"""The profile: SSH keys, API tokens, language."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from accounts import audit, ssh_keys, tokens
from accounts.access import Actor
from accounts.errors import Refusal
from accounts.forms import LanguageForm, SSHKeyForm, TokenForm, show_refusal
from accounts.language import with_language
from accounts.models import SSHKey
from accounts.rest.actors import actor_of

View = Callable[..., HttpResponse]


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
    return with_language(redirect("profile"), form.save())


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
