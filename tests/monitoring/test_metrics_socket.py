"""Websocket of the Metrics tab: the whole window first, then news; one read for all viewers."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.db import connections
from django.utils import translation

from accounts.models import Membership
from accounts.signals import send_access_changed
from monitoring.figures.series import of_workspace
from monitoring.figures.store import Sample, TrackIdentity, put
from monitoring.following import FiguresFrame, FiguresRequest, figures_json, read_figures
from tests.cast import Cast
from tests.monitoring.measured import measure
from tests.shared.counted import queries
from tests.shared.sockets import in_thread, socket
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace
from workspaces.state.live import changing

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _no_connection_stays_open() -> AsyncIterator[None]:
    yield
    await in_thread(connections.close_all)()


def measured(cast: Cast) -> Workspace:
    workspace = make_workspace(cast, cast.bob)
    measure(workspace, minutes=10, every_seconds=30)
    return workspace


def tell_one_more(workspace: Workspace) -> None:
    assert workspace.run is not None
    of = TrackIdentity(workspace.pool.cluster_id, "gpu-1", "GPU-gpu-1-0", "GPU 0", frozenset({workspace.run}))
    put([Sample(of, time.time() + 1, 99.0)])
    with changing(workspace.pk) as row:  # wakes the socket, as its interval would
        row.name = "renamed"


def use_in(frame: Any) -> list[list[Any]]:
    [line] = [line for line in frame["series"] if line["name"] == "gpu_utilization"]
    return [point for point in line["points"] if point[1] is not None]


@pytest.mark.slow
async def test_the_whole_window_comes_first_and_then_new_points(cast: Cast) -> None:
    workspace = await in_thread(measured)(cast)
    async with socket(f"/ws/workspaces/{workspace.pk}/metrics/?window=15m", cast.victor) as wire:
        whole = await wire.hear()
        assert (whole["type"], whole["window"], whole["since"]) == ("figures", "15m", None)
        assert len(use_in(whole)) > 20
        await in_thread(tell_one_more)(workspace)
        *_before, newest = await wire.hear_until(
            lambda frame: frame["type"] == "figures" and frame["since"] and use_in(frame)[-1][1] > 70
        )
        assert all(at >= newest["since"] for line in newest["series"] for at, _value in line["points"])
        assert len(use_in(newest)) < 20


async def test_an_unknown_window_is_replaced_by_the_default(cast: Cast) -> None:
    workspace = await in_thread(measured)(cast)
    async with socket(f"/ws/workspaces/{workspace.pk}/metrics/?window=soon", cast.bob) as wire:
        assert (await wire.hear())["window"] == "1h"


def test_messages_are_in_the_language_of_the_page(cast: Cast) -> None:
    workspace, other = measured(cast), make_workspace(cast, cast.bob, name="idle")
    with translation.override("ko"):
        words = figures_json(of_workspace(other, "1h"), "1h")["message"]
    found = read_figures([FiguresRequest(cast.bob, pk, "1h", None, "ko") for pk in (workspace.pk, other.pk)])
    assert [json.loads(one.frame)["message"] for one in found if isinstance(one, FiguresFrame)][1] == words


async def test_a_socket_is_closed_when_its_person_loses_access(cast: Cast) -> None:
    workspace = await in_thread(measured)(cast)
    async with socket(f"/ws/workspaces/{workspace.pk}/metrics/", cast.victor) as wire:
        await wire.hear()
        await in_thread(Membership.objects.filter(user=cast.victor.user).delete)()
        await in_thread(send_access_changed)(cast.victor.user)
        assert await wire.closed_with() == 4404


def test_a_hundred_viewers_take_as_many_queries_as_one(cast: Cast) -> None:
    workspace = measured(cast)

    asked = [FiguresRequest(actor, workspace.pk, "1h", None, "en") for actor in (cast.bob, cast.victor)]
    assert all(isinstance(one, FiguresFrame) for one in read_figures(asked))
    assert queries(lambda: read_figures(asked * 50)) == queries(lambda: read_figures(asked))
