"""Hostile requests to the endpoints of storage. `{volume}`: a dataset; `{open}`: one whose files are open."""

from __future__ import annotations

from typing import Any

from tests.portal.hostile import of

STRANGER = "00000000-0000-4000-8000-000000000001"
KEYS = {"access_key": "AKIA", "secret_key": "s3cret"}
CONNECTION = {"tenant": "demo", "name": "lake", "endpoint": "https://s3.example.org", "bucket": "lake"} | KEYS
FOUND = {"tenant": "demo", "owner": "bob", "name": "old", "kind": "dataset", "persistent_volume": "pv-1"}
VOLUME = {"tenant": "demo", "name": "fresh", "kind": "dataset", "size_mib": 64}
LONG = "a" * 5000

NAMES = of(
    "",
    " ",
    "a" * 300,
    "a\x00b",
    "a\nb",
    "\u202etxt.exe",
    "../../etc/passwd",
    "<script>",
    "a/b",
    None,
    7,
    True,
    [],
    {},
)
NO_BODIES = of([], "x", 7, True, {"surprise": 1})


def create(**changes: Any) -> tuple[str, str, Any]:
    return "POST", "volumes/", VOLUME | changes


def connect(**changes: Any) -> tuple[str, str, Any]:
    return "POST", "connections/", CONNECTION | changes


def adopt(**changes: Any) -> tuple[str, str, Any]:
    return "POST", "volumes/adopt/", FOUND | changes


STORAGE: list[tuple[str, str, Any]] = [
    *(create(name=name) for name in NAMES),
    *(create(size_mib=size) for size in of(0, -1, 1.5, 2**70, "1Gi", None, True, [])),
    *(create(kind=kind) for kind in of("", "tape", None, 7, [])),
    *(create(shared=shared) for shared in of("perhaps", None, 7, True)),
    *(create(cluster=slug) for slug in of("nothing", "ma\x00in", 7, None, [])),
    *(create(**{"from": source}) for source in of(
        7, "x", [], {}, {"volume": None}, {"volume": "x"}, {"volume": STRANGER}, {"snapshot": STRANGER},
        {"snapshot": STRANGER, "volume": STRANGER}, {"disk": STRANGER},
    )),
    *(("PATCH", "volumes/{volume}/", body) for body in of(
        [], "x", {"name": ""}, {"name": None}, {"name": "a\x00"},
        {"size_mib": 1}, {"size_mib": 2**70}, {"size_mib": None},
        {"shared": "perhaps"}, {"main": False}, {"main": True}, {"owner": "bob"}, {"phase": "ready"},
    )),
    ("DELETE", "volumes/{volume}/?now=perhaps", None),
    *(connect(name=name) for name in NAMES),
    *(connect(endpoint=address) for address in of(
        "", "s3", "ftp://s3.example.org", "file:///etc/passwd", "javascript:1", "https://",
        "https://a:b@example.org",
        "https://example.org/a b", "https://example.org/\nx",
        "https://example.org?x=1", "https://example.org#x", LONG, None, 7,
    )),
    *(connect(bucket=name) for name in of("", "a", "..", "a/b", "../x", "a\x00b", "a b", "b" * 300, None, 7, [])),
    *(connect(**{name: key}) for name in KEYS for key in of("", " ", "a b", "a\nb", "a\x00", "가", LONG, None, 7, [])),
    *(connect(tenant=slug) for slug in of("second", "nothing", "", None, 7)),
    connect(owner="bob"),
    *(("POST", "connections/", body) for body in of({}, [], "x", 7)),
    *(("PATCH", "connections/{connection}/", body) for body in of(
        [], "x", {"bucket": ""},
        {"endpoint": "s3"}, {"secret_key": ""}, {"name": None}, {"tenant": "second"}, {"owner": "bob"},
    )),
    *(adopt(name=name) for name in NAMES),
    *(adopt(kind=kind) for kind in of("", "scratch", None, 7, [])),
    *(adopt(owner=name) for name in of("", "victor", "carol", "nobody", "bo\x00b", None, 7, [])),
    *(adopt(tenant=slug) for slug in of("nothing", "", None, 7)),
    *(adopt(cluster=slug) for slug in of("nothing", "ma\x00in", 7, None)),
    *(adopt(persistent_volume=name) for name in of(
        "", "A", "../pv", "pv-1/status", "a\x00b", "a b", "-", LONG, None, 7, [],
    )),
    *(adopt(persistent_volume="", claim=name) for name in of("../x", "a/b", "a\x00", LONG, None, 7)),
    adopt(claim="data"), adopt(inspected=True),
    *(("POST", "volumes/adopt/", body) for body in of({}, [], "x", 7)),
    *(("POST", f"volumes/{{volume}}/{verb}/", body)
      for verb in ("restore", "confirm", "inspect", "files-session") for body in NO_BODIES),
    *(("POST", f"volumes/{{volume}}/{verb}/", {"note": note})
      for verb in ("snapshot", "publish") for note in of(None, 7, [], "a\x00", LONG)),
    *(("POST", f"volumes/{{volume}}/{verb}/", body) for verb in ("snapshot", "publish") for body in NO_BODIES),
    *(("POST", "volumes/{volume}/clone/", {"name": name}) for name in NAMES),
    *(("POST", "volumes/{volume}/clone/", body) for body in (*NO_BODIES, {}, {"name": "copy", "tenant": "second"})),
    *(("POST", "volumes/{volume}/transfer/", {"username": name}) for name in of(
        "", "nobody", "victor", "carol", "bo\x00b", LONG, None, 7, [], {},
    )),
    *(("POST", "volumes/{volume}/transfer/", body) for body in (
        *NO_BODIES, {}, {"username": "bob", "tenant": "second"},
    )),
    ("DELETE", f"volumes/{{volume}}/snapshots/{STRANGER}/", None),
    ("DELETE", "volumes/{volume}/snapshots/x/", None),
    *(("GET", f"volumes/{{open}}/files/?{query}", None) for query in (
        "path=%00", f"path={LONG}", f"after={LONG}",
    )),
    *(("POST", "volumes/{open}/files/", body) for body in (
        *NO_BODIES, {}, {"path": ""}, {"path": None}, {"path": 7}, {"path": []}, {"path": LONG}, {"path": "a\x00b"},
    )),
    *((method, f"volumes/{{open}}/files/content/?{query}", None) for method in ("GET", "PUT", "PATCH", "DELETE")
      for query in ("", "path=", "path=%00", f"path={LONG}")),
    *(("PUT", f"volumes/{{open}}/files/content/?path=a&upload={word}", None) for word in ("../x", "a%00", "a" * 65)),
    *(("PATCH", "volumes/{open}/files/content/?path=a", body) for body in (
        *NO_BODIES, {}, {"to": ""}, {"to": None}, {"to": 7}, {"to": LONG}, {"to": "a\x00b"},
    )),
    ("DELETE", "volumes/{open}/files/content/?path=a&recursive=perhaps", None),
    *(("GET", f"volumes/?{query}", None) for query in (
        "limit=0", "cursor=%00", "search=%00", "kind=tape", "phase=flying",
    )),
    *(("GET", f"connections/?{query}", None) for query in ("limit=0", "cursor=%00", "search=%00")),
]  # fmt: skip
