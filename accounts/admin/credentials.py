"""Admin pages of all SSH keys and API tokens. Tokens can be revoked; no page shows a secret."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import ReadOnlyPage
from accounts.credentials import tokens
from accounts.models import APIToken, SSHKey


class RevokeTokens(Previewed[APIToken]):
    name = "revoke"
    short_description = gettext_lazy("Revoke …")
    title = gettext_lazy("Revoke tokens")
    button = gettext_lazy("Revoke")
    is_grave = True

    def notes(self) -> list[str]:
        return [_("Scripts that use them are refused from the next request on. This cannot be undone.")]

    def effect_on(self, row: APIToken) -> Effect:
        whom = _("“%(name)s” of %(user)s") % {"name": row.name, "user": row.user.username}
        if row.revoked_at is not None:
            return Effect(str(row.pk), whom, refused=_("It is revoked already."))
        used = row.last_used_at
        told = _("Last used on %(date)s.") % {"date": date_format(used)} if used else _("It was never used.")
        scopes = _("It may: %(scopes)s.") % {"scopes": ", ".join(row.scopes)}
        return Effect(str(row.pk), whom, (_("It stops working at once."), scopes, told))

    def apply(self, actor: Actor, row: APIToken) -> bool:
        tokens.end(actor, row)
        return True

    def done(self, count: int) -> str:
        return ngettext("%(count)d token is revoked.", "%(count)d tokens are revoked.", count) % {
            "count": count
        }


class UsableFilter(SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, page: object) -> list[tuple[str, str]]:
        return [
            ("usable", _("usable")),
            ("unused", _("usable, never used")),
            ("expired", _("expired")),
            ("revoked", _("revoked")),
        ]

    def queryset(self, request: HttpRequest, rows: QuerySet[APIToken]) -> QuerySet[APIToken]:
        now = timezone.now()
        usable = Q(revoked_at=None, expires_at__gt=now)
        chosen = {
            "usable": usable,
            "unused": usable & Q(last_used_at=None),
            "expired": Q(revoked_at=None, expires_at__lte=now),
            "revoked": Q(revoked_at__isnull=False),
        }
        return rows.filter(chosen.get(self.value() or "", Q()))


@admin.register(SSHKey)
class SSHKeyPage(ReadOnlyPage[SSHKey]):
    purpose = gettext_lazy(
        "Public keys that people use to log in to their workspaces. People add and remove their own keys."
    )
    fields = ("user", "name", "fingerprint", "public_key", "created_at")
    list_display = ("name", "user", "fingerprint", "created_at")
    search_fields = ("user__username", "name", "fingerprint")
    list_select_related = ("user",)
    date_hierarchy = "created_at"


@admin.register(APIToken)
class APITokenPage(ReadOnlyPage[APIToken]):
    purpose = gettext_lazy(
        "Tokens that scripts use on behalf of a person. A secret is shown once, to that person, and is not stored."
    )
    fields = (
        "user", "name", "prefix", "scopes", "tenant", "created_at", "expires_at", "last_used_at", "revoked_at",
    )  # fmt: skip
    list_display = ("name", "user", "may", "tenant", "expires_at", "last_used_at", "state")
    list_filter = (UsableFilter, "tenant")
    search_fields = ("user__username", "prefix", "name")
    list_select_related = ("user", "tenant")
    date_hierarchy = "created_at"
    actions = (RevokeTokens(),)

    def buttons(self, request: HttpRequest, obj: APIToken) -> list[tuple[str, str]]:
        return [RevokeTokens().as_button] if tokens.is_usable(obj) else []

    @admin.display(description=gettext_lazy("may"))
    def may(self, token: APIToken) -> str:
        return ", ".join(token.scopes)

    @admin.display(description=gettext_lazy("state"))
    def state(self, token: APIToken) -> str:
        if token.revoked_at:
            return _("revoked")
        return _("expired") if token.expires_at <= timezone.now() else _("usable")
