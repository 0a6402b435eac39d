"""Hostile bodies about people, service accounts, notices and actions of admins."""

from __future__ import annotations

from typing import Any

from tests.portal.hostile import of

NAMES = of("", "a b", "a\x00", "x" * 151, "\u202ebob", None, [])
PEOPLE: list[tuple[str, str, Any]] = [
    *(("POST", "people/", {"username": name}) for name in NAMES),
    *(("POST", "people/", {"username": "fine"} | change) for change in of(
        {"email": "x"}, {"first_name": "a\x00"}, {"last_name": "a\nb"}, {"sign_in": "magic"}, {"is_admin": True},
        {"username": "bob"},
    )),
    *(("PATCH", "people/bob/", change) for change in of(
        {"is_active": "perhaps"}, {"is_admin": None}, {"email": "x"}, {"username": "rob"}, {"last_name": "\u202eb"}, [],
    )),
    *(("PATCH", "me/", change) for change in of(
        {"language": "xx"}, {"time_zone": "a\x00"}, {"time_zone": "Etc/GMT-1"}, {"theme": 7}, {"is_staff": True}, [],
    )),
    *(("PATCH", "notices/preferences/", {"results": lines}) for lines in of(
        None, {}, [7], [{"kind": "ready"}], [{"kind": "x", "in_berth": True, "by_mail": True}],
        [{"kind": "ready", "in_berth": "perhaps", "by_mail": True}],
    )),
    *(("GET", f"notices/?{query}", None) for query in ("kind=x", "cursor=%00")),
    *(("GET", f"people/?{query}", None) for query in ("search=%00", "tenant=%00")),
    *(("GET", f"drift/?{query}", None) for query in ("state=x", "cluster=%00")),
    *(("POST", "admin-actions/accounts.user/deactivate/", body) for body in of(
        {}, {"ids": []}, {"ids": ["x"]}, {"ids": ["a\x00"]}, {"ids": ["1"] * 201}, {"ids": "x"},
        {"ids": ["00000000-0000-4000-8000-000000000000"], "confirm": "perhaps"},
    )),
    ("POST", "admin-actions/accounts.user/delete_selected/", {"ids": ["x"]}),
    ("POST", "admin-actions/nothing/deactivate/", {"ids": ["x"]}),
    *(("POST", "agent-tokens/", body) for body in of(
        {}, {"cluster": "main", "name": ""}, {"cluster": "a\x00", "name": "x"}, {"cluster": "main", "name": "x" * 81},
    )),
    *(("POST", "service-accounts/", {"tenant": "demo", "name": "ci"} | change) for change in of(
        {"name": ""}, {"name": "A b"}, {"name": "x" * 41}, {"name": "a\x00"}, {"name": "a.b"}, {"role": "king"},
        {"tenant": "nowhere"}, {"tenant": None}, {"tenant": "a\x00"}, {"more": 1},
    )),
    *(("POST", "service-accounts/{service-account}/tokens/", {"name": "x", "scopes": ["read"]} | one) for one in of(
        {"scopes": []}, {"scopes": ["admin"]}, {"scopes": [7]}, {"days": 0}, {"days": True}, {"name": "a\x00"},
        {"tenant": "second"},
    )),
]  # fmt: skip
