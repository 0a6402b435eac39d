"""A kind of object that admins configure: its natural key, its fields in the units of the API, how it is written.

Forms, audit entries, consequences and reasons against a deletion are those of the kind's page in the admin.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.contrib import admin
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.forms import ModelForm, modelform_factory
from django.utils.translation import gettext as _
from rest_framework import serializers

from accounts.access import Actor
from accounts.admin.recorded import RecordedPage, changes_of
from accounts.errors import Conflict, Refusal
from accounts.models import Tenant, User
from accounts.rest.serializers import StrictSerializer
from clusters.models import Cluster
from portal.configuration.difference import Key
from quotas.models import Pool

NAMED_BY: dict[type[models.Model], str] = {Cluster: "slug", Pool: "slug", Tenant: "slug", User: "username"}


class Faulty(Exception):
    """Values that cannot be saved, as texts by field of the API. "" is about the whole object."""

    def __init__(self, fields: Mapping[str, Iterable[object]]) -> None:
        super().__init__()
        self.fields = {name: [str(text) for text in texts] for name, texts in fields.items()}


class Names:
    """Objects that others refer to, by their names: each model is read once, until one of it is saved."""

    def __init__(self) -> None:
        self._known: dict[type[models.Model], dict[str, Any]] = {}

    def find(self, model: type[models.Model], name: str) -> Any | None:
        if model not in self._known:
            by = NAMED_BY[model]
            self._known[model] = {getattr(obj, by): obj for obj in model._default_manager.all()}
        return self._known[model].get(name)

    def forget(self, model: type[models.Model]) -> None:
        self._known.pop(model, None)


class Kind:
    """`fields` are those beside the key. `columns` are what the form has, where that differs: see `renamed`."""

    name: str
    model: type[Any]
    key: tuple[str, ...] = ("slug",)
    fields: tuple[str, ...]
    renamed: Mapping[str, str] = {}  # column → field
    special: tuple[str, ...] = ()  # fields that a use case writes, not the form
    form: type[ModelForm[Any]] | None = None
    can_delete = True

    # --- what it is

    @property
    def all_fields(self) -> tuple[str, ...]:
        return (*self.key, *self.fields)

    @property
    def page_model(self) -> type[models.Model]:
        """Model whose admin page records changes; where the kind is only rows on another page, that one's."""
        return self.model

    @property
    def page(self) -> RecordedPage[Any]:
        page: Any = admin.site.get_model_admin(self.page_model)
        return page  # type: ignore[no-any-return]

    def column(self, name: str) -> models.Field[Any, Any]:
        field = self.model._meta.get_field(name)
        assert isinstance(field, models.Field)
        return field

    @cached_property
    def columns(self) -> tuple[str, ...]:
        as_column = {field: column for column, field in self.renamed.items()}
        return tuple(as_column.get(name, name) for name in self.all_fields if name not in self.special)

    @cached_property
    def optional(self) -> frozenset[str]:
        """Fields that a new object can do without."""
        names = dict(zip((n for n in self.all_fields if n not in self.special), self.columns, strict=True))
        columns = {name: self.column(column) for name, column in names.items()}
        return frozenset(self.special) | {
            name for name, column in columns.items() if column.has_default() or column.blank or column.null
        }

    @cached_property
    def shape(self) -> type[StrictSerializer]:
        """Serializer of an object as a file or a request has it; types are checked here, values by the form."""
        answer = {
            "to_representation": lambda _serializer, obj: self.read(obj),
            "__doc__": self.model.__doc__,
        }
        return type(f"{self.model.__name__}Settings", (StrictSerializer,), self.shapes() | answer)

    @cached_property
    def changes_shape(self) -> type[StrictSerializer]:
        """Serializer of a change: all but the key, and nothing is required."""
        fields: dict[str, Any] = {n: field for n, field in self.shapes().items() if n not in self.key}
        for field in fields.values():
            field.required = False
            field._kwargs["required"] = False  # DRF copies fields by the arguments they were made with
        return type(
            f"{self.model.__name__}Changes", (StrictSerializer,), fields | {"__doc__": self.model.__doc__}
        )

    def shapes(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        named = dict(zip((n for n in self.all_fields if n not in self.special), self.columns, strict=True))
        return {
            name: shape_of(self.column(column), required=name not in self.optional)
            for name, column in named.items()
        }

    # --- reading

    def rows(self) -> models.QuerySet[Any]:
        names = [n for n in self.columns if self.column(n).is_relation]
        rows: models.QuerySet[Any] = self.model._default_manager.select_related(*names)
        return rows

    def read(self, obj: Any) -> dict[str, Any]:
        return {name: self.value(obj, name) for name in self.all_fields}

    def value(self, obj: Any, name: str) -> Any:
        column = self.column(name)
        if column.is_relation:
            other = getattr(obj, name) if getattr(obj, column.attname) is not None else None
            return other and getattr(other, NAMED_BY[type(other)])
        value = getattr(obj, name)
        if isinstance(value, Decimal):
            return int(value) if value == value.to_integral_value() else float(value)
        return deepcopy(value)

    def key_of(self, values: Mapping[str, Any]) -> Key:
        """Return the key. Raise Faulty if a part of it is missing, or is no text."""
        parts = [values.get(name) for name in self.key]
        missing = {
            name: [_("This field is required.") if part is None else _("This must be text.")]
            for name, part in zip(self.key, parts, strict=True)
            if not (isinstance(part, str) or (part is None and name in self.optional))
        }
        if missing:
            raise Faulty(missing)
        return tuple(parts)

    def find(self, key: Key) -> Any | None:
        """Return the object of a key that is made of texts without NUL, as an address has it."""
        lookups = {
            name if not self.column(name).is_relation else f"{name}__{NAMED_BY[self.related(name)]}": part
            for name, part in zip(self.key, key, strict=True)
            if part is not None
        }
        absent = {f"{name}__isnull": True for name, part in zip(self.key, key, strict=True) if part is None}
        return self.rows().filter(**lookups, **absent).first()

    def related(self, name: str) -> Any:
        return self.column(name).related_model

    # --- writing

    def rank(self, values: Mapping[str, Any]) -> int:
        """Return the place in the order in which a file's objects of this kind are written."""
        return 0

    def save(self, actor: Actor, obj: Any | None, values: Mapping[str, Any], names: Names) -> Any:
        """Create the object, or change it. `values` are of the right types. Raise Faulty or a Refusal."""
        form = self.bound(obj, values, names)
        if not form.is_valid():
            raise self.faults_of(form)
        is_new = obj is None
        if is_new or form.has_changed():
            obj = form.save()
            names.forget(self.model)
            self.page.write_down(
                actor, obj, "create" if is_new else "change", changes_of(form, is_new=is_new)
            )
        self.save_special(actor, obj, values)
        return obj

    def save_special(self, actor: Actor, obj: Any, values: Mapping[str, Any]) -> None:
        """Write the `special` fields by their use cases."""

    def bound(self, obj: Any | None, values: Mapping[str, Any], names: Names) -> ModelForm[Any]:
        wanted = {**self.read(obj or self.model()), **values}
        data = {column: self.entered(column, value) for column, value in self.cells(wanted, names).items()}
        form = self._form_class(data, instance=obj)
        for field in form.fields.values():
            field.show_hidden_initial = False  # compare with the row: nobody saw a page
        return form

    @cached_property
    def _form_class(self) -> type[ModelForm[Any]]:
        base = self.form or self.page.form
        return modelform_factory(self.model, form=base, fields=self.columns)

    def cells(self, values: Mapping[str, Any], names: Names) -> dict[str, Any]:
        """Return the value of each column: references as their objects. Raise Faulty if one does not exist."""
        faults: dict[str, list[str]] = {}
        cells = {}
        for name in self.columns:
            value = values.get(name)
            if self.column(name).is_relation and value is not None:
                other = names.find(self.related(name), value)
                if other is None:
                    faults[name] = [_("There is no “%(name)s”.") % {"name": str(value)[:80]}]
                value = other
            cells[name] = value
        if faults:
            raise Faulty(faults)
        return cells

    def entered(self, name: str, value: Any) -> Any:
        """Return a value as somebody would enter it into the form."""
        column = self.column(name)
        if isinstance(value, models.Model):
            return value.pk
        if isinstance(column, models.JSONField):
            return json.dumps(value)
        if isinstance(column, ArrayField):
            return ",".join(value)
        if isinstance(column, models.BooleanField):
            return value
        return "" if value is None else str(value)

    def faults_of(self, form: ModelForm[Any]) -> Faulty:
        return Faulty(
            {
                self.renamed.get(name, name).replace("__all__", ""): texts
                for name, texts in form.errors.items()
            }
        )

    def delete(self, actor: Actor, obj: Any) -> None:
        """Delete it with what belongs to it. Raise Conflict if the admin's page would refuse to."""
        if why := self.why_kept(obj):
            raise Conflict("in_use", why, _("Change it instead, or end what uses it first."))
        self.page.write_down(actor, obj, "delete", {})
        obj.delete()
        connection.check_constraints()

    def why_kept(self, obj: Any) -> str:
        if not self.can_delete:
            return _("These are not deleted here.")
        if self.page_model is not self.model:
            return ""
        if why := self.page.why_kept(obj):
            return why
        *_others, kept = self.page.get_deleted_objects([obj], None)  # type: ignore[arg-type]
        return _("It is used by: %(names)s.") % {"names": ", ".join(kept)} if kept else ""


def shape_of(column: models.Field[Any, Any], *, required: bool) -> serializers.Field[Any, Any, Any, Any]:
    """Return the field of a request for a column."""
    common: dict[str, Any] = {"required": required, "help_text": column.help_text}
    nullable = {**common, "allow_null": column.null}
    if column.choices:
        return serializers.ChoiceField(column.choices, **nullable)
    match column:
        case models.BooleanField():
            return serializers.BooleanField(**nullable)
        case models.IntegerField():
            return serializers.IntegerField(min_value=0, **nullable)
        case models.DecimalField() | models.FloatField():
            return serializers.FloatField(min_value=0, **nullable)
        case ArrayField():
            return serializers.ListField(child=serializers.CharField(), **common)
        case models.JSONField() if column.get_default() == []:
            return serializers.ListField(**common)
        case models.JSONField():
            return serializers.DictField(**common)
        case models.ForeignKey():
            return serializers.CharField(**nullable)
    longest: dict[str, Any] = {"max_length": column.max_length} if column.max_length else {}
    return serializers.CharField(allow_blank=column.blank, trim_whitespace=False, **longest, **common)


def refusal_texts(refusal: Refusal) -> dict[str, Sequence[str]]:
    return dict(refusal.fields) or {"": [f"{refusal.message} {refusal.hint}".strip()]}
