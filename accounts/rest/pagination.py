"""Keyset pagination: a page starts after the last row of the previous one, so new or deleted rows shift nothing.

DRF's CursorPagination does not fit: it compares the first column only and counts an offset among rows with equal
values. A list ordered by tenant would shift when such a row is added or deleted. It also answers a bad cursor with 404,
fails with 500 on a forged position, and ignores a bad limit. A subclass would override all of its methods.
"""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.db.models import Field, Model, Q
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 500


class KeysetPagination(BasePagination):
    """Pages newest first, or by the view's `keyset`: a column and the primary key, both up or both down.

    A view with `orderings` lets the caller choose one of these columns, by `?ordering=`.
    """

    keyset = ("-created_at", "-id")

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        column, key = _asked_order(request, view) or self._usual_order(view)
        self.request, self.following = request, None
        limit = _limit_of(request)
        queryset = queryset.order_by(column, key)
        cursor = request.query_params.get("cursor")
        if cursor is not None:
            queryset = queryset.filter(_after(queryset.model, column, key, cursor))
        rows = list(queryset[: limit + 1])
        if len(rows) > limit:
            rows.pop()
            self.following = _cursor_of(rows[-1], column, key)
        return rows

    def _usual_order(self, view: Any) -> tuple[str, str]:
        order: tuple[str, str] = getattr(view, "keyset", self.keyset)
        return order

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self._next_url()})

    def _next_url(self) -> str | None:
        if self.following is None:
            return None
        return replace_query_param(self.request.build_absolute_uri(), "cursor", self.following)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {
                    "type": "string",
                    "format": "uri",
                    "nullable": True,
                    "description": "The next page.",
                },
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT}
        return [
            {"name": "limit", "in": "query", "required": False, "schema": limit},
            {
                "name": "cursor",
                "in": "query",
                "required": False,
                "description": "Taken from `next`; opaque.",
                "schema": {"type": "string"},
            },
            *_parameter_of_order(view),
        ]


def _asked_order(request: Request, view: Any) -> tuple[str, str] | None:
    """Return the order that the caller asks for, if the view offers several."""
    offered = getattr(view, "orderings", ())
    column = request.query_params.get("ordering") if offered else None
    if column is None:
        return None
    if column not in offered:
        raise ValidationError(
            {"ordering": [_("Use one of these: %(names)s.") % {"names": ", ".join(offered)}]}
        )
    return column, "-id" if column.startswith("-") else "id"


def _parameter_of_order(view: Any) -> list[dict[str, Any]]:
    offered = list(getattr(view, "orderings", ()))
    schema = {"type": "string", "enum": offered}
    return [{"name": "ordering", "in": "query", "required": False, "schema": schema}] if offered else []


def _limit_of(request: Request) -> int:
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= LARGEST_LIMIT:
        return int(text)
    raise ValidationError({"limit": [_("Use a whole number from 1 to %(most)d.") % {"most": LARGEST_LIMIT}]})


def _cursor_of(row: Model, column: str, key: str) -> str:
    """Return a signed cursor: it cannot be changed, and needs no other check when it comes back."""
    values = [_field(type(row), name).value_to_string(row) for name in (column, key)]
    return signing.dumps(values, salt=_salt(type(row), column))


def _after(model: type[Model], column: str, key: str, cursor: str) -> Q:
    try:
        texts = signing.loads(cursor, salt=_salt(model, column))
        names = [name.lstrip("-") for name in (column, key)]
        value, identity = (
            _field(model, name).to_python(text) for name, text in zip(names, texts, strict=True)
        )
    except (signing.BadSignature, ValueError, UnicodeEncodeError):
        raise ValidationError({"cursor": [_("Use the value of “next” on the previous page.")]}) from None
    side = "lt" if column.startswith("-") else "gt"
    beyond = Q(**{f"{names[0]}__{side}": value}) | Q(**{names[0]: value, f"{names[1]}__{side}": identity})
    return Q(**{f"{names[0]}__{side}e": value}) & beyond  # the first condition lets PostgreSQL use an index


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.get_field(name.lstrip("-"))
    assert isinstance(field, Field)
    return field


def _salt(model: type[Model], column: str) -> str:
    """Salt that binds a cursor to one kind of list."""
    return f"berth.cursor.{model._meta.label_lower}.{column}"
