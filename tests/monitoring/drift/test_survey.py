"""Survey of a whole cluster: changes during it are no findings, and size costs no queries."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.api import Api
from clusters.errors import ClusterUnavailable
from monitoring.drift.survey import METADATA_ONLY, survey
from monitoring.models import What
from tests.cast import Cast, make_cast
from tests.monitoring.drift.listing import Listing, looked
from tests.monitoring.drift.objects import of_a_run
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage() -> Cast:
    return make_cast()


def test_what_is_launched_and_what_stops_while_the_cluster_is_read_is_no_finding(stage: Cast) -> None:
    ready = make_workspace(stage, stage.bob)

    def stops() -> None:
        Workspace.objects.filter(pk=ready.pk).update(phase=Phase.STOPPING)

    assert (What.MISSING, "StatefulSet") in looked(stage, *of_a_run(ready.pk)[1:])
    assert looked(stage, *of_a_run(ready.pk)[1:], meanwhile=stops) == []
    other = make_workspace(stage, stage.alice, Phase.STARTING, deleted_at=timezone.now())
    rows = Workspace.objects.filter(pk=other.pk)
    bodies = of_a_run(other.pk)
    assert looked(stage, *bodies)[0] == (What.UNWANTED, "StatefulSet")
    assert looked(stage, *bodies, meanwhile=lambda: rows.update(deleted_at=None)) == []


def test_a_look_of_which_a_list_breaks_off_comes_to_no_end(stage: Cast) -> None:
    def breaks_off() -> None:
        raise ClusterUnavailable("cut off")

    with pytest.raises(ClusterUnavailable):
        looked(stage, meanwhile=breaks_off)


def test_of_secrets_the_values_are_not_asked_for(stage: Cast) -> None:
    api = Listing()
    survey(stage.cluster, cast(Api, api))
    assert api.whole == {"StatefulSet", "Service", "PersistentVolumeClaim", "Pod"}
    assert {"Secret", "ConfigMap"} <= METADATA_ONLY


def test_many_workspaces_cost_as_many_queries_as_few(stage: Cast) -> None:
    def queries(*bodies: dict[str, Any]) -> int:
        with CaptureQueriesContext(connection) as captured:
            looked(stage, *bodies)
        return len(captured)

    make_workspace(stage, stage.bob, name="one")
    few = queries()
    for number in range(8):
        make_workspace(stage, stage.bob, name=f"more-{number}")
    assert queries() == few
