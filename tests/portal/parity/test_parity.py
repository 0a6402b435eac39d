"""Everything that a form of a page changes has a request of the API, and the table about it is complete."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory
from typer.main import get_command

from accounts.access import Actor
from accounts.models import User
from berth.cli.main import app
from portal.admin.api import actions
from tests.portal.addresses import ALL
from tests.portal.isolation import NOWHERE
from tests.portal.parity import table
from tests.portal.parity.book import all_examples
from tests.shared.clients import browser

OF_DJANGO = ("_changelist", "_add", "_change", "_history", "_delete", "_autocomplete", "_password_change")
COMMANDS = Path(__file__).parents[1] / "client" / "test_commands.py"
API = {address.name.removeprefix("api/v1/"): address.methods for address in ALL if "api/v1/" in address.name}


@pytest.mark.django_db
def test_every_page_that_takes_a_form_is_in_the_table() -> None:
    pages = {one.name: one for one in ALL if not one.name.startswith(("api/v1/", "admin/", "readyz"))}
    assert set(table.PAGES) <= set(pages)
    client = browser(Actor(User.objects.create_user("admin", is_staff=True)))
    paths = [pages[name].path(NOWHERE) for name in sorted(set(pages) - set(table.PAGES))]
    assert [path for path in paths if client.post(path).status_code != 405] == []


def test_every_change_in_the_admin_is_in_the_table() -> None:
    request = RequestFactory().get("/")
    request.user = User(is_staff=True)
    found = {f"{kind} {name}" for kind, name in actions()}
    for model, page in admin.site._registry.items():
        kind = model._meta.label_lower
        verbs = [
            verb for verb in ("add", "change", "delete") if getattr(page, f"has_{verb}_permission")(request)
        ]
        plain = [action for action in page.actions or () if isinstance(action, str)]
        own = [url.name for url in page.get_urls() if url.name and not url.name.endswith(OF_DJANGO)]
        found |= {f"{kind} {name}" for name in (*verbs, *plain, *own)}
    assert set(table.ADMIN) | set(table.PREVIEWED) == found
    assert set(table.PREVIEWED) <= {f"{kind} {name}" for kind, name in actions()}


def test_every_request_of_the_table_is_one_of_the_api() -> None:
    for name, row in (table.PAGES | table.ADMIN).items():
        assert bool(row.requests) != bool(row.why), name
        for request in row.requests:
            method, _space, path = request.partition(" ")
            assert method in API.get(path, ()), (name, request)


def test_every_command_of_the_table_is_one_of_berth() -> None:
    for names in table.commands():
        group: Any = get_command(app)
        for name in names.split():
            group = group.commands.get(name)
            assert group is not None, names


def test_every_request_of_every_row_has_one_example() -> None:
    wanted = {(name, one) for name, row in table.by_name().items() for one in row.requests}
    found = Counter((name, one.request) for one in all_examples() for name in one.rows)
    assert wanted - set(found) == set(), "write an example: tests/portal/parity/book.py says how"
    assert set(found) - wanted == set(), "examples of nothing that is in the table"
    assert [pair for pair, count in found.items() if count > 1] == []


def test_every_command_of_the_table_is_run_by_a_test() -> None:
    marks = re.findall(r"(?m)^@runs\((.*)\)$", COMMANDS.read_text())
    assert {*re.findall(r'"(.+?)"', " ".join(marks)), "api"} == table.commands()


def test_the_page_about_it_is_written_from_the_table() -> None:
    assert table.PAGE.read_text() == table.text(), "run .venv/bin/python -m tests.portal.parity.table"
    assert not re.search(r"\| *\|", table.text())
