"""A page queries the same data once, whatever its frame, tabs and parts need."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Node
from tests.cast import make_cast
from tests.shared.clients import browser
from tests.shared.furnished_nodes import furnish
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def test_no_page_asks_the_same_twice() -> None:
    cast = make_cast()
    furnish(cast)
    make_workspace(cast, cast.admin, name="of-admin")  # a first visit asks for a sample besides
    workspace, node = Workspace.objects.get(owner=cast.bob.user), Node.objects.get(name="gpu-1")
    of_workspace = f"/workspaces/{workspace.pk}/"
    paths = {
        cast.bob: ("/", of_workspace, f"{of_workspace}metrics/", "/gpus/", "/usage/"),
        cast.admin: ("/", "/gpus/", f"/admin/clusters/node/{node.pk}/change/"),
    }
    for person, asked in paths.items():
        visitor = browser(person)
        for path in asked:
            with CaptureQueriesContext(connection) as queries:
                assert visitor.get(path).status_code == 200
            again = [
                sql
                for sql, times in Counter(query["sql"] for query in queries.captured_queries).items()
                if times > 1 and sql.startswith("SELECT")
            ]
            assert not again, (path, again)
