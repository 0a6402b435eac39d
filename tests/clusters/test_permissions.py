"""Tests that doctor asks for exactly the rights that the manifests grant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from clusters.permissions import PARTS, SECRETS, SECRETS_ROLE
from tests.own_rights import needs, rules_of

RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"

Rights = dict[tuple[str, str], set[str]]


def granted(part: str) -> Rights:
    rights: Rights = {}
    for rule in rules_of(part):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


@pytest.mark.parametrize("part", PARTS)
def test_each_parts_role_grants_what_it_needs_and_nothing_else(part: str) -> None:
    assert granted(part) == {(need.group, need.resource): set(need.verbs) for need in PARTS[part]}


@pytest.mark.parametrize("part", [*PARTS, "collector", "retire"])
def test_each_right_is_one_that_a_request_of_the_suite_needs(part: str) -> None:
    """tests/deploy/used_rights.py records them anew; tests/clusters/test_own_rights.py says what fails without one."""
    rights = granted(part)
    if part in PARTS:  # bound for each tenant
        rights[SECRETS.group, SECRETS.resource] = set(SECRETS.verbs)
    given = {f"{verb} {group}/{resource}" for (group, resource), verbs in rights.items() for verb in verbs}
    if part == "watcher":
        given.discard("list /secrets")  # both parts share that role, and the worker lists them
    assert given == needs(part).keys()
    for test in needs(part).values():
        file, _, name = test.partition("::")
        text = (RBAC.parents[2] / file).read_text()
        assert not name or re.search(rf"def {re.escape(name.partition('[')[0])}\(", text), test


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
