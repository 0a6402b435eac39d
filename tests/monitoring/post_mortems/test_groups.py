"""Which runs are alike: by node, GPU, and image with the same verdict."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from monitoring.models import PostMortem
from monitoring.post_mortems import groups
from monitoring.post_mortems.groups import FEWEST, WITHIN, Ended, alike, is_group
from tests.cast import Cast

NOW = timezone.now()
CLUSTER = uuid4()


def ended(
    verdict: str = "gpu_lost",
    *,
    node: str = "gpu-1",
    gpus: tuple[str, ...] = (),
    holder: UUID | None = None,
    image: str = "",
    ago: timedelta = timedelta(hours=1),
) -> Ended:
    return Ended(uuid4(), holder or uuid4(), CLUSTER, node, gpus, image, verdict, NOW - ago)


def test_runs_that_a_node_ends_are_a_group_with_their_number() -> None:
    those = [ended("node_lost", ago=timedelta(hours=hours)) for hours in range(17)]
    (group,) = alike(those, NOW)
    assert (group.code, group.node, group.cluster_id) == ("alike_node", "gpu-1", CLUSTER)
    assert group.data == {"count": 17, "days": 2, "node": "gpu-1"}
    assert group.since == NOW - timedelta(hours=16)
    assert set(group.runs) == {one.run for one in those}


def test_a_job_that_fails_by_itself_and_is_tried_again_is_no_group() -> None:
    job = uuid4()
    assert alike([ended("program_exit", holder=job) for _ in range(20)], NOW) == []


def test_programs_of_many_that_fail_on_one_node_are_a_group() -> None:
    those = [ended("program_exit", holder=holder) for holder in (uuid4(), uuid4(), uuid4()) for _ in range(2)]
    assert [group.code for group in alike(those, NOW)] == ["alike_node"]


def test_runs_on_one_gpu_are_one_group_and_not_also_one_of_their_node() -> None:
    those = [ended(gpus=("GPU-1",)) for _ in range(3)]
    (group,) = alike(those, NOW)
    assert (group.code, group.data["gpu"], group.node) == ("alike_gpu", "GPU-1", "gpu-1")


def test_an_image_that_ends_in_one_way_for_several_is_a_group_wherever_it_runs() -> None:
    those = [ended("gpu_software_unfit", node=f"gpu-{n}", image="torch") for n in range(3)]
    (group,) = alike(those, NOW)
    assert (group.code, group.node, group.data["verdict"]) == ("alike_image", "", "gpu_software_unfit")


def test_old_runs_are_in_no_group() -> None:
    assert alike([ended(ago=WITHIN + timedelta(minutes=1)) for _ in range(9)], NOW) == []


HOLDERS = [uuid4() for _ in range(4)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12))
def test_one_run_more_never_ends_a_group(drawn: list[tuple[bool, int]]) -> None:
    those = [ended("program_exit" if is_own else "node_lost", holder=HOLDERS[n]) for is_own, n in drawn]
    for count in range(len(those)):
        assert not is_group(those[:count]) or is_group(those[: count + 1])


@pytest.mark.django_db
def test_groups_are_read_again_after_a_change_and_in_the_next_minute_only(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []

    def counted(records: list[Ended], now: datetime) -> list[groups.Group]:
        found.append(len(records))
        return alike(records, now)

    monkeypatch.setattr(groups, "alike", counted)
    groups._of_everyone.cache_clear()
    of = {
        "tenant": cast.demo, "owner": cast.bob.user, "cluster": cast.cluster, "holder_kind": "workspace",
        "node": "gpu-1", "happened": "failed", "code": "given_up", "verdict": "gpu_lost",
    }  # fmt: skip
    now = timezone.now().replace(second=10)
    at = now - timedelta(hours=1)
    for _ in range(FEWEST):  # these are still filled
        PostMortem.objects.create(id=uuid4(), holder_id=uuid4(), started_at=at, ended_at=at, due_at=now, **of)
    for number in range(FEWEST):
        PostMortem.objects.create(id=uuid4(), holder_id=uuid4(), started_at=at, ended_at=at, **of)
        codes = [firing.code for firing in groups.firings(now)]
        assert ("alike_node" in codes) == (number + 1 == FEWEST)
        groups.firings(now + timedelta(seconds=40))
    assert found == [1, 2, 3]
    groups.firings(now + timedelta(minutes=1))
    assert found == [1, 2, 3, 3]
