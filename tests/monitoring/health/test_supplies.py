"""Addresses and volumes that are nearly used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from clusters.address_pools import AddressPool, pools, span
from monitoring.dcgm.prometheus import Series
from monitoring.health import signs, supplies
from monitoring.health.rules import About
from tests.monitoring.health.ward import Ward, open_codes, story


class Served:
    """Cluster that serves address pools, Services and API groups."""

    def __init__(
        self, *pools: dict[str, Any], addresses: Sequence[str] = (), groups: Sequence[str] = ("metallb.io",)
    ) -> None:
        self._pools = [{"metadata": {"name": f"pool-{number}"}, **pool} for number, pool in enumerate(pools)]
        self._addresses, self._groups = addresses, set(groups)

    def groups(self) -> set[str]:
        return self._groups

    def list(self, kind: str) -> list[dict[str, Any]]:
        if kind == "IPAddressPool":
            return self._pools
        return [{"status": {"loadBalancer": {"ingress": [{"ip": one}]}}} for one in self._addresses]


def test_metallbs_own_count_of_addresses_is_used() -> None:
    status = {"assignedIPv4": 9, "availableIPv4": 1, "availableIPv6": 0}
    api: Any = Served({"spec": {"addresses": ["10.0.0.1-10.0.0.10"]}, "status": status})
    assert pools(api) == [AddressPool("pool-0", 10, 1)]


def test_addresses_of_services_are_counted_if_metallb_reports_no_count() -> None:
    addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.1.7", "fd00::1"]
    api: Any = Served(
        {"spec": {"addresses": ["10.0.0.0/30"]}},
        {"spec": {"addresses": ["fd00::1-fd00::2"]}},
        addresses=addresses,
    )
    assert pools(api) == [AddressPool("pool-0", 4, 2), AddressPool("pool-1", 2, 1)]


def test_without_metallb_there_are_no_pools() -> None:
    api: Any = Served(groups=())
    assert pools(api) == []


@pytest.mark.parametrize("text", ["", "none", "10.0.0.1-", "10.0.0.1-x", "10.0.0.0/99"])
def test_an_invalid_range_has_no_addresses(text: str) -> None:
    assert span(text) is None


@pytest.mark.parametrize(
    ("free", "code"), [(0, "addresses_used_up"), (9, "addresses_nearly_used_up"), (10, None), (100, None)]
)
def test_few_free_addresses_are_a_problem(free: int, code: str | None) -> None:
    found = [verdict.code for verdict in supplies.of_pools([AddressPool("p", 100, free)])]
    assert found == ([code] if code else [])


def series(claim: str, value: float, **labels: str) -> Series:
    return Series({"namespace": "berth-demo", "persistentvolumeclaim": claim} | labels, [(1.0, value)])


def test_a_volume_is_nearly_full_from_ninety_percent_on() -> None:
    available = [series("full", 4.0), series("half", 50.0), series("others", 0.0, namespace="kube-system")]
    capacity = [series(name, 100.0) for name in ("full", "half")]
    [found] = supplies.of_volumes(available, capacity)
    assert (found.subject, found.data) == ("berth-demo/full", {"percent": 95})


def test_a_pvc_with_an_impossible_name_is_ignored() -> None:
    """Check a name that no column could store: a scraped process may write one."""
    told = [series(name, 1.0) for name in ("full", "c" * 400)]
    found = supplies.of_volumes(told, [series(one.labels["persistentvolumeclaim"], 100.0) for one in told])
    assert [verdict.subject for verdict in found] == ["berth-demo/full"]


@pytest.mark.django_db
def test_only_the_owner_is_notified_of_a_nearly_full_home(ward: Ward) -> None:
    alices, carols = ward.on_gpu(1, ward.cast.alice), ward.on_gpu(2, ward.cast.carol)
    claim = f"{alices.object_name}-home"
    found = [*supplies.of_volumes([series(claim, 1.0)], [series(claim, 100.0)])]
    supplies.write(ward.cluster, About.VOLUME, found)
    supplies.write(ward.cluster, About.VOLUME, found)
    assert story(alices) == [("volume_nearly_full", "warning")] and story(carols) == []
    ward.judge()  # judging a node must not end this trouble, nor must the tick
    assert not [node for _cluster, node in signs.due() if not node]
    assert open_codes() == ["volume_nearly_full"]
    supplies.write(ward.cluster, About.VOLUME, [])
    assert story(alices)[1:] == [("ailment_over", "info")]


@pytest.mark.django_db
def test_a_pvc_in_another_namespace_with_a_workspaces_name_notifies_nobody(ward: Ward) -> None:
    alices = ward.on_gpu(1, ward.cast.alice)
    claim = f"{alices.object_name}-home"
    left, size = (series(claim, value, namespace="berth-second") for value in (1.0, 100.0))
    supplies.write(ward.cluster, About.VOLUME, [*supplies.of_volumes([left], [size])])
    assert open_codes() == ["volume_nearly_full"]
    assert story(alices) == []
