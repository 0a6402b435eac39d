"""Memory, disks and CPUs in the admin: in GiB and cores, and saved again as they were."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from accounts.admin.units import CoresField, GibField, ScaledField, field_class
from accounts.models import User

MOST = 2**63 - 1  # of the widest column
KINDS = [GibField, CoresField]


@given(st.sampled_from(KINDS), st.integers(0, MOST))
def test_what_is_shown_and_saved_again_is_the_same(kind: type[ScaledField], stored: int) -> None:
    field = kind(most=MOST)
    shown = field.prepare_value(stored)
    assert field.clean(shown) == stored
    assert not field.has_changed(stored, shown)


@given(st.sampled_from(KINDS), st.decimals(allow_nan=True, allow_infinity=True) | st.text(max_size=50))
def test_whatever_is_typed_is_stored_exactly_or_refused(kind: type[ScaledField], typed: Any) -> None:
    field = kind(least=64, most=10**6)
    try:
        stored = field.clean(str(typed))
    except ValidationError:
        assert field.has_changed(64, str(typed))
        assert field.prepare_value(str(typed)) == str(typed)  # stays in the form
    else:
        assert 64 <= stored <= 10**6
        assert field.to_python(str(typed)) == field.to_python(field.prepare_value(stored))


@pytest.mark.parametrize(
    ("kind", "typed", "code"),
    [
        (GibField, "-1", "out_of_range"), (GibField, "0.01", "out_of_range"), (GibField, "3000000", "out_of_range"),
        (GibField, "1e999999", "out_of_range"), (GibField, "1e-999999", "out_of_range"),
        (GibField, "0.3", "not_whole"), (CoresField, "0.1234", "not_whole"),
        (CoresField, "1." + "0" * 60 + "1", "not_whole"),
        (GibField, "NaN", "invalid"), (GibField, "", "required"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_wrong(kind: type[ScaledField], typed: str, code: str) -> None:
    with pytest.raises(ValidationError) as refused:
        kind(least=64, most=2**31 - 1).clean(typed)
    assert [error.code for error in refused.value.error_list] == [code]


def forms_of_the_admin() -> Iterator[type[BaseForm]]:
    """Yield every form in which an admin adds or changes something: of pages, of their rows, of lists."""
    request = RequestFactory().get("/")
    request.user = User(username="root", is_superuser=True, is_staff=True, is_active=True)
    for page in admin.site._registry.values():
        if page.has_add_permission(request):
            yield page.get_form(request)
        if page.list_editable:
            yield page.get_changelist_form(
                request, formfield_callback=partial(page.formfield_for_dbfield, request=request)
            )
        for inline in page.get_inline_instances(request):
            if inline.has_add_permission(request, None):
                yield inline.get_formset(request).form


def test_every_form_takes_memory_and_cpus_in_the_units_that_people_use() -> None:
    found = [
        (name, field)
        for form in forms_of_the_admin()
        for name, field in form.base_fields.items()  # type: ignore[attr-defined]
        if field_class(name)
    ]
    assert len(found) >= 20
    assert [name for name, field in found if type(field) is not field_class(name)] == []
    assert [field.label for name, field in found if "MiB" in str(field.label)] == []
