"""Socket of the map of GPUs: it reports that something changed, but not what."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quotas.models import Claim
from quotas.signals import claim_admitted
from tests.cast import Cast, make_cast
from tests.shared.sockets import in_thread, socket
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/ws/gpus/"


@pytest.fixture
def cast() -> Iterator[Cast]:
    yield make_cast()


async def test_who_is_not_signed_in_hears_nothing(cast: Cast) -> None:
    async with socket(ADDRESS) as nobody:
        assert await nobody.closed_with() == 4401


async def test_a_change_in_another_tenant_wakes_and_tells_nothing_else(cast: Cast) -> None:
    async with socket(ADDRESS, cast.bob) as bobs:
        assert await bobs.hear() == {"type": "pools"}
        workspace = await in_thread(make_workspace)(cast, cast.carol)
        claim = await in_thread(Claim.objects.get)(holder_id=workspace.pk)
        await in_thread(claim_admitted.send_robust)(sender=Claim, claim=claim)
        assert await bobs.hear() == {"type": "pools"}
