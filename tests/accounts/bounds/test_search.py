"""Bounds of searches on pages and in the admin; those of the API's lists are in test_lists.py."""

from __future__ import annotations

import pytest

from accounts.search import MOST_CHARACTERS, MOST_WORDS, bounded, too_much
from tests.accounts.people import People
from tests.shared.clients import api, ask, browser

MANY_WORDS = "+".join(["demo"] * (MOST_WORDS + 1))
LONG = "d" * (MOST_CHARACTERS + 1)


def test_the_bounds_are_exact() -> None:
    assert too_much("x" * MOST_CHARACTERS) == too_much(" ".join(["w"] * MOST_WORDS)) == ""
    assert too_much("x" * (MOST_CHARACTERS + 1)) == too_much(",".join(["w"] * (MOST_WORDS + 1))) != ""
    bounded("")


@pytest.mark.parametrize("search", [MANY_WORDS, LONG])
def test_a_search_that_is_too_long_is_refused_and_not_cut(people: People, search: str) -> None:
    script, client = api(people.admin), browser(people.admin)
    for path in ("audit/", "audit/?format=csv", "budgets/"):
        answer = ask(script, "GET", f"{path}{'&' if '?' in path else '?'}search={search}")
        assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["search"]), path
    says = too_much(search.replace("+", " "))
    for page in ("/audit/", "/tenants/"):
        answer = client.get(f"{page}?search={search}")
        assert (answer.status_code, says in answer.text) == (422, True), page


@pytest.mark.parametrize("search", [MANY_WORDS, LONG])
def test_the_admin_says_so_too(people: People, search: str) -> None:
    client = browser(people.admin)
    answer = client.get(f"/admin/accounts/tenant/?q={search}")
    assert answer.status_code == 200
    assert too_much(search.replace("+", " ")) in answer.text
    address = "/admin/autocomplete/?app_label=quotas&model_name=quota&field_name=tenant&term="
    assert client.get(f"{address}demo").json()["results"]
    assert client.get(f"{address}{search}").json()["results"] == []
