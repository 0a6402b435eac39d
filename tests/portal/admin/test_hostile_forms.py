"""Hostile values in the forms of the admin: each answers with errors at its fields, or saves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib.admin import site
from django.db import transaction
from django.test import Client, RequestFactory

from tests.admin_forms import text_of
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]

HOSTILE = (
    "x" * 20_000, "\0", "-1", "9" * 20, "1e400", "NaN", '{"a": {"b": [null]}}', "[1]", "9999-12-31", "http://[",
)  # fmt: skip
# What a form does not say itself, so that all but one field is right.
RIGHT: dict[str, dict[str, Any]] = {
    "cluster": {"kubeconfig_path": "/etc/kubeconfig"},
    "image": {"reference": "lab/x:1", "username": "jovyan", "home": "/home/jovyan", "shell": "/bin/sh"},
}


def right_value(field: forms.Field, value: Any) -> Any:
    """Return a value that the field takes, for a form that was opened and not filled in."""
    if value not in (None, "") or not field.required:
        return value
    if isinstance(field, forms.ModelChoiceField):
        return field.queryset.order_by("-pk").values_list("pk", flat=True).first()  # type: ignore[union-attr]
    if isinstance(field, forms.ChoiceField):
        choices: Any = field.choices
        return next(key for key, _label in choices if key)
    return 1 if isinstance(field, forms.IntegerField | forms.DecimalField) else "made"


def names_of(bound: forms.BoundField) -> list[str]:
    parts = len(getattr(bound.field.widget, "widgets", [])) or 1
    return [bound.html_name] if parts == 1 else [f"{bound.html_name}_{part}" for part in range(parts)]


def filled_in(form: forms.ModelForm[Any]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for bound in form:
        value = right_value(bound.field, bound.value())
        names = names_of(bound)
        split = bound.field.widget.decompress(value or None) if len(names) > 1 else [value]
        data |= {name: "" if part is None else str(part) for name, part in zip(names, split, strict=True)}
    return data | RIGHT.get(form._meta.model._meta.model_name or "", {})


def pages_that_add(cast: Cast) -> Iterator[tuple[Any, Any]]:
    request = RequestFactory().get("/")
    request.user = cast.admin.user
    for page in site._registry.values():
        if page.has_add_permission(request):
            yield page, page.get_form(request)


def wrong_with(kind: Any, data: dict[str, Any]) -> str:
    """Return what is wrong with the answer to these values; empty if they are saved, or refused at a field."""
    try:
        with transaction.atomic():
            form = kind(data)
            if form.is_valid():
                form.save(commit=False).save()
                transaction.set_rollback(True)
            else:
                str(form)  # drawn again, with what was typed
    except Exception as error:
        return repr(error)[:200]
    return ""


def is_refused(field: forms.Field, value: str) -> bool:
    """Return True if the field alone refuses the value, so that no form with it is saved."""
    if len(getattr(field.widget, "widgets", [])) > 1:
        return False
    try:
        field.clean(value)
    except forms.ValidationError:
        return True
    return False


def test_what_is_no_key_is_an_error_at_its_field(admin: Client) -> None:
    page = admin.post(
        "/admin/quotas/budget/add/", {"tenant": "nobody", "gpu_hours": "1", "grace_minutes": "7"}
    )
    assert page.status_code == 200
    assert set(page.context["adminform"].form.errors) == {"tenant"}
    assert 'name="grace_minutes" value="7"' in text_of(page)  # what was typed stays
    assert admin.get("/admin/quotas/budget/add/?tenant=nobody").status_code == 200


@pytest.mark.slow
def test_no_value_of_a_field_breaks_a_form(cast: Cast) -> None:
    cast.pool.quotas.all().delete()  # so that a new one is right
    wrong, saved = [], 0
    for page, kind in pages_that_add(cast):
        empty = kind()
        right = filled_in(empty)
        assert kind(right).is_valid(), (page, kind(right).errors)
        for value in HOSTILE:
            everywhere = dict.fromkeys(right, value)
            odd = [
                {**right, name: value}
                for bound in empty
                for name in names_of(bound)
                if not is_refused(bound.field, value)
            ]
            saved += len(odd)
            found = [said for data in (everywhere, *odd) if (said := wrong_with(kind, data))]
            wrong += [f"{page.opts.label} {value[:30]!r}: {said}" for said in found]
    assert wrong == []
    assert saved > 200
