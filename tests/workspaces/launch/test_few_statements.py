"""Statements of a launch: few, and none more by accident. Each costs the web process, the worker and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from quotas import admission
from quotas.models import Quota
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.workspace_rows import make_workspace
from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Event, Phase, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

pytestmark = pytest.mark.django_db(transaction=True)
BODY = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1"}


def statements(captured: CaptureQueriesContext) -> list[str]:
    return [query["sql"].split("\n")[0] for query in captured.captured_queries]


def ask_for(cast: Cast, name: str) -> Workspace:
    size = SizeAsked(flavor="a100-1")
    return launch(cast.alice, LaunchSpec(tenant="demo", name=name, image="jupyter", size=size))


@pytest.mark.parametrize(("headers", "most"), [({}, 27), ({"Idempotency-Key": "key-1"}, 39)])
def test_a_launch_takes_few_statements(cast: Cast, headers: dict[str, Any], most: int) -> None:
    alice = script(cast.alice)
    ask(alice, "POST", "workspaces/", BODY | {"name": "first"})  # notes the token's use, and queues a pass
    with CaptureQueriesContext(connection) as captured:
        answer = ask(alice, "POST", "workspaces/", BODY | {"name": "exp-1"}, **headers)
    assert answer.status_code == 201, answer.content
    assert len(captured) <= most, statements(captured)


def test_the_answer_to_a_launch_is_what_a_look_at_it_would_say(cast: Cast) -> None:
    alice = script(cast.alice)
    said = ask(alice, "POST", "workspaces/", BODY | {"name": "exp-1", "env": {"A": "1"}}).json()
    assert said == ask(alice, "GET", f"workspaces/{said['id']}/").json()
    assert (said["phase"], said["queue"]["position"], said["last_event"]) == ("waiting", 1, 1)


def test_a_change_and_its_events_take_five_statements_with_the_commit(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    with CaptureQueriesContext(connection) as captured, changing(workspace.pk) as row:
        row.node = "gpu-2"
        add_event(row, "stopping")
        add_event(row, "stopped")
    begin, *made, commit = statements(captured)
    assert [sql.split(" ")[0] for sql in made] == ["SELECT", "UPDATE", "INSERT", "SELECT"]
    assert (begin, commit) == ("BEGIN", "COMMIT")
    numbers = Event.objects.filter(workspace=workspace).order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, row.last_event + 1))


def test_nothing_is_written_where_nothing_changed(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice)
    with CaptureQueriesContext(connection) as captured, changing(workspace.pk) as row:
        row.troubles = dict(row.troubles)
    assert len(captured) == 3, statements(captured)


def test_a_pass_takes_few_statements_and_few_more_for_each_claim(cast: Cast) -> None:
    Quota.objects.update(nominal_gpus=8)
    taken = []
    for count in (1, 4):
        for number in range(count):
            ask_for(cast, f"exp-{count}-{number}")
        with CaptureQueriesContext(connection) as captured:
            assert admission.admit(cast.pool.pk) == count
        taken.append(statements(captured))
    assert Workspace.objects.filter(phase=Phase.STARTING).count() == 5
    assert len(taken[0]) <= 33, taken[0]
    assert len(taken[1]) - len(taken[0]) <= 3 * 12, taken[1]
