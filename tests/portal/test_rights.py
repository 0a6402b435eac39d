"""Tests of the account that each part has in the database: what a part does goes on, and all else is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import CommandError
from django.db import connection, models
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.test import Client
from django.utils import timezone

from accounts import tasks as accounts_tasks
from accounts.credentials import ssh_keys
from accounts.models import AuditEntry, User
from clusters.api import Api
from clusters.doctor import Level
from clusters.signals import tick
from monitoring import tasks as monitoring_tasks
from portal import own_database
from portal.channel_layer import connection_parameters
from portal.environment import session_name
from portal.management import rights
from quotas import admission
from quotas.models import Claim
from tests.cast import KEY, Cast, make_cast
from tests.closed_tables import try_all
from tests.shared.clients import ask, script
from tests.shared.log_rows import make_stream, stored, write
from tests.shared.workspace_rows import make_workspace
from workloads.logs import retention
from workspaces.models import Phase, Workspace
from workspaces.ssh_jump import rights as jump

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        "berth-tests-" not in os.environ.get("DATABASE_URL", ""), reason="a database without these accounts"
    ),
]


@contextmanager
def account_of(part: str) -> Iterator[None]:
    """Act with the account of a part meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET ROLE {rights.account_of('berth', part)}")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET ROLE")


@pytest.fixture
def cast() -> Cast:
    return make_cast()


def test_rights_name_tables_that_are_there() -> None:
    tables = set(connection.introspection.table_names())
    for part, named in rights.RIGHTS.items():
        assert named.keys() - {"*"} <= tables, part
        for table in tables:
            rights.right_of(part, table)


@pytest.mark.parametrize("part", rights.PARTS)
def test_what_was_recorded_of_a_part_is_granted(part: str) -> None:
    """tests/deploy/used_tables.py records it anew; the value names a test that does it."""
    used: dict[str, str] = json.loads((Path(__file__).parent / "used_tables.json").read_text())[part]
    for use, test in used.items():
        verb, table = use.split()
        right = rights.right_of(part, table)
        columns = right.columns and verb in ("UPDATE", "LOCK")
        assert columns or ("UPDATE" if verb == "LOCK" else verb) in right.verbs, (use, test)


@pytest.mark.parametrize("part", rights.PARTS)
def test_who_deletes_a_row_may_do_what_follows(part: str) -> None:
    """Django deletes, or sets to null, what refers to the row; it looks for what protects it."""
    for model in apps.get_models(include_auto_created=True):
        deletes = "DELETE" in rights.right_of(part, model._meta.db_table).verbs
        for relation in model._meta.get_fields(include_hidden=True) if deletes else ():
            if not isinstance(relation, ForeignObjectRel) or relation.many_to_many:
                continue
            child, column = relation.related_model._meta.db_table, relation.field.column
            right = rights.right_of(part, child)
            if relation.on_delete is models.CASCADE:
                assert {"SELECT", "DELETE"} <= set(right.verbs), (model, child)
            elif relation.on_delete is models.SET_NULL:
                assert "UPDATE" in right.verbs or column in right.columns, (model, child)
            elif relation.on_delete is models.PROTECT:
                assert "SELECT" in right.verbs, (model, child)


@pytest.mark.parametrize("part", rights.PARTS)
def test_what_a_part_does_not_need_is_refused(part: str) -> None:
    assert try_all(part) > 20


def test_web_signs_people_in_and_launches_and_stops(cast: Cast) -> None:
    bob = script(cast.bob)
    with account_of("web"):
        browser = Client()
        answer = browser.post("/sign-in/", {"username": "alice", "password": "alice-password"})
        assert answer.status_code == 302 and browser.get("/").status_code == 200
        body = {"tenant": "demo", "name": "exp-1", "image": "jupyter", "flavor": "a100-1"}
        made = ask(bob, "POST", "workspaces/", body)
        assert made.status_code == 201, made.content
        assert ask(bob, "POST", f"workspaces/{made.json()['id']}/stop/").status_code < 300
        assert AuditEntry.objects.filter(action="workspace.launch", actor=cast.bob.user).exists()


def test_web_removes_a_person_whose_entries_stay(cast: Cast) -> None:
    person = User.objects.create_user("newcomer")
    entry = AuditEntry.objects.create(actor=person, actor_name="newcomer", action="person.invite")
    with account_of("web"):
        person.delete()
    entry.refresh_from_db()
    assert (entry.actor_id, entry.actor_name) == (None, "newcomer")


