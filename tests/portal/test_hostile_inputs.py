"""A hundred hostile inputs: each is refused with a code, a sentence and what to do, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from accounts.credentials import tokens
from accounts.credentials.secrets import encrypt
from accounts.models import Scope
from accounts.service_accounts import changing as service_accounts
from storage import connections
from storage.models import FilesPhase, FilesSession
from tests.cast import make_cast
from tests.portal.hostile import GOOD, everything, job, of, raw
from tests.portal.hostile.configuration import CONFIGURATION
from tests.portal.hostile.people import PEOPLE
from tests.portal.hostile.storage import CONNECTION, STORAGE, adopt, connect, create
from tests.shared.datasets import dataset
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SIZED = {"tenant": "demo", "name": "exp-1", "image": "jupyter", "pool": "a100", "gpus": 1}
RSA_1024 = (
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7yn3bRHQ5FHMQ3ZfxE4Rf6e0m2KcHbQ1Q0o5mmnEhqs0gcxUVnRMmjBGrZ8zb1dZ0n2Kf"
    "Y7jvbB5mUu5mBqGm3jvJcYx5k3lqR3eDLyPRRZ0MNP4wZg0mYpPgv1HkG6oYvGm4m8mWkz6yJ8Q4u5m7q0p0aE0yq3tXz1vJ1r5b5Q== x"
)


def launch(**changes: Any) -> tuple[str, str, Any]:
    return "POST", "workspaces/", GOOD | changes


def sized(**changes: Any) -> tuple[str, str, Any]:
    return "POST", "workspaces/", SIZED | changes


def key(public_key: Any, name: Any = "laptop") -> tuple[str, str, Any]:
    return "POST", "ssh-keys/", {"name": name, "public_key": public_key}


def token(**changes: Any) -> tuple[str, str, Any]:
    return "POST", "tokens/", {"name": "new", "scopes": ["read"]} | changes


NAMES = [
    "", " ", "\t\n", "a" * 300, "a\x00b", "a\nb", "\u202etxt.exe", "\ud83d", "-", "../../etc/passwd", "<script>",
    "'; DROP TABLE workspaces; --", "a/b", "a b\x7f", "\x1b[31mred", None, 7, True, [], {}, ["exp"], {"a": "b"},
]  # fmt: skip
ENVIRONMENTS: list[Any] = [
    {"": "x"}, {"1A": "x"}, {"A B": "x"}, {"A=B": "x"}, {"A": "x\x00y"}, {"A": None}, {"A": 1}, {"A": ["x"]},
    {"A": {"b": "c"}}, ["A=1"], "A=1", 7, {"A\n": "x"}, {"가": "x"}, {"A" * 600: "x"}, {"A": "x" * 300_000},
    {f"A{n}": "x" for n in range(5000)}, {"LD_PRELOAD\x00": "x"},
]  # fmt: skip
SIZES: list[dict[str, Any]] = [
    {"gpus": -1}, {"gpus": 0.3}, {"gpus": 1e308}, {"gpus": "one"}, {"gpus": None}, {"gpus": 10**30}, {"gpus": []},
    {"gpus": True}, {"cpu": 0}, {"cpu": -4}, {"cpu": 1e9}, {"cpu": "4m"}, {"cpu": 0.0000001}, {"memory_mib": 0},
    {"memory_mib": -1}, {"memory_mib": 2**63}, {"memory_mib": 1.5}, {"memory_mib": "16Gi"}, {"disk_mib": -1},
    {"disk_mib": 2**70}, {"disk_mib": "big"}, {"gpu_memory_mib": -5}, {"gpu_memory_mib": 10**18},
    {"priority": 10**12}, {"priority": "high"},
]  # fmt: skip
REPOSITORIES: list[Any] = [
    "file:///etc", "/etc/passwd", "ext::sh -c id", "--upload-pack=id", "ssh://-oProxyCommand=id/x", "javascript:1",
    "https://", "http://x\n.example/a", "https://example.org/a b", 7, ["x"], "https://example.org/" + "a" * 3000,
]  # fmt: skip
ROUTE = {"tenant": "demo", "name": "hook", "way": "webhook", "address": "https://hook.example.org/x"}
ROUTES: list[dict[str, Any]] = [
    {"way": "admins"}, {"way": "heartbeat"}, {"way": "pigeon"}, {"tenant": None}, {"tenant": "second"},
    {"tenant": "\x00"}, {"address": "file:///etc/passwd"}, {"address": "gopher://x/"}, {"address": "https://"},
    {"address": "https://user:pass@x.test/"}, {"address": "http://[bad/"}, {"address": "https://x.test/\r\nX: y"},
    {"address": "https://x.test:99999/"}, {"address": 7}, {"secret": "whsec_!"}, {"secret": "a b"}, {"pool": "nowhere"},
    {"cluster": "\x00"}, {"escalates_after_minutes": 0}, {"escalates_after_minutes": 10**9}, {"surprise": 1},
    {"may_reach_inside": True}, {"way": "mail", "address": "nobody@example.org"}, {"way": "mail", "address": "x"},
]  # fmt: skip
ANNOUNCEMENTS: list[dict[str, Any]] = [
    {"text": ""}, {"text": "a\nb"}, {"text": "x" * 501}, {"level": "loud"}, {"shown_from": "soon"}, {"surprise": 1},
    {"shown_until": "2001-01-01T00:00:00Z"}, {"no_launches_from": "2001-01-01T00:00:00Z"},
]  # fmt: skip
OF_ADMINS = (
    "volumes/adopt/", "announcements/", "configuration/", "clusters/", "pools/", "flavors/", "images/", "quotas/",
    "limits/", "budgets/", "budget-hours/", "tenants/nothing/", "tenants/demo/?", "people/", "drift/", "admin-actions/",
    "agent-tokens/", "unexplained-messages/",
)  # fmt: skip
STRANGER = "00000000-0000-4000-8000-000000000001"
EXPOSITIONS: list[Any] = [
    7, [], "9090", {}, {"port": 0}, {"port": 80}, {"port": 8888}, {"port": 2222}, {"port": 65536}, {"port": "x"},
    {"port": 9090, "path": ""}, {"port": 9090, "path": "metrics"}, {"port": 9090, "path": "/a b"},
    {"port": 9090, "path": "/a\n"}, {"port": 9090, "path": "/\x00"}, {"port": 9090, "path": "/" * 300},
    {"port": 9090, "path": None}, {"port": 9090, "host": "x"},
]  # fmt: skip
APP = {"name": "a", "port": 6006}
APPS: list[Any] = [
    7, "x", [], {}, {"name": "a"}, {"port": 6006}, APP | {"port": 0}, APP | {"port": 80}, APP | {"port": 8888},
    APP | {"port": 2222}, APP | {"port": 65536}, APP | {"port": 2**70}, APP | {"port": "x"}, APP | {"port": True},
    APP | {"name": ""}, APP | {"name": "a" * 41}, APP | {"name": "a\x00"}, APP | {"name": "\u202ea"},
    APP | {"name": 7}, APP | {"shared_with": "everybody"}, APP | {"shared_with": None}, APP | {"host": "x"},
]  # fmt: skip
AFTER: list[Any] = [
    7, "x", {}, [7], ["x"], [{}], [{"job": None}], [{"job": "x"}], [{"job": STRANGER}],
    [{"job": STRANGER, "on": "sunday"}], [{"job": STRANGER, "on": None}], [{"job": STRANGER, "surprise": 1}],
    [{"job": STRANGER}] * 2, [{"job": STRANGER}] * 30,
]  # fmt: skip
DISTRIBUTED: list[Any] = [
    [], 2, "ranks", {"nodes": 1}, {"framework": "mpi"}, {"framework": None}, {"framework": "ranks", "nodes": 0},
    {"framework": "ranks", "nodes": 10**9}, {"framework": "ranks", "nodes": 1.5}, {"framework": "ranks", "nodes": []},
    {"framework": "ranks", "processes_per_node": -1}, {"framework": "ranks", "processes_per_node": 2**70},
    {"framework": "torchrun", "master": "10.0.0.1"},
]  # fmt: skip
OWN_IMAGES: list[Any] = ["", "docker.io/a", "http://a.example/b", "a\x00b", "-", "a" * 5000, None, 7, {}, []]
# The last one lacks nothing but a good name.
TEMPLATES: list[Any] = [
    7, [], "x", None, {}, {"image": "jupyter"}, {"image": None, "flavor": "a100-1"},
    *({"image": "jupyter", "flavor": "a100-1", **more} for more in of(
        {"secret_env": {"A": "b"}}, {"tenant": "second"}, {"name": "x"}, {"priority": 9}, {"env": {"PATH": "/"}},
        {"secret_names": "A"}, {"secret_names": ["HOME"]}, {"secret_names": ["a b"]}, {"secret_names": ["A"] * 51},
        {"secret_names": ["A\x00"]}, {"volumes": [STRANGER]}, {"repository": "file:///etc"}, {"disk_mib": 1},
        {"connections": []},
    )),
    {"image": "jupyter", "flavor": "a100-1"},
]  # fmt: skip
KEYS: list[Any] = [
    "", "ssh-rsa", "ssh-rsa AAAA", "ssh-ed25519 !!!!", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA", RSA_1024,
    "ssh-dss AAAAB3NzaC1kc3MAAACBAP", 'command="id" ssh-ed25519 AAAA', "ssh-ed25519 AAAA\nssh-ed25519 BBBB",
    None, 7, [], "x" * 100_000, "ssh-ed25519\x00AAAA",
]  # fmt: skip
SHARES: list[Any] = [
    *({"username": name, "role": "work"} for name in of("", "nobody", "b\x00b", "a" * 9000, None, 7, [])),
    *({"username": "bob", "role": role} for role in of("", "own", "look ", None, 7, {})),
    {"username": "bob", "role": "look", "given_by": "admin"}, {},
]  # fmt: skip
SCHEDULE: dict[str, Any] = {"start": "09:00", "stop": "18:00", "days": [1], "time_zone": "Europe/Berlin"}
SCHEDULES: list[dict[str, Any]] = [
    *({"start": text} for text in of("", "9", "25:00", "09:00:00", "09:00+02", None, 9, [], "09:00\x00")),
    *({"days": days} for days in of([], [0], [8], ["x"], [1] * 8, [True], None, 7, "12345", [None])),
    *({"time_zone": zone} for zone in of("", "../../etc/passwd", "Etc/GMT-1", "localtime", "x" * 9000, None, 7)),
    {"is_on": "perhaps"}, {"stop": "09:10"}, {"until": "2027"},
]  # fmt: skip
CLASS = {"tenant": "demo", "name": "fine", "launch": TEMPLATES[-1], "people": ["nobody"]}
CLASSES: list[dict[str, Any]] = [
    *({"people": people} for people in of(
        None, 7, "bob", {}, [], [None], [[]], ["a\x00b"], ["x" * 151], ["b"] * 201,
    )),
    *({"name": name} for name in NAMES[:12]),
    *({"launch": launch} for launch in of(None, [], "x", {}, TEMPLATES[-1] | {"secret_env": {"A": "b"}})),
    *({"template": text} for text in of("none", STRANGER, "", "a\x00", 7, [], {})),
    *({"booking": text} for text in of("x", STRANGER, 7, [], {})),
    *({"when": when} for when in of("later", "", None, 7)),
    *({"volumes": wish} for wish in of(None, {}, [7], [{"volume": STRANGER, "path": "/etc"}], "x")),
    {"tenant": "second"}, {"by": "alice"},
]  # fmt: skip
HOSTILE: list[tuple[str, str, Any]] = [
    *(launch(name=name) for name in NAMES),
    *(launch(env=env) for env in ENVIRONMENTS),
    *(launch(secret_env=env) for env in ENVIRONMENTS[:8]),
    *(sized(**sizes) for sizes in SIZES),
    *(launch(repository=address) for address in REPOSITORIES),
    *(launch(metrics=at) for at in EXPOSITIONS),
    *(job(metrics=at) for at in EXPOSITIONS),
    *(("PATCH", "workspaces/{id}/", {"metrics": at}) for at in EXPOSITIONS),
    *(launch(apps=[app]) for app in APPS),
    *(launch(apps=apps) for apps in of(7, "x", {}, [APP, APP], [APP | {"port": 3000 + n} for n in range(9)])),
    *(("POST", "workspaces/{id}/apps/", app) for app in APPS),
    ("PATCH", "workspaces/{id}/apps/6006/", {"shared_with": "tenant"}),
    ("DELETE", "workspaces/{id}/apps/99999999999999999999/", None),
    *(("POST", "workspaces/{id}/shares/", body) for body in SHARES),
    *(("PUT", "workspaces/{id}/schedule/", SCHEDULE | change) for change in SCHEDULES),
    ("DELETE", "workspaces/{id}/shares/" + "0" * 36 + "/", None),
    *(job(after=after) for after in AFTER),
    *(job(writes=writes) for writes in of(
        7, [], "x", {}, {"volume": None}, {"volume": "x"}, {"volume": STRANGER}, {"volume": STRANGER, "path": "/x"},
    )),
    *(key(text) for text in KEYS),
    *(launch(image=image) for image in of("", "nothing", "../jupyter", "a" * 5000, None, 7, {}, "jup\x00yter")),
    *(launch(image_reference=text) for text in OWN_IMAGES),
    *(("PATCH", "workspaces/{id}/", {"image_reference": text}) for text in OWN_IMAGES),
    *(launch(flavor=flavor) for flavor in of("nothing", "", None, 7, [], "a100-1\x00")),
    *(launch(tenant=tenant) for tenant in of("nothing", "second", "", None, 7, {}, "de\x00mo", "DEMO/../second")),
    launch(surprise=1), launch(owner="alice"), launch(phase="ready"), launch(id="1"), launch(pool="a100"),
    *(("POST", "workspaces/", body) for body in of({}, [], [GOOD], "text", 7, None, True)),
    *(token(**change) for change in of(
        {"scopes": []}, {"scopes": ["root"]}, {"scopes": "read"}, {"scopes": None}, {"scopes": ["admin"]},
        {"name": ""}, {"name": "a" * 500}, {"days": -1}, {"days": 0}, {"days": 10**9}, {"days": "soon"},
        {"tenant": "second"}, {"tenant": 7}, {"secret": "brt_mine"},
    )),
    *(("POST", "device/code/", {"name": "laptop"} | change) for change in of(
        {"name": ""}, {"name": "a\nb"}, {"name": "a" * 81}, {"name": None}, {"scopes": ["root"]}, {"scopes": "read"},
        {"user": "alice"},
    )),
    *(("POST", "device/token/", body) for body in of(
        {}, {"device_code": None}, {"device_code": "\x00"}, {"device_code": "a" * 1000}, {"user_code": "BCDF-GHJK"},
    )),
    *(("PATCH", "workspaces/{id}/", {"name": name}) for name in NAMES[:12]),
    *(("PATCH", "workspaces/{id}/", body) for body in of({"owner": "bob"}, {"phase": "stopped"}, [], "x", 7)),
    *(("PATCH", "workspaces/{id}/", sizes) for sizes in SIZES[::3]),
    *(("PATCH", "workspaces/{id}/", {"env": env}) for env in ENVIRONMENTS[:6:2]),
    *(("PATCH", "workspaces/{id}/", {"secret_env": env}) for env in ENVIRONMENTS[8:12]),
    *(("PATCH", "workspaces/{id}/", {"repository": address}) for address in REPOSITORIES[:4]),
    *(("PATCH", "workspaces/{id}/", {"image": image}) for image in of("", "nothing", None, "jup\x00yter")),
    *(("PATCH", "workspaces/{id}/", change) for change in of(
        {"flavor": None}, {"flavor": "nothing"}, {"pool": "a100", "flavor": "a100-1"}, {"gpu": {}, "pool": "a100"},
        {"gpu": 7}, {"gpus": 1e308}, {"disk_mib": 1}, {"notify": "yes, please"}, {"notify": None},
        {"max_runtime_minutes": 0}, {"max_runtime_minutes": 10**9}, {"max_runtime_minutes": "an hour"},
        {"max_runtime_minutes": 1.5}, {"name": "fine", "max_runtime_minutes": True}, {"stops_at": "2099-01-01"},
    )),
    *(launch(max_runtime_minutes=minutes) for minutes in of(-1, 0, 1.5, 10**30, "1h", [], {}, True)),
    *(("POST", "workspaces/{id}/extend/", {"minutes": minutes}) for minutes in of(
        0, -5, 1.5, 10**9, 2**70, None, "soon", True, [], {"hours": 1},
    )),
    *(("POST", "workspaces/{id}/extend/", body) for body in of([], "x", 7, {"hours": 1})),
    *(("POST", "workspaces/{id}/clone/", {"name": name}) for name in NAMES[::3]),
    *(("POST", "workspaces/{id}/clone/", body) for body in of([], "x", 7, {"tenant": "second"}, {"env": {}})),
    ("POST", "workspaces/{id}/keep-alive/", {"for": "ever"}),
    *(launch(idle_minutes=minutes) for minutes in of(-1, 0, 1.5, 10**30, "1h", [], {}, True)),
    *(("GET", f"idle/report/?{query}", None) for query in (
        "days=0", "days=31", "days=-1", "days=%00", "days=1e9", "minutes=0", "minutes=x", "minutes=99999999999",
    )),
    *(job(distributed=one) for one in DISTRIBUTED),
    *(job(checkpoints=one) for one in of("home", [], {}, {"volume": None}, {"volume": "x"}, {"volume": STRANGER})),
    *(("GET", f"workspaces/{{id}}/metrics/?window={window}", None) for window in ("0h", "1e9m", "-1h", "%00")),
    *(("GET", f"workspaces/?{query}", None) for query in (
        "limit=0", "limit=-1", "limit=many", "limit=10000000000000000000000", "cursor=zzz", "cursor=%00",
        "phase=flying", "desired=flying", "search=%00", "name=%00",
    )),
    *(("GET", f"post-mortems/?{query}", None) for query in (
        "limit=0", "cursor=zzz", "workspace=x", "job=%00", "happened=flying", "node=%00", "search=%00",
    )),
    *(("POST", "post-mortems/{id}/notes/", {"text": text}) for text in of(
        "", " \n", "a\x00b", "\ud83d", "x" * 4001, None, 7, True, [], {},
    )),
    *(("POST", "post-mortems/{id}/notes/", body) for body in of({}, [], "x", 7, {"text": "fine", "author": "bob"})),
    *(("POST", "templates/", {"tenant": "demo", "name": "fine", "launch": one}) for one in TEMPLATES[:-1]),
    *(("POST", "templates/", {"tenant": "demo", "name": name, "launch": TEMPLATES[-1]}) for name in NAMES[:12]),
    *(("POST", "class-launches/", CLASS | change) for change in CLASSES),
    *(("POST", f"class-launches/{STRANGER}/extend/", {"minutes": minutes}) for minutes in of(0, 2**70, "soon", [])),
    *(("POST", f"class-launches/{STRANGER}/collect/", one) for one in of({}, [], {"folder": 7}, {"folder": "\0"})),
    ("GET", "class-launches/?booking=x", None),
    ("GET", "class-launches/?name=%00", None),
    ("GET", "audit/?since=0001-01-01T00:00:00%2B05:00", None),
    ("GET", "audit/?since=yesterday", None),
    ("GET", "alerts/?state=broken", None),
    ("GET", "alerts/?severity=9", None),
    ("GET", "alerts/?cluster=%00", None),
    ("GET", "alerts/?cursor=x", None),
    ("POST", f"alerts/{STRANGER}/silence/", {"minutes": 5}),
    *(("POST", "alert-routes/", ROUTE | body) for body in ROUTES),
    ("GET", "workspaces/{id}/events/?after=-1", None),
    ("GET", "workspaces/{id}/events/?after=x", None),
    ("GET", "workspaces/not-a-uuid/", None),
    ("GET", "workspaces/%00/", None),
    ("DELETE", "workspaces/{id}/?delete_disk=perhaps", None),
    *(("POST", "estimate/", SIZED | sizes) for sizes in SIZES[:8]),
    *(("PATCH", "tenants/demo/members/bob/", {"role": role}) for role in ("king", "", None, 7, ["owner"])),
    *(("POST", "announcements/", {"text": "New GPUs"} | change) for change in ANNOUNCEMENTS),
    *(("POST", "tenants/demo/members/", {"username": name}) for name in of("", None, "no\x00body", "nobody", 7, [])),
    *STORAGE,
    *PEOPLE,
    *CONFIGURATION,
]  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """Things of alice's by their name in an address, a script of hers, and one of an admin, who adopts storage."""

    there: dict[str, str]
    secret: str
    admins: str

    def ask(self, method: str, path: str, body: bytes, kind: str = "application/json") -> Any:
        secret = self.admins if path.startswith(OF_ADMINS) else self.secret
        client = Client(headers={"Authorization": f"Bearer {secret}"})
        return client.generic(method, f"/api/v1/{path.format(**self.there)}", body, kind)


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Scene]:
    with shared_rows(django_db_blocker):
        cast = make_cast()
        scopes = [Scope.READ, Scope.WORKSPACES, Scope.JOBS, Scope.VOLUMES]
        _token, secret = tokens.issue(cast.alice.user, "test", scopes, None, 1)
        workspace = make_workspace(cast, cast.alice)
        make_post_mortem(workspace, id=workspace.pk)
        _token, admins = tokens.issue(cast.admin.user, "test", [Scope.READ, Scope.ADMIN], None, 1)
        volume, opened = dataset(cast, "data"), dataset(cast, "open")
        session = {
            "by": cast.alice.user,
            "writes": True,
            "phase": FilesPhase.READY,
            "token": encrypt("token"),
        }
        FilesSession.objects.create(volume=opened, host="127.0.0.1:9", **session)
        there = {
            "id": workspace,
            "volume": volume,
            "open": opened,
            "service-account": service_accounts.create(cast.alice, tenant="demo", name="ours", role="member"),
            "connection": connections.create(cast.alice, "demo", CONNECTION | {"name": "mine"}),
        }
        yield Scene({name: str(row.pk) for name, row in there.items()}, secret, admins)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_each_is_refused_in_words(scene: Scene, number: int) -> None:
    method, path, body = HOSTILE[number]
    before = everything()
    answer = scene.ask(method, path, raw(body))
    assert 400 <= answer.status_code < 500, (HOSTILE[number], answer.content[:500])
    error = answer.json()["error"]
    assert error["code"]
    assert error["message"]
    assert error["hint"]
    assert everything() == before


def test_a_body_that_is_no_json_too_deep_or_too_large_is_refused(scene: Scene) -> None:
    for text in (
        b"{",
        b"\xff\xfe",
        b"NaN",
        b'{"name": NaN}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"x" * 3_000_000,
    ):
        answer = scene.ask("POST", "workspaces/", text)
        assert 400 <= answer.status_code < 500, text[:20]
        assert answer.json()["error"]["hint"]


def test_another_content_type_is_refused(scene: Scene) -> None:
    for kind in ("text/xml", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "x"):
        answer = scene.ask("POST", "workspaces/", b"name=exp-1", kind)
        assert answer.status_code in (400, 415)
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize("request_", [create(), connect(), adopt()])
def test_what_hostile_ones_of_storage_differ_from_is_taken(
    scene: Scene, request_: tuple[str, str, Any]
) -> None:
    method, path, body = request_
    assert scene.ask(method, path, raw(body)).status_code == 201
