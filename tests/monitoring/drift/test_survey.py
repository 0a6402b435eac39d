"""Survey of a whole cluster: changes during it are no findings, and size costs no queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from clusters.errors import ClusterUnavailable
from monitoring.drift.survey import METADATA_ONLY, survey
from monitoring.models import What
from tests.cast import Cast
from tests.monitoring.drift.objects import Listing, looked, of_a_run
from tests.shared.counted import queries
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db


def test_a_workspace_that_starts_or_stops_during_a_survey_is_no_finding(cast: Cast) -> None:
    ready = make_workspace(cast, cast.bob)

    def stops() -> None:
        Workspace.objects.filter(pk=ready.pk).update(phase=Phase.STOPPING)

    assert (What.MISSING, "Service") in looked(cast, *of_a_run(ready.pk)[1:])
    assert looked(cast, *of_a_run(ready.pk)[1:], meanwhile=stops) == []
    other = make_workspace(cast, cast.alice, Phase.STARTING, deleted_at=timezone.now())
    rows = Workspace.objects.filter(pk=other.pk)
    bodies = of_a_run(other.pk)
    assert looked(cast, *bodies)[0] == (What.UNWANTED, "Service")
    assert looked(cast, *bodies, meanwhile=lambda: rows.update(deleted_at=None)) == []


def test_a_list_that_breaks_off_fails_the_survey(cast: Cast) -> None:
    def breaks_off() -> None:
        raise ClusterUnavailable("cut off")

    with pytest.raises(ClusterUnavailable):
        looked(cast, meanwhile=breaks_off)


def test_the_values_of_secrets_are_not_requested(cast: Cast) -> None:
    api: Any = Listing()
    survey(cast.cluster, api)
    assert api.whole == {"StatefulSet", "Service", "PersistentVolumeClaim", "Pod"}
    assert {"Secret", "ConfigMap"} <= METADATA_ONLY


def test_many_workspaces_cost_as_many_queries_as_few(cast: Cast) -> None:
    make_workspace(cast, cast.bob, name="one")
    few = queries(lambda: looked(cast))
    for number in range(8):
        make_workspace(cast, cast.bob, name=f"more-{number}")
    assert queries(lambda: looked(cast)) == few
