"""The pages of the second factor: at sign-in, and in the profile."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from accounts.credentials import sign_in
from accounts.errors import NotAllowed, Refusal
from accounts.forms import CodeForm, PasswordForm, show_refusal
from accounts.models import User
from accounts.rest.actors import actor_of
from accounts.sign_on import admission, second_factor, waiting
from accounts.sign_on.views import after_password, answer, finish, held_at


@never_cache
@sensitive_post_parameters("code")
def code(request: HttpRequest) -> HttpResponse:
    """Ask for the code, after the password."""
    held = held_at(request, "sign-in-code")
    if held is None:
        return redirect("sign-in")
    form = CodeForm(request.POST or None)
    refusal = None
    if form.is_valid():
        try:
            second_factor.check(held.user, form.cleaned_data["code"])
        except Refusal as refused:
            refusal = refused
        else:
            return after_password(
                request, held.user, held.target, how=held.how, typed=held.typed, code_given=True
            )
    return _ask_for_code(request, "accounts/sign_in_code.html", form, refusal)


@never_cache
@sensitive_post_parameters("code")
def set_up_at_sign_in(request: HttpRequest) -> HttpResponse:
    """Require people who need a second factor and have none to set it up, after the password."""
    held = held_at(request, "sign-in-set-up")
    if held is None:
        return redirect("sign-in")
    form = CodeForm(request.POST or None)
    secret = waiting.secret_to_set_up(request)
    refusal = None
    if form.is_valid():
        try:
            codes = second_factor.turn_on(held.user, secret, form.cleaned_data["code"])
        except Refusal as refused:
            refusal = refused
        else:
            how = f"{held.how} and code"
            done = finish(request, held.user, held.target, how=how, typed=held.typed)
            response = _codes(request, codes, held.target)
            response.cookies.update(done.cookies)
            return response
    offer = second_factor.offer(held.user, secret)
    return _ask_for_code(request, "accounts/sign_in_set_up.html", form, refusal, offer=offer)


@never_cache
@login_required
@sensitive_post_parameters("password", "code")
def manage(request: HttpRequest) -> HttpResponse:
    """Set up the second factor in the profile, or show its state."""
    user = actor_of(request).user
    if request.method != "POST" or second_factor.is_on(user):
        return _manage(request, user)
    _require_own_password(user)
    form, password = CodeForm(request.POST), PasswordForm(request.POST)
    if form.is_valid() and password.is_valid():
        try:
            sign_in.confirm(user, password.cleaned_data["password"])
            secret = waiting.secret_to_set_up(request)
            codes = second_factor.turn_on(user, secret, form.cleaned_data["code"])
        except Refusal as refusal:
            show_refusal(form if "code" in refusal.fields else password, refusal)
            return _manage(request, user, refusal.status, form=form, password=password)
        waiting.drop(request)
        return _codes(request, codes, reverse("profile"))
    return _manage(request, user, 422, form=form, password=password)


@never_cache
@login_required
@sensitive_post_parameters("password")
def renew_recovery_codes(request: HttpRequest) -> HttpResponse:
    if refused := _without_password(request, "password_for_codes"):
        return refused
    return _codes(request, second_factor.renew_recovery_codes(actor_of(request).user), reverse("profile"))


@never_cache
@login_required
@sensitive_post_parameters("password")
def remove(request: HttpRequest) -> HttpResponse:
    if refused := _without_password(request, "password_to_remove"):
        return refused
    second_factor.turn_off(actor_of(request).user)
    messages.success(request, _("Second factor removed. You now sign in with your password only."))
    return redirect("second-factor")


def _ask_for_code(
    request: HttpRequest, template: str, form: CodeForm, refusal: Refusal | None, **more: Any
) -> HttpResponse:
    """Return the page with the refusal; a refused code is not shown again."""
    context = {"form": form if form.errors else CodeForm(), "refusal": refusal, **more}
    return answer(render(request, template, context, status=422 if form.errors else 200), refusal)


def _without_password(request: HttpRequest, asked_by: str) -> HttpResponse | None:
    """Return the page again if there is nothing to change or the password is wrong, else None."""
    user = actor_of(request).user
    if request.method != "POST" or not second_factor.is_on(user):
        return redirect("second-factor")
    password = PasswordForm(request.POST, auto_id=f"{asked_by}_%s")
    if not password.is_valid():
        return _manage(request, user, 422, **{asked_by: password})
    try:
        sign_in.confirm(user, password.cleaned_data["password"])
    except Refusal as refusal:
        show_refusal(password, refusal)
        return _manage(request, user, refusal.status, **{asked_by: password})
    return None


def _manage(request: HttpRequest, user: User, status: int = 200, **forms: Form) -> HttpResponse:
    context: dict[str, Any] = {
        "is_on": second_factor.is_on(user),
        "has_password": admission.knows_password(user),
        "is_demanded": second_factor.is_demanded(user),
        "codes_left": second_factor.recovery_codes_left(user),
        "form": CodeForm(),
        "password": PasswordForm(),
        "password_for_codes": PasswordForm(auto_id="password_for_codes_%s"),
        "password_to_remove": PasswordForm(auto_id="password_to_remove_%s"),
        **forms,
    }
    if context["has_password"] and not context["is_on"]:
        context["offer"] = second_factor.offer(user, waiting.secret_to_set_up(request))
    return render(request, "accounts/second_factor.html", context, status=status)


def _codes(request: HttpRequest, codes: list[str], target: str) -> HttpResponse:
    """Show the codes without a redirect, because they are shown this once."""
    return render(request, "accounts/recovery_codes.html", {"codes": "\n".join(codes), "target": target})


def _require_own_password(user: User) -> None:
    if not admission.knows_password(user):
        raise NotAllowed(
            "no_password",
            _("You do not use a password to sign in here."),
            _("Set up a second factor with your sign-in provider."),
        )
