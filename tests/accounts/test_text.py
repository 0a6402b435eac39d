"""Names that people and admins choose: what is refused, in pages, API and import alike."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from accounts import members
from accounts.credentials import tokens
from accounts.errors import Invalid
from accounts.models import Scope, Tenant
from accounts.text import is_visible
from tests.accounts.people import People

BIDI = [chr(point) for point in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]


@pytest.mark.parametrize("text", ["Vision", "연구실 3", "فريق می‌رود", "team 👩‍🔬", "a-b_c.d", ""])
def test_a_name_as_people_write_it_is_taken(text: str) -> None:
    assert is_visible(text)


@pytest.mark.parametrize("sign", [*BIDI, "\x00", "\n", "\x1b", "\u2028", "\ufeff"], ids=ascii)
def test_signs_that_hide_or_turn_the_text_are_refused(sign: str) -> None:
    assert not is_visible(f"Vis{sign}ion")


@pytest.mark.django_db
def test_no_way_to_make_a_tenant_or_a_token_takes_them(people: People) -> None:
    with pytest.raises(Invalid):
        members.create_tenant(people.admin, slug="new", name="a\u202eb")
    with pytest.raises(ValidationError):
        Tenant(slug="new", name="a\u202eb").full_clean()
    with pytest.raises(Invalid):
        tokens.issue(people.bob.user, "a\u202eb", [Scope.READ])
