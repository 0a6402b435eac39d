"""REST for workspaces: shapes, status codes, filters, and answers to malformed requests."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
import yaml
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Scope
from quotas.models import Pool, Quota
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.log_rows import NOON_NS, make_stream, write
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_flavor, make_many, make_workspace
from workloads.logs import text
from workloads.logs.intake import SECOND
from workspaces.api import logs
from workspaces.models import Desired, Phase, Workspace

pytestmark = pytest.mark.django_db

BODY = {"tenant": "demo", "name": "exp-1", "image": "jupyter", "flavor": "a100-1"}


def test_launch_and_read(cast: Cast) -> None:
    bob = script(cast.bob)
    made = ask(bob, "POST", "workspaces/", {**BODY, "env": {"A": "1"}, "secret_env": {"B": "hidden"}})
    assert made.status_code == 201
    assert made.json()["phase"] == "waiting"
    assert "hidden" not in made.content.decode()
    assert "secret_env" not in made.json()
    read = ask(bob, "GET", f"workspaces/{made.json()['id']}/")
    assert (read.status_code, read.json()) == (200, made.json())


def test_launch_by_pool_or_by_what_the_gpu_must_have(cast: Cast) -> None:
    bob = script(cast.bob)
    size = {"pool": "a100", "gpus": 2, "cpu": 1.5, "memory_mib": 2048}
    by_pool = ask(bob, "POST", "workspaces/", {"tenant": "demo", "name": "a", "image": "jupyter", **size})
    assert by_pool.status_code == 201
    assert {name: by_pool.json()[name] for name in size} == size
    wanted = {"gpu": {"min_memory_mib": 40_000, "min_compute_capability": "8.0"}}
    by_gpu = ask(bob, "POST", "workspaces/", {"tenant": "demo", "name": "b", "image": "jupyter", **wanted})
    assert (by_gpu.status_code, by_gpu.json()["pool"]) == (201, "a100")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"colour": "red"}, "colour"),
        ({"name": ""}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"name": None}, "name"),
        ({"gpus": "many"}, "gpus"),
        ({"cpu": 0}, "cpu"),
        ({"memory_mib": 1.5}, "memory_mib"),
        ({"disk_mib": -1}, "disk_mib"),
        ({"env": {"1A": "x"}}, "env"),
        ({"env": {"A": {}}}, "env.A"),
        ({"env": ["A"]}, "env"),
        ({"gpu": {"size": 1}}, "gpu.size"),
    ],
)
def test_what_is_malformed_is_a_400_that_names_the_field(cast: Cast, change: Any, field: str) -> None:
    answer = ask(script(cast.bob), "POST", "workspaces/", BODY | change)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [field])
    assert not Workspace.objects.exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "-"}, "name"),
        ({"image": "none"}, "image"),
        ({"flavor": "none"}, "flavor"),
        ({"pool": "a100"}, "flavor"),
        ({"flavor": "a100-1", "gpus": 2}, "gpus"),
        ({"env": {"HOME": "/"}}, "env"),
        ({"env": {"A": "1"}, "secret_env": {"A": "2"}}, "secret_env"),
        ({"disk_mib": 1}, "disk_mib"),
    ],
)
def test_what_cannot_be_is_a_422_that_names_the_field(cast: Cast, change: Any, field: str) -> None:
    answer = ask(script(cast.bob), "POST", "workspaces/", BODY | change)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, [field])
    assert not Workspace.objects.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '"x"', "{", '{"name": "\\ud800"}', '{"env": {"\\ud800": "x"}}', '{"\\u0000": 1}']
)
def test_any_body_gets_an_answer(cast: Cast, text: str) -> None:
    answer = script(cast.bob).generic("POST", "/api/v1/workspaces/", text, content_type="application/json")
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"code", "message", "hint", "fields"}


def test_a_launch_says_how_long_it_may_be_idle(cast: Cast) -> None:
    bob = script(cast.bob)
    answer = ask(bob, "POST", "workspaces/", {**BODY, "idle_minutes": 30})
    assert (answer.status_code, answer.json()["idle_minutes"]) == (201, 30)
    assert ask(bob, "POST", "workspaces/", {**BODY, "idle_minutes": 0}).status_code == 400


def test_the_same_idempotency_key_launches_once(cast: Cast) -> None:
    bob = script(cast.bob)
    first = ask(bob, "POST", "workspaces/", BODY, **{"Idempotency-Key": "k"})
    again = ask(bob, "POST", "workspaces/", BODY, **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code, first.content) == (201, 201, again.content)
    other = ask(bob, "POST", "workspaces/", {**BODY, "name": "exp-2"}, **{"Idempotency-Key": "k"})
    assert other.status_code == 409
    assert Workspace.objects.count() == 1


def test_actions_answer_202_and_200_when_nothing_changes(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    bob = script(cast.bob)
    stopped = ask(bob, "POST", f"workspaces/{workspace.pk}/stop/")
    assert (stopped.status_code, stopped.json()["desired"]) == (202, "stopped")
    again = ask(bob, "POST", f"workspaces/{workspace.pk}/stop/", {})
    assert (again.status_code, again.json()["last_event"]) == (200, stopped.json()["last_event"])
    assert ask(bob, "POST", f"workspaces/{workspace.pk}/stop/", {"now": True}).status_code == 400
    assert ask(bob, "POST", f"workspaces/{workspace.pk}/start/").status_code == 202
    assert ask(bob, "POST", f"workspaces/{workspace.pk}/start/").status_code == 200


@pytest.mark.parametrize(("query", "deletes"), [("", False), ("?delete_disk=true", True)])
def test_delete_keeps_files_unless_told(cast: Cast, query: str, deletes: bool) -> None:
    workspace = make_workspace(cast, cast.bob)
    answer = ask(script(cast.bob), "DELETE", f"workspaces/{workspace.pk}/{query}")
    workspace.refresh_from_db()
    assert (answer.status_code, answer.json()["phase"]) == (202, "deleting")
    assert (workspace.desired, workspace.delete_disk) == (Desired.DELETED, deletes)
    assert (
        ask(script(cast.bob), "DELETE", f"workspaces/{workspace.pk}/?delete_disk=perhaps").status_code == 400
    )


def test_rename(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    make_workspace(cast, cast.bob, name="taken")
    bob = script(cast.bob)
    path = f"workspaces/{workspace.pk}/"
    assert ask(bob, "PATCH", path, {"name": "better"}).json()["name"] == "better"
    assert ask(bob, "PATCH", path, {"name": "taken"}).status_code == 409
    assert ask(bob, "PATCH", path, {"name": "-"}).status_code == 422
    assert ask(bob, "PATCH", path, {"owner": "alice"}).status_code == 400
    assert ask(bob, "GET", path).json()["name"] == "better"


def test_the_list_filters_searches_and_pages(cast: Cast) -> None:
    for number in range(5):
        make_workspace(cast, cast.bob, name=f"exp-{number}")
    make_workspace(cast, cast.alice, Phase.STOPPED, name="other")
    bob = script(cast.bob)

    def names(query: str) -> set[str]:
        return {row["name"] for row in ask(bob, "GET", f"workspaces/{query}").json()["results"]}

    assert len(names("")) == 6
    assert names("?owner=alice") == names("?phase=stopped") == names("?search=OTH") == {"other"}
    assert names("?tenant=second") == names("?pool=t4") == set()
    assert ask(bob, "GET", "workspaces/?phase=odd").status_code == 400
    seen, url = [], "/api/v1/workspaces/?limit=4"
    while url:
        page = bob.get(url).json()
        seen += [row["name"] for row in page["results"]]
        url = page["next"]
    assert seen == ["other", "exp-4", "exp-3", "exp-2", "exp-1", "exp-0"]


def test_the_list_takes_as_many_queries_for_thirty_as_for_three(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    bob = script(cast.bob)
    make_workspace(cast, cast.bob, Phase.WAITING, name="first")
    make_workspace(cast, cast.bob, name="second")
    ask(bob, "GET", "workspaces/")  # records the token's use
    with CaptureQueriesContext(connection) as of_one:
        ask(bob, "GET", "workspaces/")
    make_many(cast, cast.bob, 30)
    for query in ("", "?phase=ready&phase=waiting", "?search=exp", "?tenant=demo&limit=10"):
        with django_assert_num_queries(len(of_one)):
            assert len(ask(bob, "GET", f"workspaces/{query}").json()["results"]) >= 5


def test_events_after_a_number(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    bob = script(cast.bob)
    events = ask(bob, "GET", f"workspaces/{workspace.pk}/events/").json()["results"]
    assert [event["id"] for event in events] == list(range(1, 11))
    assert [event["step"] for event in events][:3] == ["request", "admission", "disk"]
    later = ask(bob, "GET", f"workspaces/{workspace.pk}/events/?after=7&limit=2").json()
    assert [event["id"] for event in later["results"]] == [8, 9]
    assert [event["id"] for event in bob.get(later["next"]).json()["results"]] == [10]
    assert ask(bob, "GET", f"workspaces/{workspace.pk}/events/?after=x").status_code == 400


def test_a_deleted_ones_story_stays_readable_for_its_owner_and_its_name_is_free(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.DELETED, desired=Desired.DELETED)
    workspace.deleted_at = workspace.created_at
    workspace.save()
    bob = script(cast.bob)
    assert ask(bob, "GET", "workspaces/").json()["results"] == []
    gone = ask(bob, "GET", f"workspaces/{workspace.pk}/")
    assert (gone.status_code, gone.json()["phase"]) == (200, "deleted")
    assert gone.json()["deleted_at"] is not None
    assert ask(bob, "GET", f"workspaces/{workspace.pk}/logs/").status_code == 409
    for other in (cast.alice, cast.victor):
        assert ask(script(other), "GET", f"workspaces/{workspace.pk}/").status_code == 404
    assert ask(bob, "GET", f"workspaces/{workspace.pk}/events/").status_code == 200
    assert ask(script(cast.alice), "GET", f"workspaces/{workspace.pk}/events/").status_code == 404
    assert ask(bob, "POST", "workspaces/", BODY).status_code == 201


def test_images(cast: Cast) -> None:
    (image,) = ask(script(cast.victor), "GET", "images/").json()["results"]
    assert (image["slug"], image["offers"], image["uid"]) == ("jupyter", ["jupyter", "ssh"], 1000)


def test_an_estimate_writes_nothing_and_says_what_would_start(cast: Cast) -> None:
    make_flavor(cast, 4)
    read_only = script(cast.bob, Scope.READ)
    now = ask(read_only, "POST", "estimate/", BODY).json()
    assert (now["admissible"], now["starts_now"], now["alternatives"]) == (True, True, [])
    make_workspace(cast, cast.alice)
    later = ask(read_only, "POST", "estimate/", {**BODY, "flavor": "a100-4", "secret_env": {"A": "x"}}).json()
    assert (later["starts_now"], later["position"]) == (False, 1)
    assert later["reasons"][0]["message"]
    assert BODY in later["alternatives"]
    fewer = {"pool": "a100", "gpus": 2, "cpu": 8, "memory_mib": 32_768}
    assert {name: value for name, value in BODY.items() if name != "flavor"} | fewer in later["alternatives"]
    assert Workspace.objects.count() == 1


def test_an_estimate_for_several_nodes_asks_for_all_of_them_at_once(cast: Cast) -> None:
    make_flavor(cast, 4)
    Quota.objects.update(nominal_gpus=8)
    asked = {**BODY, "flavor": "a100-4", "nodes": 2}
    assert ask(script(cast.bob), "POST", "estimate/", asked).json()["starts_now"]
    make_workspace(cast, cast.alice)
    later = ask(script(cast.bob), "POST", "estimate/", {**asked, "max_runtime_minutes": 60}).json()
    assert (later["starts_now"], later["reasons"][0]["code"]) == (False, "quota_full")
    fewer = {"pool": "a100", "gpus": 2, "cpu": 8, "memory_mib": 32_768, "nodes": 2, "max_runtime_minutes": 60}
    assert {name: value for name, value in BODY.items() if name != "flavor"} | fewer in later["alternatives"]
    never = ask(script(cast.bob), "POST", "estimate/", {**asked, "nodes": 3}).json()
    assert (never["admissible"], never["reasons"][0]["code"]) == (False, "quota_exceeded")


def test_an_estimate_asks_as_often_for_many_sizes_pools_and_waiting_as_for_one(cast: Cast) -> None:
    make_flavor(cast, 4)
    asked = {**BODY, "flavor": "a100-4"}
    read_only = script(cast.bob, Scope.READ)
    make_workspace(cast, cast.alice)
    make_workspace(cast, cast.alice, Phase.WAITING, name="waits")
    ask(read_only, "POST", "estimate/", asked)  # records the token's first use
    with CaptureQueriesContext(connection) as few:
        assert not ask(read_only, "POST", "estimate/", asked).json()["starts_now"]
    for number in range(3):
        make_workspace(cast, cast.alice, Phase.WAITING, name=f"waits-{number}")
        other = Pool.objects.create(slug=f"cpu-{number}", name="CPU", cluster=cast.cluster, resource_name="")
        other.flavors.create(slug=f"small-{number}", name="Small", units=0, cpu_millicores=100, memory_mib=64)
    with CaptureQueriesContext(connection) as many:
        told = ask(read_only, "POST", "estimate/", asked).json()
    assert not told["starts_now"] and "small-0" in [other.get("flavor") for other in told["alternatives"]]
    assert len(many) <= len(few)


async def read(response: Any) -> str:
    return b"".join([part async for part in response.streaming_content]).decode()


def write_log(workspace: Workspace, *texts: str, **fields: Any) -> None:
    write(make_stream(workspace.tenant, workspace.pk, "workspace", **({"attempt": 0} | fields)), texts)


def test_logs_are_sent_as_text(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    write_log(workspace, "one", "two")
    for reader in (cast.bob, cast.alice):
        path = f"workspaces/{workspace.pk}/logs/"
        answer = ask(script(reader, Scope.READ), "GET", path, Accept="text/plain")
        assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
        assert async_to_sync(read)(answer) == "one\ntwo\n"
    last = ask(script(cast.bob), "GET", f"workspaces/{workspace.pk}/logs/?tail=1")
    assert async_to_sync(read)(last) == "two\n"


def test_logs_of_runs_that_are_over_stay(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    first, second = uuid4(), uuid4()
    write_log(workspace, "of the first", run=first)
    write_log(workspace, "of the second", run=second)
    answer = ask(script(cast.bob), "GET", f"workspaces/{workspace.pk}/logs/?run={first}")
    assert async_to_sync(read)(answer) == "of the first\n"
    lines = ask(script(cast.bob), "GET", f"workspaces/{workspace.pk}/logs/?lines=true&run={second}").json()
    assert [(line["run"], line["text"]) for line in lines["results"]] == [(str(second), "of the second")]


@pytest.mark.django_db(transaction=True)
def test_a_log_is_followed_as_it_grows(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(cast, cast.bob)
    stream = make_stream(workspace.tenant, workspace.pk, "workspace")
    write(stream, ["one"])
    monkeypatch.setattr(logs, "LONGEST_FOLLOW_SECONDS", 1.0)
    answer: Any = ask(script(cast.bob), "GET", f"workspaces/{workspace.pk}/logs/?follow=true")

    async def follow() -> list[str]:
        parts = []
        async for part in answer.streaming_content:
            parts.append(part.decode())
            if len(parts) == 1:
                await in_thread(write)(stream, ["two"], at_ns=NOON_NS + SECOND)
        return parts

    assert async_to_sync(follow)() == ["one\n", "two\n"]


def test_a_workspace_without_a_container_says_so(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    answer = ask(script(cast.bob), "GET", f"workspaces/{workspace.pk}/logs/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "no_log_yet")
    assert "Stopped. Your files are kept." in answer.json()["error"]["message"]


def test_a_wrong_container_or_tail_is_told(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    bob = script(cast.bob)
    assert ask(bob, "GET", f"workspaces/{workspace.pk}/logs/?container=init").status_code == 422
    assert ask(bob, "GET", f"workspaces/{workspace.pk}/logs/?tail=99999999").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_a_person_reads_so_many_logs_at_once_and_others_still_read(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    write_log(workspace, "one")
    path = f"workspaces/{workspace.pk}/logs/"
    opened = [ask(script(cast.bob), "GET", path) for _ in range(text.MOST_OF_PERSON)]
    answer = ask(script(cast.bob), "GET", path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_log_readers")
    assert answer["Retry-After"] == str(text.RETRY_SECONDS)
    assert async_to_sync(read)(ask(script(cast.alice), "GET", path)) == "one\n"
    opened[0].close()
    for other in opened[1:]:
        async_to_sync(read)(other)
    assert async_to_sync(read)(ask(script(cast.bob), "GET", path)) == "one\n"
    assert not text._readers


@pytest.mark.django_db(transaction=True)  # a page is read after another, each with a connection of its own
def test_an_answer_ends_at_its_largest_size_and_says_so(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LARGEST_ANSWER_BYTES", 2**20)
    workspace = make_workspace(cast, cast.bob)
    write_log(workspace, *["x" * 2**14] * 100)
    answer = ask(script(cast.bob), "GET", f"workspaces/{workspace.pk}/logs/?download=true")
    told = async_to_sync(read)(answer)
    assert len(told) < 2**20 + 200
    assert "1 MiB" in told.splitlines()[-1]


def test_the_schema_is_clean(cast: Cast, tmp_path: Any) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "openapi.yaml"))
    paths = yaml.safe_load((tmp_path / "openapi.yaml").read_text())["paths"]
    assert "/api/v1/workspaces/{id}/events/" in paths
    for path, operations in paths.items():
        for method, operation in operations.items():
            assert {"400", "401", "403", "429", "503"} <= set(operation["responses"]), (method, path)
        if "post" in operations:
            assert "409" in operations["post"]["responses"], path
            assert "Idempotency-Key" in [p["name"] for p in operations["post"]["parameters"]], path


def test_the_docs_page_lists_every_operation(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.bob.user)
    page = client.get("/api/docs/")
    assert page.status_code == 200
    assert "/api/v1/workspaces/{id}/restart/" in page.content.decode()
