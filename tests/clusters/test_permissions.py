"""Tests that doctor asks for exactly the rights that the manifests grant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from clusters.permissions import PARTS, SECRETS, SECRETS_ROLE

USED: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "used_rights.json").read_text())
# Rights that the recorded run did not show: a test of the code that needs them.
SHOWN_ELSEWHERE = {
    "watcher": {
        "bind rbac.authorization.k8s.io/clusterroles": "tests/clusters/isolation/test_granting.py",
        "create /persistentvolumes": "tests/workspaces/launch/test_drivers.py",
        "get /persistentvolumes": "tests/storage/test_adoption.py",
        "delete apps/statefulsets": "tests/workspaces/runs/test_odd_clusters.py",
    },
    "worker": {
        "delete apps/statefulsets": "tests/monitoring/drift/test_compare.py",
        "delete /services": "tests/monitoring/drift/test_compare.py",
        "delete networking.k8s.io/networkpolicies": "tests/monitoring/drift/test_of_jobs.py",
        "create /resourcequotas": "tests/monitoring/drift/test_hands.py",
        "patch /resourcequotas": "tests/monitoring/drift/test_hands.py",
        "list kueue.x-k8s.io/clusterqueues": "tests/quotas/pools/test_doctor.py",
        "list kueue.x-k8s.io/resourceflavors": "tests/quotas/pools/test_doctor.py",
        "create authorization.k8s.io/subjectaccessreviews": "tests/clusters/doctor/test_rights.py",
    },
}
RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"

Rights = dict[tuple[str, str], set[str]]


def granted(part: str) -> Rights:
    rights: Rights = {}
    for body in yaml.safe_load_all(RBAC.read_text()):
        is_its_role = body["kind"] == "ClusterRole" and body["metadata"]["name"] == f"berth-{part}"
        for rule in body["rules"] if is_its_role else []:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


@pytest.mark.parametrize("part", PARTS)
def test_each_parts_role_grants_what_it_needs_and_nothing_else(part: str) -> None:
    assert granted(part) == {(need.group, need.resource): set(need.verbs) for need in PARTS[part]}


@pytest.mark.parametrize("part", PARTS)
def test_each_right_is_one_that_a_request_of_the_suite_needs(part: str) -> None:
    """The value names a test in which the request is made. tests/deploy/used_rights.py records them anew."""
    rights = granted(part) | {(SECRETS.group, SECRETS.resource): set(SECRETS.verbs)}
    given = {f"{verb} {group}/{resource}" for (group, resource), verbs in rights.items() for verb in verbs}
    if part == "watcher":
        given.discard("list /secrets")  # both parts share that role, and the worker lists them
    assert given == USED[part].keys() | SHOWN_ELSEWHERE[part].keys()
    for test in (USED[part] | SHOWN_ELSEWHERE[part]).values():
        assert (RBAC.parents[2] / test.partition("::")[0]).exists(), test


def test_secrets_are_granted_by_the_role_that_is_bound_for_each_tenant_alone() -> None:
    bodies = list(yaml.safe_load_all(RBAC.read_text()))
    with_secrets = {
        body["metadata"]["name"]: set(rule["verbs"])
        for body in bodies
        if body["kind"] == "ClusterRole"
        for rule in body["rules"]
        if "secrets" in rule["resources"]
    }
    assert with_secrets == {SECRETS_ROLE: set(SECRETS.verbs)} and "watch" not in SECRETS.verbs
    assert SECRETS_ROLE not in [one["roleRef"]["name"] for one in bodies if "roleRef" in one]
    [bind] = [rule for body in bodies for rule in body.get("rules", []) if "bind" in rule["verbs"]]
    assert bind["resourceNames"] == [SECRETS_ROLE] and bind["resources"] == ["clusterroles"]


def test_no_account_may_run_commands_in_pods_or_speak_to_kubelets() -> None:
    """Not Berth's, its agents' or its collector's: what runs inside a workspace is asked over the network."""
    asked = {
        resource
        for path in RBAC.parent.glob("*.yaml")
        for body in yaml.safe_load_all(path.read_text())
        if body and body["kind"] in ("Role", "ClusterRole")
        for rule in body["rules"]
        for resource in rule.get("resources", [])
    }
    assert asked and not asked & {"pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "nodes/proxy"}


def test_nothing_is_a_wildcard() -> None:
    for part in PARTS:
        rights = granted(part)
        assert not [key for key, verbs in rights.items() if "*" in {*key, *verbs}]