def test_the_worker_admits_and_keeps_the_trail(cast: Cast) -> None:
    waiting = make_workspace(cast, cast.alice, Phase.WAITING)
    with account_of("worker"):
        admission.admit(cast.pool.pk)
        for task in ("raise_alerts", "send_alerts", "fill_post_mortems", "thin", "look_at_site", "pass_time"):
            getattr(monitoring_tasks, task)()
        accounts_tasks.send_mail()
        accounts_tasks.keep_trail()
    assert Claim.objects.get(holder_id=waiting.pk).state == Claim.State.ADMITTED


def test_a_watcher_passes_its_tick(cast: Cast) -> None:
    make_workspace(cast, cast.alice, Phase.READY)
    with account_of("watcher"):
        for receiver, answer in tick.send_robust(sender=None):
            assert not isinstance(answer, Exception), (receiver, answer)


def test_the_jump_finds_whom_to_let_in_and_where(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.alice, Phase.READY)
    Workspace.objects.filter(pk=workspace.pk).update(host="192.0.2.1", ssh_port=2222)
    key = ssh_keys.add(cast.alice, "laptop", KEY)
    with account_of("ssh-jump"):
        person = jump.person_with("alice", key.fingerprint)
        assert person is not None
        target = jump.target_named(person, str(workspace.pk), 22)
        assert target is not None and jump.still(person, [workspace.pk])
        jump.note_opening(person, target, "192.0.2.7")
    assert AuditEntry.objects.filter(action=jump.OPENED, target_id=str(workspace.pk)).exists()


def test_the_collector_stores_lines_and_gives_old_ones_up(cast: Cast) -> None:
    stream = make_stream(cast.demo)
    with account_of("collector"):
        write(stream, ["one", "two"])
        retention.keep(timezone.now())
    assert stored(stream) == ["one", "two"]


def test_doctor_warns_of_parts_that_connect_as_the_owner(cast: Cast, settings: Any) -> None:
    assert list(own_database.findings(cast.cluster, Api.__new__(Api))) == []  # a trial
    settings.TRIAL = False
    for name, level in (("berth worker", Level.WARN), ("manage.py backup", Level.OK), ("psql", Level.OK)):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('application_name', %s, true), pg_stat_clear_snapshot()", [name]
            )
        [found] = own_database.findings(cast.cluster, Api.__new__(Api))
        assert found.level == level, name


@pytest.mark.parametrize(
    ("role", "arguments", "name"),
    [
        ("web", ["/usr/bin/uvicorn", "portal.asgi:application"], "berth web"),
        ("worker", ["manage.py", "worker"], "berth worker"),
        ("ssh-jump", ["./manage.py", "ssh_jump"], "berth ssh-jump"),
        ("worker", ["manage.py", "backup", "-"], "manage.py backup"),
        ("", ["manage.py", "migrate"], "manage.py migrate"),
        ("", ["manage.py"], "manage.py"),
        ("", ["/usr/bin/pytest"], "pytest"),
    ],
)
def test_sessions_of_a_command_in_a_parts_pod_are_not_the_parts(
    role: str, arguments: list[str], name: str
) -> None:
    assert session_name(role, arguments) == name


def test_grants_that_were_changed_are_put_right(cast: Cast) -> None:
    account = rights.account_of("berth", "web")
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT DELETE ON accounts_auditentry TO {account}")
        cursor.execute(f"REVOKE SELECT ON accounts_user FROM {account}")
        assert account in rights.grant()
        cursor.execute(
            "SELECT has_table_privilege(%s, 'accounts_auditentry', 'DELETE'), "
            "has_table_privilege(%s, 'accounts_user', 'SELECT')",
            [account, account],
        )
        assert cursor.fetchone() == (False, True)


def test_nobody_but_the_owner_grants() -> None:
    with account_of("web"), pytest.raises(CommandError, match="Run migrate as their owner, berth"):
        rights.grant()


def test_an_account_that_can_still_make_tables_stops_the_migration() -> None:
    account = rights.account_of("berth", "web")
    superuser = {**connection_parameters(), "user": "postgres"}
    with psycopg.connect(**superuser, autocommit=True) as server:
        server.execute("CREATE ROLE berth_tests_makers")
        try:
            server.execute("GRANT CREATE ON SCHEMA public TO berth_tests_makers")
            server.execute(f"GRANT berth_tests_makers TO {account}")
            with pytest.raises(CommandError, match=f"^{account} can create tables"):
                rights.grant()
        finally:
            server.execute("DROP OWNED BY berth_tests_makers")
            server.execute("DROP ROLE berth_tests_makers")
