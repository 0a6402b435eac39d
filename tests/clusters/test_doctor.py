"""What doctor says of a cluster, good or bad, and that it changes nothing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from clusters import doctor
from clusters.api import Api
from clusters.doctor import Finding, Level, examine
from clusters.models import Cluster
from clusters.permissions import NEEDS
from tests.clusters.stub import serving, status


class Said:
    """An API whose answers are given: lists by kind, groups, and which rights there are."""

    def __init__(
        self, *, denied: tuple[str, ...] = (), groups: tuple[str, ...] = (), **lists: list[dict[str, Any]]
    ) -> None:
        self.lists = lists
        self.denied = denied
        self.served = set(groups)

    def list(self, kind: str) -> list[dict[str, Any]]:
        return self.lists.get(kind, [])

    def groups(self) -> set[str]:
        return self.served

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["spec"]["resourceAttributes"]
        return {"status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.denied}}


def storage_class(
    name: str, *, late: bool = True, grows: bool = True, default: bool = False
) -> dict[str, Any]:
    annotations = {doctor.DEFAULT_CLASS: "true"} if default else {}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "volumeBindingMode": "WaitForFirstConsumer" if late else "Immediate",
        "allowVolumeExpansion": grows,
    }


def node(ready: str = "True", provider: str = "", **allocatable: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "n",
            "labels": {"nvidia.com/gpu.product": "T4", "nvidia.com/gpu.memory": "15360"},
        },
        "spec": {"providerID": provider},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
    }


def said(check: Any, api: Said, **cluster: Any) -> list[tuple[str, str]]:
    return [(finding.level.value, finding.message) for finding in check(api, Cluster(slug="lab", **cluster))]


def levels(findings: list[tuple[str, str]]) -> list[str]:
    return [level for level, __ in findings]


def test_a_cluster_that_is_away_is_one_finding(tmp_path: Path) -> None:
    cluster = Cluster(
        slug="lab", connection=Cluster.Connection.KUBECONFIG, kubeconfig_path=str(tmp_path / "absent")
    )
    (finding,) = examine(cluster)
    assert (finding.level, bool(finding.hint)) == (Level.FAIL, True)


@pytest.mark.django_db
def test_a_real_cluster_has_nothing_missing(reached_cluster: Cluster) -> None:
    findings = examine(reached_cluster)
    assert [finding for finding in findings if finding.level == Level.FAIL] == []
    assert findings[0].message.startswith("Kubernetes v1.")


@pytest.mark.parametrize(
    ("version", "level"),
    [("v1.30.0", "ok"), ("v1.36.2+k3s1", "ok"), ("v1.29.9", "warn"), ("v1.37.0", "warn"), ("", "warn")],
)
def test_versions_that_were_tried_are_well(version: str, level: str) -> None:
    assert doctor.about_version(version).level.value == level


class TestRights:
    def test_all_granted_is_one_line(self) -> None:
        (finding,) = said(doctor.rights, Said())
        assert finding == (
            "ok",
            f"Berth has all {sum(len(need.verbs) for need in NEEDS)} rights that it needs.",
        )

    def test_each_missing_one_is_named(self) -> None:
        findings = said(doctor.rights, Said(denied=("patch secrets", "create secrets", "watch nodes")))
        assert findings == [
            ("fail", "Berth may not watch nodes."),
            ("fail", "Berth may not create, patch secrets."),
        ]

    def test_a_cluster_without_reviews_is_a_warning(self) -> None:
        with serving() as (stub, api):
            stub.answers = [status(404, "NotFound", "the server could not find the requested resource")]
            assert levels([(f.level.value, f.message) for f in doctor.rights(api, Cluster())]) == ["warn"]


class TestStorage:
    def test_the_default_class_serves_where_none_is_named(self) -> None:
        assert levels(said(doctor.storage, Said(StorageClass=[storage_class("a", default=True)]))) == [
            "ok",
            "ok",
        ]

    def test_no_class_and_no_default_is_missing(self) -> None:
        assert levels(said(doctor.storage, Said(StorageClass=[storage_class("a")]))) == ["fail", "fail"]

    def test_a_class_that_does_not_exist_is_missing(self) -> None:
        findings = said(doctor.storage, Said(StorageClass=[storage_class("a", default=True)]), disk_class="b")
        assert findings[1] == ("fail", "The storage class b for local disks does not exist.")

    def test_a_disk_class_that_binds_at_once_or_cannot_grow_is_a_warning(self) -> None:
        api = Said(StorageClass=[storage_class("a", late=False, grows=False, default=True)])
        assert levels(said(doctor.storage, api)) == ["ok", "warn", "ok", "warn", "warn"]


class TestNodes:
    def test_no_node_that_is_ready_is_missing(self) -> None:
        assert levels(said(doctor.nodes, Said(Node=[node("False")]))) == ["fail"]

    def test_gpus_are_counted_by_kind(self) -> None:
        api = Said(Node=[node(**{"nvidia.com/gpu": "4"}), node(**{"nvidia.com/gpu": "4", "cpu": "8"})])
        assert said(doctor.nodes, api)[1] == ("ok", "GPUs: 8 × nvidia.com/gpu (T4).")

    def test_no_gpu_is_a_warning(self) -> None:
        assert levels(said(doctor.nodes, Said(Node=[node(cpu="8")]))) == ["ok", "warn"]


class TestAddresses:
    @pytest.mark.parametrize(
        ("api", "level"),
        [
            (Said(), "warn"),
            (Said(groups=("metallb.io",)), "ok"),
            (Said(Node=[node(provider="aws:///x")]), "ok"),
            (Said(Service=[{"spec": {"type": "LoadBalancer"}}]), "warn"),
            (
                Said(
                    Service=[
                        {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{}]}}}
                    ]
                ),
                "ok",
            ),
        ],
        ids=["nobody", "MetalLB", "a cloud", "one that waits", "one that has its address"],
    )
    def test_who_gives_addresses_is_recognised(self, api: Said, level: str) -> None:
        assert levels(said(doctor.addresses, api)) == [level]

    def test_the_portal_needs_a_domain(self, settings: Any) -> None:
        for domain, level in (("ws.example", "ok"), ("", "fail")):
            settings.WORKSPACE_DOMAIN = domain
            assert levels(said(doctor.addresses, Said(), exposure=Cluster.Exposure.PORTAL)) == [level]

    def test_node_ports_need_nobody_but_leave_jupyter_in_clear_text_without_a_domain(
        self, settings: Any
    ) -> None:
        for domain, level in (("ws.example", "ok"), ("", "warn")):
            settings.WORKSPACE_DOMAIN = domain
            assert levels(said(doctor.addresses, Said(), exposure=Cluster.Exposure.NODE_PORT)) == [level]


class TestIsolation:
    CIDRS = ("pod_cidrs", "service_cidrs", "api_cidrs")

    @given(filled=st.sets(st.sampled_from(CIDRS)))
    def test_it_is_refused_while_any_network_is_unknown(self, filled: set[str]) -> None:
        cluster = Cluster(**{name: ["10.0.0.0/8"] for name in filled})
        assert (doctor.isolation(cluster).level == Level.OK) == (filled == set(self.CIDRS))

    def test_networks_are_checked_when_they_are_entered(self) -> None:
        with pytest.raises(ValidationError) as raised:
            Cluster(
                pod_cidrs=["10.0.0.0/8", "ten"], denied_cidrs=["10.0.0.1/8"], connection="kubeconfig"
            ).clean()
        assert set(raised.value.message_dict) == {"pod_cidrs", "denied_cidrs", "kubeconfig_path"}

    @pytest.mark.parametrize(
        ("address", "fits"),
        [
            ("", True),
            ("http://proxy.lab:3128", True),
            ("https://[fd00::1]:3128/", True),
            ("proxy.lab:3128", False),
            ("socks5://proxy.lab", False),
            ("http://proxy.lab:port", False),
            ("http://proxy lab", False),
            ("http://lab:hush@proxy.lab", False),
        ],
    )
    def test_a_proxy_is_an_address_without_a_password(self, address: str, fits: bool) -> None:
        try:
            Cluster(http_proxy=address, connection=Cluster.Connection.IN_CLUSTER).clean()
        except ValidationError as refused:
            assert not fits
            assert "hush" not in str(refused.message_dict)
        else:
            assert fits


@pytest.mark.django_db
class TestCommand:
    def test_it_prints_lines_and_exits_with_1_when_something_is_missing(self) -> None:
        Cluster.objects.create(slug="lab", name="Lab", connection="kubeconfig", kubeconfig_path="/absent")
        out = io.StringIO()
        with pytest.raises(SystemExit) as ended:
            call_command("doctor", stdout=out)
        assert ended.value.code == 1
        assert out.getvalue().startswith("lab:\n  fail  The kubeconfig file /absent is not there.")

    def test_warnings_alone_are_no_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Cluster.objects.create(slug="lab", name="Lab")
        warning = Finding(Level.WARN, "Hm.", "Look.")
        monkeypatch.setattr("clusters.management.commands.doctor.examine", lambda cluster: [warning])
        out = io.StringIO()
        call_command("doctor", "--cluster", "lab", stdout=out)
        assert out.getvalue() == "lab:\n  warn  Hm.\n        Look.\n"

    def test_a_cluster_that_is_not_there_is_told(self) -> None:
        with pytest.raises(CommandError, match="no such cluster"):
            call_command("doctor", "--cluster", "absent")


@pytest.mark.django_db
def test_the_examination_changes_nothing(api: Api, reached_cluster: Cluster) -> None:
    def everything() -> list[str]:
        kinds = ("Pod", "Service", "ConfigMap", "Namespace", "PersistentVolumeClaim")
        return sorted(body["metadata"]["uid"] for kind in kinds for body in api.list(kind))

    before = everything()
    examine(reached_cluster)
    assert everything() == before
