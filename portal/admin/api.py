"""Actions of the admin's lists over REST: each says what it would do, row by row, and does it if told to.

A page of the admin has the same actions (`accounts/admin/previews.py`). What has an address of its own in the API is
here too, so that no action of a page is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import Actor
from accounts.admin.previews import MOST_AT_ONCE, Effect, Previewed
from accounts.errors import Invalid, NotThere, Refusal
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import checked
from accounts.trail import audit


class ActionShape(serializers.Serializer[Any]):
    of = serializers.CharField(help_text="Kind of the rows, as in quotas.pool.")
    action = serializers.CharField()
    title = serializers.CharField()
    notes = serializers.ListField(child=serializers.CharField())


class ActionsShape(serializers.Serializer[Any]):
    results = ActionShape(many=True)


class ActionBody(StrictSerializer):
    ids = serializers.ListField(
        child=serializers.CharField(max_length=64), allow_empty=False, max_length=MOST_AT_ONCE
    )
    confirm = serializers.BooleanField(default=False, help_text="False: only say what it would do.")


class EffectShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    whom = serializers.CharField()
    what = serializers.ListField(child=serializers.CharField(), help_text="Effects, in sentences.")
    refused = serializers.CharField(allow_blank=True, help_text="Why nothing is done; empty: it is possible.")
    done = serializers.BooleanField(help_text="True: it was confirmed and changed something.")


class EffectsShape(serializers.Serializer[Any]):
    notes = serializers.ListField(child=serializers.CharField())
    results = EffectShape(many=True)


def actions() -> dict[tuple[str, str], tuple[Any, Previewed[Any]]]:
    """All actions of the admin's lists that have a preview, with their page, by kind of row and name."""
    return {
        (model._meta.label_lower, action.name): (page, action)
        for model, page in admin.site._registry.items()
        for action in page.actions or ()
        if isinstance(action, Previewed)
    }


class AdminActionsView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Actions of the admin's lists (admins)"),
        responses=answers({200: ActionsShape}),
    )
    def get(self, request: Request) -> Response:
        _require_admin(request)
        lines = [
            {"of": kind, "action": name, "title": str(action.title), "notes": action.notes()}
            for (kind, name), (_page, action) in sorted(actions().items())
        ]
        return Response({"results": lines})


class AdminActionView(APIView):
    write_scope = Scope.ADMIN
    asks_clusters = True

    @extend_schema(
        summary=gettext_noop("Preview an action of the admin's lists, or do it (admins)"),
        description="Rows on which it is not possible are left out, and `refused` says why. The others are done one by "
        "one: a row that is refused only now has `refused` too.",
        request=ActionBody,
        responses=answers({200: EffectsShape}, 404, 422),
    )
    def post(self, request: Request, of: str, action: str) -> Response:
        actor = _require_admin(request)
        found = actions().get((of, action))
        if found is None:
            raise NotThere("not_found", _("There is no such action."), _("GET admin-actions/ lists them."))
        page, does = found
        body = checked(ActionBody, request)
        rows = _rows(page.get_queryset(request), body["ids"])
        lines = [_line(effect) for effect in does.effects(actor, rows)]
        if body["confirm"]:
            for row, line in zip(rows, lines, strict=True):
                if not line["refused"]:
                    _do(request, actor, does, row, line)
        return Response({"notes": does.notes(), "results": lines})


def _require_admin(request: Request) -> Actor:
    actor = actor_of(request)
    actor.require_admin()
    return actor


def _rows(queryset: models.QuerySet[Any], ids: Sequence[str]) -> list[Any]:
    """Return the rows in the order of their ids. Raise Invalid if one is not there."""
    try:
        found = {str(row.pk): row for row in queryset.filter(pk__in=set(ids))}
    except (ValueError, ValidationError):
        found = {}
    missing = sorted(set(ids) - set(found))
    if missing:
        text = _("There is no row with the id %(id)s.") % {"id": missing[0]}
        raise Invalid("unknown_row", text, _("Look in the list."), fields={"ids": [text]})
    return [found[pk] for pk in dict.fromkeys(ids)]


def _line(effect: Effect) -> dict[str, Any]:
    return {
        "id": effect.pk,
        "whom": effect.whom,
        "what": list(effect.what),
        "refused": effect.refused,
        "done": False,
    }


def _do(request: Request, actor: Actor, does: Previewed[Any], row: Any, line: dict[str, Any]) -> None:
    try:
        line["done"] = bool(does.apply(actor, row))
    except Refusal as refusal:
        audit.record_refusal(request, actor, refusal)
        line["refused"] = f"{refusal.message} {refusal.hint}".strip()
