"""The real agent and the real intake, without a network between them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.models import Gpu, Node
from monitoring.agent.look import Looker
from monitoring.agent.push import Answer, Portal, Pusher, Spool
from monitoring.agent.schema import Report
from monitoring.intake import tokens
from monitoring.models import AgentState, Figure
from tests.cast import Cast
from tests.monitoring.agent.conftest import looker, node  # noqa: F401
from tests.monitoring.agent.stand_in import Gpu as Told
from tests.monitoring.agent.stand_in import Running, StandIn
from tests.shared.agent_reports import GPU_0, GPU_1, send

pytestmark = pytest.mark.django_db
Make = Callable[[StandIn | None], Looker]


class Receiver(Portal):
    """Portal for an agent in the same process."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def send(self, body: bytes) -> Answer:
        answer = send(self.secret, body)
        after = answer.headers.get("Retry-After")
        return Answer(answer.status_code, answer.content.decode(), float(after) if after else None)


def report(looker: Looker, sequence: int) -> Report:  # noqa: F811
    return {"sequence": sequence, **looker.look()}


def test_what_an_agent_tells_is_taken_whole(cast: Cast, looker: Make) -> None:  # noqa: F811
    seen, spool = looker(StandIn(Told(GPU_0, processes=[Running(1)]), Told(GPU_1))), Spool()
    pusher = Pusher(spool, Receiver(tokens.issue(cast.admin, cast.cluster, "nodes")[1]), "gpu-1")
    spool.put(report(seen, 1))
    pusher.inventory = seen.inventory
    assert pusher.push() == 0
    assert (len(spool), pusher.refused, pusher.sent) == (0, 0, 1)
    assert [gpu.utilization_percent for gpu in Gpu.objects.all()] == [37, 37]
    assert (Figure.objects.count(), AgentState.objects.get().driver_version) == (2, "570.86.15")


def test_an_agent_without_nvml_is_heard(cast: Cast, looker: Make) -> None:  # noqa: F811
    spool = Spool()
    spool.put(report(looker(None), 1))
    Pusher(spool, Receiver(tokens.issue(cast.admin, cast.cluster, "nodes")[1]), "gpu-1").push()
    assert "library_missing" in {trouble["code"] for trouble in AgentState.objects.get().troubles}


def test_a_report_of_a_node_that_is_new_is_kept_until_the_node_was_seen(
    cast: Cast,
    looker: Make,  # noqa: F811
) -> None:
    seen, spool = looker(StandIn(Told(GPU_0))), Spool()
    pusher = Pusher(spool, Receiver(tokens.issue(cast.admin, cast.cluster, "nodes")[1]), "gpu-9")
    spool.put(report(seen, 1))
    pusher.inventory = seen.inventory
    assert pusher.push() > 0
    assert (len(spool), Gpu.objects.count()) == (1, 0)
    Node.objects.create(cluster=cast.cluster, name="gpu-9")
    assert pusher.push() == 0
    assert (len(spool), Gpu.objects.get().node) == (0, "gpu-9")
