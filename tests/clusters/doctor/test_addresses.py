"""Tests of doctor's findings about addresses of workspaces."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.doctor import addresses
from clusters.models import Cluster
from tests.clusters.doctor.told import Said, levels, node, said

BALANCED: dict[str, Any] = {"spec": {"type": "LoadBalancer"}}


class TestAddresses:
    @pytest.mark.parametrize(
        ("api", "level"),
        [
            (Said(), "warn"),
            (Said(Node=[node(provider="aws:///x")]), "ok"),
            (Said(Service=[BALANCED]), "warn"),
            (Said(Service=[BALANCED | {"status": {"loadBalancer": {"ingress": [{}]}}}]), "ok"),
        ],
        ids=["nobody", "a cloud", "one that waits", "one that has its address"],
    )
    def test_who_gives_addresses_is_recognised(self, api: Said, level: str) -> None:
        assert levels(said(addresses.addresses, api)) == [level]

    @pytest.mark.parametrize(
        ("free", "level"), [(60, "ok"), (3, "warn"), (0, "fail")], ids=["many", "few", "none"]
    )
    def test_what_metallb_has_left_is_told(self, free: int, level: str) -> None:
        pool = {
            "metadata": {"name": "lab"},
            "spec": {"addresses": ["10.0.0.1-10.0.0.36", "10.0.1.0/27"]},
            "status": {"availableIPv4": free},
        }
        found = said(addresses.addresses, Said(IPAddressPool=[pool], groups=("metallb.io",)))
        assert levels(found) == [level, "ok"] and "of 68" in found[0][1]

    def test_metallb_without_a_pool_gives_no_addresses(self) -> None:
        assert levels(said(addresses.addresses, Said(groups=("metallb.io",)))) == ["fail", "ok"]

    def test_the_portal_needs_a_domain(self, settings: Any) -> None:
        for domain, level in (("ws.example", "ok"), ("", "fail")):
            settings.WORKSPACE_DOMAIN = domain
            assert levels(said(addresses.addresses, Said(), exposure=Cluster.Exposure.PORTAL)) == [level]

    @pytest.mark.parametrize("exposure", [Cluster.Exposure.PORTAL, Cluster.Exposure.NODE_PORT])
    def test_a_berth_outside_is_warned_of_what_is_inside(self, settings: Any, exposure: str) -> None:
        settings.WORKSPACE_DOMAIN = "ws.example"
        found = said(addresses.addresses, Said(), exposure=exposure, connection=Cluster.Connection.KUBECONFIG)
        assert levels(found) == ["ok", "warn"]

    @pytest.mark.parametrize(
        ("host", "domain", "shared"),
        [
            ("berth.lab.example", "ws.lab.example", "lab.example"),
            ("lab.example", "ws.lab.example", "lab.example"),
            ("berth.lab.ac.uk", "ws.lab.ac.uk", "lab.ac.uk"),
            ("berth.lab.ac.uk", "ws.other.ac.uk", ""),
            ("berth.example", "ws.example", ""),
            ("127.0.0.1", "localhost", ""),
            ("10.0.0.1", "ws.0.0.1", ""),
        ],
    )
    def test_a_domain_beside_berths_own_pages_is_a_warning(
        self, settings: Any, host: str, domain: str, shared: str
    ) -> None:
        settings.BASE_URL, settings.WORKSPACE_DOMAIN = f"https://{host}:8000", domain
        found = list(addresses.beside_berth())
        assert [finding.level for finding in found] == ["warn"] * bool(shared)
        assert all(f"for all of {shared}." in finding.hint for finding in found)

    def test_jupyter_in_clear_text_is_a_warning(self, settings: Any) -> None:
        found = {}
        for settings.WORKSPACE_DOMAIN in ("ws.example", ""):
            told = said(addresses.addresses, Said(), exposure=Cluster.Exposure.LOAD_BALANCER)
            found[settings.WORKSPACE_DOMAIN] = [text for _level, text, *_ in told if "clear text" in text]
        assert [len(found[""]), len(found["ws.example"])] == [1, 0]

    def test_node_ports_need_a_domain_for_jupyter(self, settings: Any) -> None:
        for domain, level in (("ws.example", "ok"), ("", "warn")):
            settings.WORKSPACE_DOMAIN = domain
            assert levels(said(addresses.addresses, Said(), exposure=Cluster.Exposure.NODE_PORT)) == [level]
