"""The real agent and the real intake, without a network between them."""

from __future__ import annotations

import pytest

from clusters.models import Gpu, Node
from monitoring.agent.look import Looker
from monitoring.agent.push import Answer, Portal, Pusher, Spool
from monitoring.models import AgentState, Figure
from tests.cast import Cast
from tests.monitoring.agent.conftest import Make, looker, node  # noqa: F401
from tests.monitoring.agent.stand_in import Gpu as Told
from tests.monitoring.agent.stand_in import Running, StandIn
from tests.shared.agent_reports import GPU_0, GPU_1, send

pytestmark = pytest.mark.django_db


class Receiver(Portal):
    """Portal for an agent in the same process."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def send(self, body: bytes) -> Answer:
        answer = send(self.secret, body)
        after = answer.headers.get("Retry-After")
        return Answer(answer.status_code, answer.content.decode(), float(after) if after else None)


def pushing(spool: Spool, secret: str, node: str = "gpu-1") -> Pusher:  # noqa: F811
    return Pusher(spool, Receiver(secret), node)


@pytest.fixture
def spool() -> Spool:
    return Spool()


def put(spool: Spool, looker: Looker) -> None:  # noqa: F811
    spool.put({"sequence": 1, **looker.look()})


def test_a_report_is_taken_whole(secret: str, looker: Make, spool: Spool) -> None:  # noqa: F811
    seen, pusher = looker(StandIn(Told(GPU_0, processes=[Running(1)]), Told(GPU_1))), pushing(spool, secret)
    put(spool, seen)
    pusher.inventory = seen.inventory
    assert pusher.push() == 0
    assert (len(spool), pusher.refused, pusher.sent) == (0, 0, 1)
    assert [gpu.utilization_percent for gpu in Gpu.objects.all()] == [37, 37]
    assert (Figure.objects.count(), AgentState.objects.get().driver_version) == (2, "570.86.15")


def test_a_report_without_nvml_is_taken(secret: str, looker: Make, spool: Spool) -> None:  # noqa: F811
    put(spool, looker(None))
    pushing(spool, secret).push()
    assert "library_missing" in {trouble["code"] for trouble in AgentState.objects.get().troubles}


def test_a_report_of_a_new_node_is_kept_until_berth_has_seen_the_node(
    cast: Cast,
    secret: str,
    looker: Make,  # noqa: F811
    spool: Spool,
) -> None:
    seen, pusher = looker(StandIn(Told(GPU_0))), pushing(spool, secret, "gpu-9")
    put(spool, seen)
    pusher.inventory = seen.inventory
    assert pusher.push() > 0
    assert (len(spool), Gpu.objects.count()) == (1, 0)
    Node.objects.create(cluster=cast.cluster, name="gpu-9")
    assert pusher.push() == 0
    assert (len(spool), Gpu.objects.get().node) == (0, "gpu-9")
