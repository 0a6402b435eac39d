"""Lists of the API: pages, filters and search; a wrong query gets an answer in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from pytest_django import DjangoDbBlocker

from accounts.credentials import ssh_keys, tokens
from tests.cast import make_cast
from tests.shared.clients import ask, script
from tests.shared.workspace_rows import make_workspace
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
EVERYTHING = ("read", "workspaces", "admin")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKqP3Cr632C2dNhhgKVcon4ldUSAeKiku2yP9O9/bDtY"
# A filter and a search that find the one row, then a filter and a search that find nothing.
LISTS = {
    "ssh-keys/": ("name=laptop", "search=LAP", "name=desk", "search=desk"),
    "tokens/": ("name=nightly", "search=night", "name=other", "search=other"),
    "tenants/": ("slug=second", "search=SECO", "slug=third", "search=third"),
    "tenants/demo/members/": ("role=owner", "search=alic", "", "search=carol"),
    "clusters/": ("slug=main", "search=mai", "slug=far", "search=far"),
    "nodes/": ("name=gpu-1", "search=pu-1", "cluster=far", "search=cpu"),
    "pools/": ("slug=a100", "search=a1", "slug=t4", "search=t4"),
    "flavors/": ("pool=a100", "search=one", "slug=none", "search=none"),
    "quotas/": ("tenant=demo", "search=demo", "pool=t4", "search=t4"),
    "images/": ("slug=jupyter", "search=lab", "name=other", "search=rstudio"),
    "workspaces/": ("image=jupyter&name=exp-1", "search=EXP", "desired=stopped", "search=other"),
}
BAD = [
    {"search": "\x00"}, {"search": "x" * 201}, {"search": "a b c d e f g h i"}, {"search": "a,b,c,d,e,f,g,h,i"},
    {"limit": "0"}, {"limit": "501"}, {"limit": "x"}, {"cursor": "x"}, {"cursor": ""},
    {"cursor": "WyIyMDI2Il0:1aaaaa:bbbb"},
]  # fmt: skip


@pytest.fixture(scope="module")
def admin(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Any]:
    with shared_rows(django_db_blocker):
        cast = make_cast()
        ssh_keys.add(cast.admin, "laptop", KEY)
        tokens.issue(cast.admin.user, "nightly", ["read"])
        make_workspace(cast, cast.bob)
        yield script(cast.admin, *EVERYTHING)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", LISTS)
def test_each_list_is_filtered_and_searched(admin: Any, path: str) -> None:
    for query, count in zip(LISTS[path], (1, 1, 0, 0), strict=True):
        if query:
            page = ask(admin, "GET", f"{path}?{query}").json()
            assert (len(page["results"]), page["next"]) == (count, None), query


@pytest.mark.parametrize("path", [*LISTS, "audit/"])
def test_each_list_refuses_in_words_what_it_cannot_read(admin: Any, path: str) -> None:
    for query in BAD:
        answer = ask(admin, "GET", f"{path}?{urlencode(query)}")
        assert answer.status_code == 400, query
        assert set(answer.json()["error"]["fields"]) <= {*query, "non_field_errors"}


def test_a_cursor_of_one_list_is_none_of_another(admin: Any) -> None:
    following = ask(admin, "GET", "nodes/?limit=1").json()["next"]
    assert len(admin.get(following).json()["results"]) == 1
    cursor = following.partition("cursor=")[2]
    assert ask(admin, "GET", f"tenants/?cursor={cursor}").status_code == 400


def test_the_story_of_a_workspace_is_filtered(admin: Any) -> None:
    path = f"workspaces/{ask(admin, 'GET', 'workspaces/').json()['results'][0]['id']}/events/"
    for query, count in (("step=ready", 1), ("level=error", 0), ("code=admitted&after=1", 1), ("", 10)):
        assert len(ask(admin, "GET", f"{path}?{query}").json()["results"]) == count, query
    for bad in ("level=loud", "run=x", "step=dancing"):
        assert ask(admin, "GET", f"{path}?{bad}").status_code == 400
