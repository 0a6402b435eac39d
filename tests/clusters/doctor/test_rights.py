"""Tests that doctor names each right that Berth lacks."""

from __future__ import annotations

from clusters.doctor import rights
from clusters.kinds import ADDITIONS
from clusters.models import Cluster
from clusters.permissions import NEEDS, PARTS
from tests.clusters.doctor.told import Said, levels, said
from tests.clusters.stub import Stub, status


class TestRights:
    def test_all_granted_is_one_line(self) -> None:
        """Where Berth runs in the cluster, each part's account is asked about; elsewhere the one that is used."""
        inside = sum(len(need.verbs) for needs in PARTS.values() for need in needs)
        outside = sum(len(need.verbs) for need in NEEDS)
        for connection, count in (("in-cluster", inside), ("kubeconfig", outside)):
            (finding,) = said(rights.rights, Said(groups=tuple(ADDITIONS)), connection=connection)
            assert finding == ("ok", f"Berth has all {count} permissions that it needs.")

    def test_the_account_of_an_earlier_version_is_named_while_it_has_rights(self) -> None:
        api = Said(groups=tuple(ADDITIONS), has_earlier_account=True)
        assert levels(said(rights.rights, api)) == ["ok", "warn"]
        assert levels(said(rights.rights, api, connection="kubeconfig")) == [
            "ok"
        ]  # it may be the one in use there

    def test_what_is_not_installed_needs_no_right(self) -> None:
        denied = ("list ipaddresspools",)
        assert levels(said(rights.rights, Said(denied=denied))) == ["ok"]
        findings = said(rights.rights, Said(denied=denied, groups=("metallb.io",)))
        assert findings == [("fail", "Berth is not allowed to list ipaddresspools.")]

    def test_each_missing_one_is_named(self) -> None:
        findings = said(rights.rights, Said(denied=("patch services", "create services", "watch nodes")))
        assert findings == [
            ("fail", "Berth is not allowed to watch nodes."),
            ("fail", "Berth is not allowed to create, patch services."),
            ("fail", "Berth is not allowed to create, patch services."),
        ]

    def test_a_cluster_without_reviews_is_a_warning(self, stub: Stub) -> None:
        absent = status(404, "NotFound", "the server could not find the requested resource")
        stub.answers = [lambda request: request.json(200, {"groups": []}), absent]
        assert [finding.level for finding in rights.rights(stub.api, Cluster())] == ["warn"]
