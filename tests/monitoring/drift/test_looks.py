"""Times of looks at clusters, and what a look writes down."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.errors import ClusterUnavailable
from clusters.models import Cluster
from monitoring.drift import looks
from monitoring.drift.compare import Discrepancy, Key
from monitoring.drift.findings import write
from monitoring.drift.ownership import Difference
from monitoring.drift.survey import SurveyResult
from monitoring.models import Finding, Look, What
from tests.cast import Cast
from tests.shared.counted import queries
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db

NOW = datetime.fromisoformat("2026-01-01T12:00:00Z")
MINUTE = timedelta(minutes=1)


def secret(name: str = "left", **more: Any) -> Discrepancy:
    return Discrepancy(
        What.UNWANTED, Key("Secret", "berth-demo", name), uid=f"uid-{name}", tenant="demo", **more
    )


def seen(cast: Cast, *found: Discrepancy, minute: int = 0, moving: set[UUID] | None = None) -> None:
    at = NOW + minute * MINUTE
    write(cast.cluster, SurveyResult(list(found), moving or set()), at, at - MINUTE)


def changed(value: str, by: str = "kubectl") -> Discrepancy:
    difference = Difference(("f:spec", "f:type"), by, "2026-01-01T00:00:00Z", value, digest=value)
    return Discrepancy(What.CHANGED, Key("Service", "berth-demo", "ws"), "uid", differences=(difference,))


def shown() -> list[str]:
    return list(Finding.objects.open().values_list("name", flat=True))


# --- Written findings


def test_a_finding_is_shown_after_a_minute(cast: Cast) -> None:
    seen(cast, secret())
    seen(cast, secret())  # an admin asked for another look at once
    assert shown() == []
    seen(cast, secret(), minute=1)
    assert shown() == ["left"]


def test_a_finding_that_was_never_shown_leaves_no_row(cast: Cast) -> None:
    seen(cast, secret())
    seen(cast, minute=1)
    assert not Finding.objects.exists()


def test_a_finding_ends_when_a_look_does_not_see_it_and_may_come_again(cast: Cast) -> None:
    seen(cast, secret())
    seen(cast, secret(), minute=1)
    seen(cast, minute=6)
    over = Finding.objects.get()
    assert (over.resolved_at, over.last_seen_at) == (NOW + 6 * MINUTE, NOW + 5 * MINUTE)
    seen(cast, secret(), minute=11)
    assert Finding.objects.count() == 2


def test_a_look_that_sees_the_same_writes_nothing(cast: Cast) -> None:
    seen(cast, secret(), changed("3"))
    seen(cast, secret(), changed("3"), minute=1)
    with CaptureQueriesContext(connection) as captured:
        seen(cast, secret(), changed("3"), minute=6)
    assert not [one["sql"] for one in captured if one["sql"].startswith(("INSERT", "UPDATE"))]


def test_findings_of_a_workspace_in_transition_stay_as_they_are(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    seen(cast, secret(workspace=workspace.pk))
    seen(cast, secret(workspace=workspace.pk), minute=1)
    seen(cast, minute=6, moving={workspace.pk})
    assert shown() == ["left"]
    assert Finding.objects.get().workspace == workspace


def test_an_accepted_finding_is_open_again_once_it_changes(cast: Cast) -> None:
    seen(cast, changed("3"))
    seen(cast, changed("3"), minute=1)
    Finding.objects.update(accepted_at=NOW, accepted_by=cast.admin.user)
    seen(cast, changed("3"), minute=6)
    assert shown() == []
    seen(cast, changed("0"), minute=11)
    assert shown() == ["ws"]
    assert Finding.objects.get().data["fields"][0]["value"] == "0"


def test_a_thousand_findings_cost_as_many_queries_as_ten(cast: Cast) -> None:
    def left(count: int) -> list[Discrepancy]:
        return [secret(f"left-{count}-{number}", workspace=uuid4()) for number in range(count)]

    few = queries(lambda: seen(cast, *left(10)))
    assert queries(lambda: seen(cast, *left(400), minute=1)) <= few + 1  # the ten earlier ones are deleted


# --- Times


def due(now: datetime) -> list[Cluster]:
    return list(looks.due(now))


def looked(cast: Cast, **fields: Any) -> None:
    Look.objects.update_or_create(cluster=cast.cluster, defaults=fields)


def test_a_cluster_is_looked_at_every_five_minutes(cast: Cast) -> None:
    assert due(NOW) == [cast.cluster]
    looked(cast, ended_at=NOW)
    assert due(NOW + 4 * MINUTE) == []
    assert due(NOW + 6 * MINUTE) == [cast.cluster]
    Cluster.objects.update(unreachable_since=NOW)
    assert due(NOW + 6 * MINUTE) == []


def test_a_clock_that_was_set_back_delays_no_look(cast: Cast) -> None:
    looked(cast, ended_at=NOW + 60 * MINUTE)
    assert due(NOW) == [cast.cluster]


def test_a_new_finding_needs_a_second_look_a_minute_later(cast: Cast) -> None:
    seen(cast, secret())
    looked(cast, ended_at=NOW)
    assert due(NOW + MINUTE / 2) == []
    assert due(NOW + 1.1 * MINUTE) == [cast.cluster]
    Finding.objects.update(confirmed_at=NOW)
    assert due(NOW + 1.1 * MINUTE) == []


def test_a_queued_look_is_not_queued_again_unless_it_was_lost(cast: Cast) -> None:
    looked(cast, ended_at=None, queued_at=NOW)
    assert due(NOW + MINUTE) == []
    assert due(NOW + 11 * MINUTE) == [cast.cluster]


def test_a_look_that_an_admin_requests_is_due_at_once(cast: Cast) -> None:
    looked(cast, ended_at=NOW, wanted_at=NOW)
    assert due(NOW) == [cast.cluster]


def test_a_cluster_that_does_not_answer_resolves_nothing_and_says_why(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen(cast, secret())
    seen(cast, secret(), minute=1)

    def away(cluster: Cluster) -> None:
        raise ClusterUnavailable("Cannot reach it")

    monkeypatch.setattr(looks, "api_for", away)
    looks.enqueue_look(cast.cluster.pk)
    looks.look(cast.cluster.pk)
    assert shown() == ["left"]
    last = Look.objects.get(cluster=cast.cluster)
    assert (last.error, last.queued_at) == ("Cannot reach it", None)
    assert last.ended_at is not None
    assert timezone.now() - last.ended_at < MINUTE
