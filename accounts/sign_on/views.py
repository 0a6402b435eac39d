"""Pages for signing in, by a password or by the provider, and for signing out."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from accounts.credentials import devices
from accounts.credentials import sign_in as signing_in
from accounts.errors import Refusal
from accounts.forms import PasswordForm, SignInForm, show_refusal
from accounts.models import AuditEntry, User
from accounts.preferences import remembered
from accounts.rest import rates
from accounts.rest.actors import actor_of
from accounts.sign_on import admission, second_factor, waiting
from accounts.sign_on.configuration import Provider
from accounts.sign_on.provider import Conversation
from accounts.signals import send_access_changed
from accounts.targets import safe_target
from accounts.trail import audit


@never_cache
@sensitive_post_parameters("password")
def sign_in(request: HttpRequest) -> HttpResponse:
    target = safe_target(request)
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
            typed = form.cleaned_data["username"]
            return after_password(request, user, target, how=signing_in.way_of(user), typed=typed)
    return _page(request, target, form, refusal)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    user = request.user
    if isinstance(user, User):
        signing_in.sign_out(user)
    logout(request)
    if isinstance(user, User):
        send_access_changed(user)  # open connections of this session end too
    return redirect("sign-in")


@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider. Used as a link, not a form: our pages (CSP) send forms nowhere else."""
    provider = _provider()
    target = safe_target(request)
    if request.user.is_authenticated:
        return redirect(target)
    try:
        rates.count_stranger()  # each call asks the provider, and creates a session
        return redirect(_conversation(request, provider).begin({"target": target}))
    except Refusal as refusal:
        return _page(request, target, refusal=refusal)


@never_cache
@login_required
@require_POST
@sensitive_post_parameters("password")
def connect(request: HttpRequest) -> HttpResponse:
    """Send the signed-in person to the provider, to connect their account. A form of ours starts it, so that no other
    site can. It needs the password, because the new way to sign in stays and needs no second factor."""
    provider = _provider()
    user = actor_of(request).user
    password = PasswordForm(request.POST if "password" in request.POST else None)
    refusal = None
    context = {"provider": provider, "password": password}
    if password.is_valid():
        try:
            signing_in.confirm(user, password.cleaned_data["password"])
        except Refusal as refused:
            refusal = refused
            show_refusal(password, refused)
    if not admission.knows_password(user) or (password.is_valid() and refusal is None):
        context["address"] = _conversation(request, provider).begin({"connect": str(user.pk)})
    return answer(render(request, "accounts/connect.html", context), refusal)


@never_cache
@sensitive_variables("proof")
def callback(request: HttpRequest) -> HttpResponse:
    """Handle the browser's return from the provider."""
    provider = _provider()
    conversation = _conversation(request, provider)
    try:
        proof = conversation.finish()
        if "connect" in proof.kept:
            return _connected(request, provider, proof.kept["connect"], proof.claims)
        user = admission.admit(provider, proof.claims)
    except Refusal as refusal:
        _record_refused(refusal)
        target = conversation.kept.get("target") or resolve_url(settings.LOGIN_REDIRECT_URL)
        return _page(request, target, refusal=refusal)  # the next try leads to the same target
    return finish(request, user, proof.kept["target"], how="oidc")


def finish(request: HttpRequest, user: User, target: str, *, how: str, typed: str = "") -> HttpResponse:
    """Sign the person in, with a new session key. No other place does. The answer's cookies belong to the browser.
    `typed`: the name that came with a password."""
    waiting.drop(request)
    login(request, user, backend=signing_in.BERTH)
    signing_in.record_signed_in(user, how)
    response = remembered(redirect(target), user)
    devices.remember(request, response, user, typed)
    return response


def after_password(
    request: HttpRequest, user: User, target: str, *, how: str, typed: str, code_given: bool = False
) -> HttpResponse:
    """Sign in, or ask for what is still missing. `how`: whose password it was (`sign_in.way_of`)."""
    step = _still_asked(user, how, code_given)
    if step is None:
        return finish(request, user, target, how=f"{how} and code" if code_given else how, typed=typed)
    waiting.hold(request, user, target, code_given=code_given, how=how, typed=typed)
    return redirect(step)


def held_at(request: HttpRequest, step: str) -> waiting.Waiting | None:
    """Return the half-done sign-in if this is its next step, else None."""
    held = None if request.user.is_authenticated else waiting.held(request)
    return held if held and _still_asked(held.user, held.how, held.code_given) == step else None


def _still_asked(user: User, how: str, code_given: bool) -> str | None:
    """Return the page still to pass after a right password, or None. The code comes first: a person who only has a
    password that an admin made must not choose another."""
    if not code_given and second_factor.is_on(user):
        return "sign-in-code"
    if user.password_is_first and how == "password":
        return "sign-in-password"
    return "sign-in-set-up" if not code_given and second_factor.is_demanded(user) else None


def _provider() -> Provider:
    provider: Provider | None = settings.OIDC
    if provider is None:
        raise Http404
    return provider


def _conversation(request: HttpRequest, provider: Provider) -> Conversation:
    return Conversation(request, provider, request.build_absolute_uri(reverse("sign-on-callback")))


def _connected(request: HttpRequest, provider: Provider, wanted: str, claims: dict[str, Any]) -> HttpResponse:
    if not request.user.is_authenticated or str(request.user.pk) != wanted:
        return redirect("sign-in")  # somebody else is signed in by now
    admission.connect(actor_of(request), provider, claims)
    messages.success(request, _("From now on you can sign in with %(name)s.") % {"name": provider.name})
    return redirect("profile")


def _record_refused(refusal: Refusal) -> None:
    """Record a refusal of a person whom the provider vouched for, or tried to. Earlier failures are only logged,
    because anybody could repeat them at will."""
    if refusal.status in (403, 409) or refusal.code == "sign_on_unproven":
        audit.record(
            None, "sign-in", outcome=AuditEntry.Outcome.REFUSED, data={"code": refusal.code, "by": "oidc"}
        )


def _page(
    request: HttpRequest, target: str, form: SignInForm | None = None, refusal: Refusal | None = None
) -> HttpResponse:
    form = form or SignInForm()
    if settings.OIDC is not None:
        form.fields["username"].widget.attrs.pop("autofocus", None)  # most people press the button above it
    context = {
        "form": form,
        "refusal": refusal,
        "next": target,
        "provider": settings.OIDC,
        "directory": settings.LDAP,
        "fold_password": settings.OIDC is not None
        and settings.LDAP is None
        and settings.PASSWORDS_FOR == "admins",
    }
    return answer(render(request, "accounts/sign_in.html", context), refusal)


def answer(response: HttpResponse, refusal: Refusal | None) -> HttpResponse:
    """Give the page the status and Retry-After of the refusal that it shows."""
    if refusal is not None:
        response.status_code = refusal.status
        if refusal.retry_after_seconds is not None:
            response["Retry-After"] = str(refusal.retry_after_seconds)
    return response
