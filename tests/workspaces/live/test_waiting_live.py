"""Open pages of waiting workspaces get new places and forecasts."""

from __future__ import annotations

import pytest

from quotas import admission
from quotas.forecasts import update_forecasts
from quotas.models import Claim, Pool
from tests.cast import Cast
from tests.shared.sockets import in_thread, socket
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def two_wait(cast: Cast) -> list[Workspace]:
    """Let two workspaces wait for all of demo's GPUs, of which alice holds one."""
    make_workspace(cast, cast.alice)
    rows = [make_workspace(cast, cast.bob, Phase.WAITING, name=name) for name in ("first", "second")]
    for place, row in enumerate(rows):
        Claim.objects.filter(holder_id=row.pk).update(units=4, place=place)
    update_forecasts(cast.pool.pk)
    return rows


def the_first_goes(cast: Cast, rows: list[Workspace]) -> None:
    admission.release(Claim.objects.get(holder_id=rows[0].pk).pk, "withdrawn")
    Pool.objects.update(forecast_at=None)
    update_forecasts(cast.pool.pk)


async def test_a_place_that_becomes_another_is_told(cast: Cast) -> None:
    rows = await in_thread(two_wait)(cast)
    async with socket(f"/ws/workspaces/{rows[1].pk}/?after=99", cast.bob) as bobs:
        frame = await bobs.hear()
        assert frame["workspace"]["queue"]["position"] == 2
        assert frame["workspace"]["queue"]["gpus_ahead"] == 4
        assert frame["workspace"]["queue"]["estimated_to"]
        await in_thread(the_first_goes)(cast, rows)
        frame = await bobs.hear()
        assert frame["workspace"]["queue"]["position"] == 1
