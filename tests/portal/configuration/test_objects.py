"""Objects that admins configure, one by one over REST: the same forms, trail and refusals as in the admin."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import AuditEntry
from accounts.notices.models import Notice
from quotas.models import Flavor, Pool
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db

SHARED = {"slug": "t4", "name": "T4", "cluster": "main", "sharing": "time-slicing", "units_per_gpu": 4}


def done(cast: Cast, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    response = ask(script(cast.admin), method, path, body)
    assert response.status_code == status, response.content.decode()
    return response.json() if response.content else None


def test_an_object_is_created_changed_and_deleted_with_an_entry_for_each(cast: Cast) -> None:
    pool = done(cast, "POST", "pools/", SHARED, 201)
    assert pool["resource_name"] == "nvidia.com/gpu" and pool["is_open"]
    size = {"slug": "t4-1", "name": "A quarter", "pool": "t4", "gpus": 0.25, "cpu": 1.5, "memory_mib": 4096}
    assert done(cast, "POST", "flavors/", size, 201) == size
    assert Flavor.objects.get(slug="t4-1").units == 1

    assert done(cast, "PATCH", "flavors/t4-1/", {"gpus": 0.5}) == size | {"gpus": 0.5}
    assert done(cast, "GET", "flavors/t4-1/") == size | {"gpus": 0.5}
    assert done(cast, "PATCH", "pools/t4/", {"is_open": False}) == pool | {"is_open": False}
    done(cast, "DELETE", "pools/t4/", status=204)
    assert not Flavor.objects.filter(slug="t4-1").exists()
    actions = AuditEntry.objects.filter(actor_name="admin").order_by("at").values_list("action", flat=True)
    assert list(actions) == ["pool.create", "flavor.create", "flavor.change", "pool.close", "pool.delete"]


def test_what_the_admin_s_form_refuses_is_refused_by_field(cast: Cast) -> None:
    error = done(cast, "POST", "pools/", SHARED | {"sharing": "mig"}, 422)["error"]
    assert error["code"] == "invalid" and "mig_profile" in error["fields"]
    assert list(done(cast, "POST", "pools/", SHARED | {"cluster": "no"}, 422)["error"]["fields"]) == [
        "cluster"
    ]
    size = {"slug": "x", "name": "X", "pool": "a100", "gpus": 0.5, "cpu": 1, "memory_mib": 4096}
    assert list(done(cast, "POST", "flavors/", size, 422)["error"]["fields"]) == ["gpus"]
    assert "slug" in done(cast, "PATCH", "pools/a100/", {"slug": "b"}, 400)["error"]["fields"]
    assert done(cast, "POST", "pools/", SHARED | {"slug": "a100"}, 409)["error"]["code"] == "exists"
    assert Pool.objects.count() == 1


def test_what_is_in_use_is_not_deleted_and_says_by_what(cast: Cast) -> None:
    make_workspace(cast, cast.alice)
    for path in ("clusters/main/", "images/jupyter/", "flavors/a100-1/", "tenants/demo/"):
        error = done(cast, "DELETE", path, status=409)["error"]
        assert error["code"] == "in_use" and error["message"] and error["hint"], path


def test_a_quota_s_change_notifies_its_people_and_a_repeated_post_creates_once(cast: Cast) -> None:
    done(cast, "PATCH", "quotas/demo/a100/", {"nominal_gpus": 6})
    assert Notice.objects.get(user=cast.alice.user).data == {"pool": "A100", "before": 4, "after": 6}
    budget = {"tenant": "demo", "user": "bob", "gpu_hours": 12.5}
    headers = {"Idempotency-Key": "once"}
    admin = script(cast.admin)
    first, again = (ask(admin, "POST", "budgets/", budget, **headers) for _ in range(2))
    assert (first.status_code, again.content) == (201, first.content)
    assert first.json() == (made := budget | {"grace_minutes": 60})
    assert done(cast, "GET", "budgets/demo/bob/") == made
    hours = {"tenant": "demo", "user": "bob", "add_gpu_hours": 2.25}
    added = done(cast, "POST", "budget-hours/", hours)
    assert (added["user"], added["added_gpu_hours"], added["limit_gpu_hours"]) == ("bob", 2.25, 14.75)
    assert done(cast, "POST", "budget-hours/", hours | {"add_gpu_hours": 9_999_999}, 422)["error"]["hint"]
    done(cast, "POST", "budget-hours/", {"tenant": "demo", "add_gpu_hours": 1}, 404)
    done(cast, "DELETE", "budgets/demo/bob/", status=204)
    assert done(cast, "GET", "budgets/")["results"] == []
    done(cast, "POST", "limits/", {"tenant": "demo", "memory_mib": 1024}, 201)
    done(cast, "POST", "limits/", {"tenant": "second"}, 201)
    first_page = done(cast, "GET", "limits/?limit=1")
    assert [one["memory_mib"] for one in first_page["results"]] == [1024]
    next_page = done(cast, "GET", first_page["next"].partition("/api/v1/")[2])
    assert next_page["results"] == done(cast, "GET", "limits/?search=second")["results"]
