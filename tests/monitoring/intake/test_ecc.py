"""ECC from agents as a label of the node: pools choose by it, and pods request it."""

from __future__ import annotations

import pytest

from clusters.models import Gpu, Node
from monitoring.intake import ecc
from quotas.models import Pool
from quotas.pools import selection
from quotas.pools.needs import GpuAsked, fitting
from quotas.queries import pools_for
from tests.cast import Cast, make_cast


@pytest.mark.parametrize(
    ("told", "label"),
    [
        ([True, True], "true"),
        ([False, False], "false"),
        ([True, False], "mixed"),
        ([True, None], None),  # one did not answer
        ([None, None], None),  # they do not offer it
        ([], None),
    ],
)
def test_the_label_says_what_all_gpus_of_the_node_have(told: list[bool | None], label: str | None) -> None:
    assert ecc.label_of(told) == label


@pytest.mark.django_db
class TestLabels:
    @pytest.fixture
    def cast(self) -> Cast:
        cast = make_cast()
        for index in range(2):
            Gpu.objects.create(cluster=cast.cluster, node="gpu-1", uuid=f"GPU-{index}", index=index, ecc=True)
        return cast

    def test_are_wanted_where_the_node_says_something_else(self, cast: Cast) -> None:
        assert ecc.wrong() == {cast.cluster.pk: {"gpu-1": "true"}}
        self.label("gpu-1", "true")
        assert ecc.wrong() == {}
        Gpu.objects.filter(index=1).update(ecc=False)
        assert ecc.wrong(cast.cluster.pk) == {cast.cluster.pk: {"gpu-1": "mixed"}}

    def test_of_an_admin_stay_where_nobody_tells(self, cast: Cast) -> None:
        self.label("gpu-2", "true")
        Gpu.objects.update(ecc=None)
        assert ecc.wrong() == {}

    def test_forget_gpus_that_are_gone(self, cast: Cast) -> None:
        Gpu.objects.filter(index=1).update(ecc=False, sample={"uuid": "GPU-1", "state": "gone"})
        assert ecc.wrong() == {cast.cluster.pk: {"gpu-1": "true"}}

    def test_of_a_cluster_that_is_away_wait(self, cast: Cast) -> None:
        type(cast.cluster).objects.update(unreachable_since="2026-01-01T00:00Z")
        assert ecc.wrong() == {}

    def test_let_a_pool_choose_and_be_found(self, cast: Cast) -> None:
        chooses = Pool(cluster=cast.cluster, match_ecc=True)
        assert selection.members(chooses, Node.objects.all()) == []
        assert fitting([cast.pool], GpuAsked(ecc=True)) == []
        self.label("gpu-1", "true")
        assert [node.name for node in selection.members(chooses, Node.objects.all())] == ["gpu-1"]
        # The pool's other node has no label: its pods could be scheduled there.
        assert fitting([cast.pool], GpuAsked(ecc=True)) == []
        assert self.shown(cast) is None
        self.label("gpu-2", "true")
        assert fitting([cast.pool], GpuAsked(ecc=True)) == [cast.pool]
        assert fitting([cast.pool], GpuAsked(ecc=False)) == []
        assert self.shown(cast) is True

    def shown(self, cast: Cast) -> bool | None:
        (told,) = pools_for(cast.bob)
        ecc: bool | None = told["gpu"]["ecc"]
        return ecc

    def label(self, name: str, ecc: str) -> None:
        node = Node.objects.get(name=name)
        node.labels[selection.ECC] = ecc
        node.save()
