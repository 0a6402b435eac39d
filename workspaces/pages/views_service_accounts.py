"""Pages of a tenant's service accounts, for its owners: create, tokens, take over, delete."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import Actor
from accounts.asking import ask
from accounts.errors import Conflict, Invalid, NotAllowed
from accounts.forms import ServiceAccountForm, ServiceTokenForm, show_refusal
from accounts.models import User
from accounts.service_accounts import changing
from accounts.trail import audit
from workspaces.pages.views_tenant import owner_and_tenant, tenant_page
from workspaces.runs import people


@login_required
@require_POST
def create(request: HttpRequest, slug: str) -> HttpResponse:
    actor, of = owner_and_tenant(request, slug)
    form = ServiceAccountForm(request.POST)
    if form.is_valid():
        try:
            account = changing.create(actor, tenant=of.slug, **form.cleaned_data)
        except (Conflict, Invalid) as refusal:
            audit.record_refusal(request, actor, refusal)
            show_refusal(form, refusal)
        else:
            messages.success(
                request, _("%(name)s was created. Now create a token.") % {"name": account.username}
            )
            return redirect("service-account", slug, account.pk)
    return tenant_page(request, actor, of, service_form=form, status=422)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def account(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Show the account and its tokens; on POST, create a token."""
    actor, found = _find(request, slug, id)
    if request.method == "GET":
        return _page(request, actor, found)
    form = ServiceTokenForm(request.POST)
    if form.is_valid():
        try:
            _token, secret = changing.create_token(actor, found, **form.cleaned_data)
        except (Conflict, Invalid, NotAllowed) as refusal:
            audit.record_refusal(request, actor, refusal)
            show_refusal(form, refusal)
        else:
            return _page(request, actor, found, secret=secret)  # not a redirect: the secret is kept nowhere
    return _page(request, actor, found, form=form, status=422)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def adopt(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    actor, found = _find(request, slug, id)
    name = {"name": found.username}
    if request.method == "GET":
        effects = [
            _("You answer for it from now on, and create its tokens."),
            _("Its present tokens are revoked, because others may know them. This cannot be undone."),
        ]
        back = reverse("service-account", args=[slug, id])
        return ask(
            request,
            "tenants",
            back,
            _("Take over the service account %(name)s?") % name,
            effects,
            _("Take over"),
        )
    if changing.adopt(actor, found):
        messages.success(
            request,
            _("You answer for %(name)s now. Its earlier tokens are revoked: create a new one.") % name,
        )
    return redirect("service-account", slug, id)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    actor, found = _find(request, slug, id)
    name = {"name": found.username}
    if request.method == "GET":
        effects = [
            _("Its tokens stop working at once. This cannot be undone."),
            _(
                "Stop its workspaces and jobs first: it cannot be deleted while something of it runs or waits."
            ),
        ]
        title = _("Delete the service account %(name)s?") % name
        back = reverse("service-account", args=[slug, id])
        return ask(request, "tenants", back, title, effects, _("Delete"))
    try:
        changing.delete(actor, found)
    except Conflict as refusal:
        audit.record_refusal(request, actor, refusal)
        messages.error(request, f"{refusal.message} {refusal.hint}")
        return redirect("service-account", slug, id)
    messages.success(request, _("%(name)s was deleted.") % name)
    return redirect("tenant", slug)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def revoke_token(request: HttpRequest, slug: str, id: UUID, token_id: UUID) -> HttpResponse:
    actor, found = _find(request, slug, id)
    if request.method == "GET":
        title = _("Revoke the token “%(name)s”?") % {"name": changing.get_token(found, token_id).name}
        effects = [_("Scripts that use it are refused from now on. This cannot be undone.")]
        back = reverse("service-account", args=[slug, id])
        return ask(request, "tenants", back, title, effects, _("Revoke"))
    changing.revoke_token(actor, found, token_id)
    messages.success(request, _("The token is revoked."))
    return redirect("service-account", slug, id)


def _find(request: HttpRequest, slug: str, id: UUID) -> tuple[Actor, User]:
    actor, of = owner_and_tenant(request, slug)
    return actor, changing.get(actor, id, tenant=of)


def _page(
    request: HttpRequest,
    actor: Actor,
    found: User,
    *,
    form: ServiceTokenForm | None = None,
    secret: str | None = None,
    status: int = 200,
) -> HttpResponse:
    assert found.service_of is not None
    membership = found.memberships.get()
    context: dict[str, Any] = {
        "section": "tenants",
        "tenant": found.service_of,
        "account": found,
        "membership": membership,
        "seat": people.seats(found.service_of, [membership])[0],
        "tokens": changing.tokens_of(found),
        "form": form or ServiceTokenForm(),
        "answers": found.responsible_id == actor.user.pk,
        "secret": secret,
        "api": request.build_absolute_uri("/api/v1/me/"),
    }
    return render(request, "tenants/service_account.html", context, status=status)
