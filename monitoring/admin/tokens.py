"""Admin page for the tokens of node agents: issue one, whose secret is shown once, and revoke tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import Actor
from accounts.admin.previews import Effect, Previewed
from accounts.admin.recorded import RecordedPage
from accounts.rest.actors import actor_of
from monitoring.intake import tokens
from monitoring.models import AgentToken


class RevokeAgentTokens(Previewed[AgentToken]):
    name = "revoke"
    short_description = gettext_lazy("Revoke …")
    title = gettext_lazy("Revoke tokens of agents")
    button = gettext_lazy("Revoke")
    is_grave = True

    def notes(self) -> list[str]:
        return [
            _(
                "Agents that use them are refused at once. They keep their reports for about an hour, "
                "until they find a new token in their file."
            )
        ]

    def effect_on(self, row: AgentToken) -> Effect:
        whom = _("“%(name)s” of %(cluster)s") % {"name": row.name, "cluster": row.cluster}
        if row.revoked_at is not None:
            return Effect(str(row.pk), whom, refused=_("It is revoked already."))
        used = row.last_used_at
        told = _("Last used on %(date)s.") % {"date": date_format(used)} if used else _("It was never used.")
        return Effect(str(row.pk), whom, (_("It stops working at once."), told))

    def apply(self, actor: Actor, row: AgentToken) -> bool:
        return tokens.revoke(actor, row)

    def done(self, count: int) -> str:
        return ngettext("%(count)d token is revoked.", "%(count)d tokens are revoked.", count) % {
            "count": count
        }


@admin.register(AgentToken)
class AgentTokenPage(RecordedPage[AgentToken]):
    purpose = gettext_lazy(
        "Tokens for the node agents of a cluster to report their GPUs. They give access to nothing else. A "
        "secret is shown once and is not stored."
    )
    fields = ("cluster", "name", "prefix", "created_by", "created_at", "last_used_at", "revoked_at")
    readonly_fields = ("prefix", "created_by", "created_at", "last_used_at", "revoked_at")
    list_display = ("name", "cluster", "created_at", "last_used_at", "state")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "cluster")
    search_fields = ("name", "prefix")
    list_select_related = ("cluster",)
    actions = (RevokeAgentTokens(),)

    def has_change_permission(self, request: HttpRequest, obj: AgentToken | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AgentToken | None = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: AgentToken | None = None) -> Any:
        return self.fields if obj else ("cluster", "name")

    def buttons(self, request: HttpRequest, obj: AgentToken) -> list[tuple[str, str]]:
        return [] if obj.revoked_at else [RevokeAgentTokens().as_button]

    def save_model(self, request: HttpRequest, obj: AgentToken, form: Any, change: bool) -> None:
        token, secret = tokens.issue(actor_of(request), obj.cluster, obj.name)
        obj.pk = token.pk
        request.agent_secret = secret  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: AgentToken, post_url_continue: str | None = None
    ) -> Any:
        """Show the secret. No page can show it again."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("A token for the agents of %(cluster)s") % {"cluster": obj.cluster},
            "opts": self.opts,
            "secret": getattr(request, "agent_secret", ""),
        }
        response = TemplateResponse(request, "admin/monitoring/agenttoken/made.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    @admin.display(description=gettext_lazy("state"))
    def state(self, token: AgentToken) -> str:
        return _("revoked") if token.revoked_at else _("usable")
