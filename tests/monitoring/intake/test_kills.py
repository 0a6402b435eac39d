"""Counts of processes that the kernel ended for memory, as agents report them."""

from __future__ import annotations

import pytest

from monitoring.models import AgentState, OomKill
from tests.shared.agent_reports import batch, report, send

pytestmark = pytest.mark.django_db

POD, CONTAINER = "6f0c1d54-5d5e-4a51-9f6e-6d6f7274656d", "a" * 64


def kills() -> dict[str, int]:
    return dict(OomKill.objects.values_list("container", "kills"))


def told(count: int, container: str = "") -> dict[str, object]:
    return {"pod_uid": POD, "kills": count} | ({"container_id": container} if container else {})


def test_counts_grow_and_are_never_lowered(secret: str) -> None:
    send(secret, batch(report(1, oom_kills=[told(2), told(2, CONTAINER)])))
    first = OomKill.objects.get(container="")
    send(secret, batch(report(2, oom_kills=[told(2)]), report(3, oom_kills=[told(5)])))
    send(secret, batch(report(4, oom_kills=[told(1)])))  # of an agent that counts anew
    assert kills() == {"": 5, CONTAINER: 2}
    again = OomKill.objects.get(container="")
    assert again.first_at == first.first_at
    assert again.last_at > first.last_at


def test_an_agent_that_sees_no_cgroups_is_known_as_such(secret: str) -> None:
    send(secret, batch(report(1, oom_kills=[])))
    assert AgentState.objects.get().counts_oom_kills
    send(secret, batch(report(2)))
    assert not AgentState.objects.get().counts_oom_kills


@pytest.mark.parametrize("wrong", [[{"pod_uid": POD}], [{"kills": 1}], [{"pod_uid": 7, "kills": 1}], {}, "x"])
def test_what_is_no_count_is_refused(secret: str, wrong: object) -> None:
    assert send(secret, batch(report(1, oom_kills=wrong))).status_code == 400
    assert not OomKill.objects.exists()


def test_a_count_that_no_column_holds_is_cut(secret: str) -> None:
    counts = [told(2**62), told(-3, CONTAINER)]
    assert send(secret, batch(report(1, oom_kills=counts))).status_code == 204
    assert kills() == {"": 2**31 - 1}
