"""Choosing a password: at sign-in after one that an admin made, and in the profile."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from accounts.credentials import passwords, sign_in, tokens
from accounts.errors import Refusal
from accounts.forms import ChangePasswordForm, show_refusal
from accounts.models import User
from accounts.rest.actors import actor_of
from accounts.sign_on.views import after_password, held_at


@never_cache
@sensitive_post_parameters()
def choose_at_sign_in(request: HttpRequest) -> HttpResponse:
    """Require a new password after a first one; without it, the person is not signed in."""
    held = held_at(request, "sign-in-password")
    if held is None:
        return redirect("sign-in")
    form: SetPasswordForm[User] = SetPasswordForm(held.user, request.POST or None)
    if _chosen(form, held.user):
        return after_password(
            request,
            held.user,
            held.target,
            how=held.how,
            typed=held.typed,
            code_given=held.code_given,
        )
    status = 422 if form.errors else 200
    return render(request, "accounts/sign_in_choose_password.html", {"form": form}, status=status)


@never_cache
@login_required
@sensitive_post_parameters()
def change(request: HttpRequest) -> HttpResponse:
    user = actor_of(request).user
    if not user.has_usable_password():
        return redirect("profile")
    form: SetPasswordForm[User] = SetPasswordForm(user, request.POST if request.method == "POST" else None)
    present = ChangePasswordForm(request.POST if request.method == "POST" else None)
    status = 200
    if present.is_valid() and form.is_valid():
        try:
            sign_in.confirm(user, present.cleaned_data["password"])
        except Refusal as refusal:
            show_refusal(present, refusal)
            status = refusal.status
        else:
            if _chosen(form, user):
                update_session_auth_hash(request, user)
                messages.success(request, _("Your password is changed. Other browsers are signed out."))
                if present.cleaned_data["revoke_tokens"]:
                    tokens.revoke_all(actor_of(request))
                    messages.success(request, _("Your API tokens are revoked."))
                return redirect("profile")
    if status == 200 and (form.errors or present.errors):
        status = 422
    return render(request, "accounts/password.html", {"form": form, "present": present}, status=status)


def _chosen(form: SetPasswordForm[User], user: User) -> bool:
    """Set the form's password. Return False if it was not set; the form then shows why."""
    if not form.is_valid():
        return False
    try:
        passwords.choose(user, form.cleaned_data[passwords.FIELD])
    except Refusal as refusal:
        show_refusal(form, refusal)
        return False
    return True
