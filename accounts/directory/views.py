"""The page on which a person connects an account of Berth with their entry in the directory."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts.credentials import sign_in
from accounts.directory.backend import prove
from accounts.directory.configuration import Directory
from accounts.errors import NotSignedIn, Refusal
from accounts.forms import SignInForm
from accounts.rest.actors import actor_of
from accounts.sign_on import admission


class ConnectForm(SignInForm):
    """The name and password in the directory, and the password of Berth: the new way to sign in stays."""

    prefix = "there"
    own = forms.CharField(
        label=gettext_lazy("Your Berth password"),
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
@sensitive_post_parameters()
def connect(request: HttpRequest) -> HttpResponse:
    """Let the signed-in person sign in with their password of the directory, too."""
    directory: Directory | None = settings.LDAP
    if directory is None:
        raise Http404
    actor = actor_of(request)
    if not actor.user.has_usable_password() or admission.is_connected(actor.user, directory):
        return redirect("profile")
    form = ConnectForm(request.POST if request.method == "POST" else None)
    status = 422 if form.errors else 200
    if form.is_valid():
        try:
            sign_in.confirm(actor.user, form.cleaned_data["own"])
            admission.connect(actor, directory, _claims(directory, request, form))
        except Refusal as refusal:
            form.add_error(None, f"{refusal.message} {refusal.hint}".strip())
            status = refusal.status
        else:
            messages.success(
                request, _("From now on you can sign in with %(name)s.") % {"name": directory.name}
            )
            return redirect("profile")
    context = {"form": form, "directory": directory}
    return render(request, "accounts/connect_directory.html", context, status=status)


def _claims(directory: Directory, request: HttpRequest, form: ConnectForm) -> dict[str, Any]:
    """Return what the directory says of the person. A wrong password there counts as it does at sign-in."""
    name = form.cleaned_data["username"]
    with sign_in.counted_name(name):
        claims = prove(directory, request, name, form.cleaned_data["password"])
        if claims is None:
            raise NotSignedIn(
                "wrong_password_there",
                _("Incorrect user name or password of %(name)s.") % {"name": directory.name},
                _("Check both; upper and lower case matter."),
            )
    return claims
