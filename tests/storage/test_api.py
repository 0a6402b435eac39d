"""The API of volumes: shape, filters, problems in words, and as many queries for many as for one."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from storage import changes
from storage.models import Volume
from tests.cast import Cast
from tests.shared.clients import api, ask

pytestmark = [pytest.mark.django_db]
BODY = {"tenant": "demo", "name": "data", "kind": "dataset", "size_mib": 1024}


def test_a_volume_from_its_creation_to_the_bin_and_back(cast: Cast) -> None:
    client = api(cast.alice)
    made = ask(client, "POST", "volumes/", BODY)
    assert made.status_code == 201
    path = f"volumes/{made.json()['id']}/"
    expected = {"tenant": "demo", "owner": "alice", "kind": "dataset", "size_mib": 0, "requested_mib": 1024}
    expected |= {
        "phase": "pending",
        "problem": None,
        "node": None,
        "used_mib": None,
        "access": [],
        "enforced": True,
    }
    assert made.json().items() >= expected.items()
    assert ask(client, "PATCH", path, {"size_mib": 2048}).status_code == 202
    assert ask(client, "PATCH", path, {"size_mib": 1024}).json()["error"]["code"] == "cannot_shrink"
    assert ask(client, "PATCH", path, {"shared": "read"}).json()["shared"] == "read"
    assert ask(client, "DELETE", path).json()["phase"] == "in_bin"
    assert ask(client, "DELETE", path).status_code == 200
    assert ask(client, "POST", f"{path}restore/").json()["bin_until"] is None
    assert ask(client, "DELETE", f"{path}?now=true").json()["phase"] == "deleting"
    assert ask(client, "POST", f"{path}restore/").status_code == 409


@pytest.mark.parametrize("change", [{"size_mib": "much"}, {"size_mib": 0}, {"kind": "tape"}, {"unknown": 1}])
def test_faulty_bodies_are_refused(cast: Cast, change: dict[str, Any]) -> None:
    answer = ask(api(cast.alice), "POST", "volumes/", {**BODY, **change})
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, list(change))


def test_a_problem_is_told_with_what_to_do(cast: Cast) -> None:
    volume = changes.create(cast.alice, "demo", changes.Wish(name="data", kind="dataset", size_mib=1024))
    Volume.objects.update(problem="growth_failed", problem_data={"raw": "no room"})
    problem = ask(api(cast.alice), "GET", f"volumes/{volume.pk}/").json()["problem"]
    assert problem["code"] == "growth_failed"
    assert problem["message"]
    assert problem["hint"]


def test_a_list_takes_as_many_queries_for_many_as_for_one(cast: Cast) -> None:
    client = api(cast.alice)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            answer = ask(client, "GET", "volumes/?limit=100&kind=dataset&phase=pending&search=data")
        assert answer.status_code == 200
        return len(captured)

    changes.create(cast.alice, "demo", changes.Wish(name="data", kind="dataset", size_mib=1024))
    queries()  # the token writes its use once
    one = queries()
    for number in range(20):
        wish = changes.Wish(name=f"data {number}", kind="dataset", size_mib=1024)
        changes.create(cast.bob if number % 2 else cast.alice, "demo", wish)
    assert queries() == one


def test_another_tenants_volumes_are_not_there(cast: Cast) -> None:
    volume = changes.create(cast.alice, "demo", changes.Wish(name="data", kind="dataset", size_mib=1024))
    carol = api(cast.carol)
    assert ask(carol, "GET", "volumes/").json()["results"] == []
    assert ask(carol, "GET", f"volumes/{volume.pk}/").status_code == 404
