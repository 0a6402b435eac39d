"""Berth's own account on a cluster, with the rights of all parts in deploy/kubernetes/rbac.yaml and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from clusters.permissions import SECRETS_ROLE
from devcluster.testing.kube import Kube

MANIFEST = Path(__file__).parents[1] / "deploy" / "kubernetes" / "rbac.yaml"
RECORDED = Path(__file__).parent / "clusters" / "used_rights.json"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
# Rights that the recorded run did not show: a test of the code that needs them.
SHOWN_ELSEWHERE: dict[str, dict[str, str]] = {
    "collector": {
        "list /pods": "tests/workloads/logs/test_collector.py",
        "watch /pods": "tests/workloads/logs/test_collector.py",
        "get /pods/log": "tests/workloads/logs/test_collector.py",
    },
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


class OwnRights:
    """Account with a unique name, so that a Berth installed on the cluster is not changed."""

    def __init__(self, kubeconfig: str | Path, folder: Path) -> None:
        self.name = f"berth-{uuid4().hex[:8]}"
        self._admin = Kube(Path(kubeconfig))
        space, named = self._admin.namespace(self.name), {"metadata": {"name": self.name}}
        self._admin.create(f"{space}/serviceaccounts", named)
        roles = [body for body in yaml.safe_load_all(MANIFEST.read_text()) if body["kind"] == "ClusterRole"]
        self.rules: list[dict[str, Any]] = []
        for role in roles:
            if role["metadata"]["name"] == SECRETS_ROLE:  # Berth binds it for each tenant
                self._admin.apply(f"{RBAC}/clusterroles/{SECRETS_ROLE}", role)
            else:
                self.rules += role["rules"]
        self._admin.create(f"{RBAC}/clusterroles", named | {"rules": self.rules})
        self._admin.create(
            f"{RBAC}/clusterrolebindings",
            named
            | {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": self.name,
                },
                "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.name}],
            },
        )
        token = self._admin.create(f"{space}/serviceaccounts/{self.name}/token", {"spec": {}})["status"][
            "token"
        ]
        config = yaml.safe_load(Path(kubeconfig).read_text())
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        self.kubeconfig = folder / f"{self.name}.kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def change(self, rules: list[dict[str, Any]]) -> None:
        """Replace the rules of the account's ClusterRole."""
        self._admin.call("PATCH", f"{RBAC}/clusterroles/{self.name}", {"rules": rules}, "merge")

    def clear_away(self) -> None:
        for path in (f"{RBAC}/clusterrolebindings", f"{RBAC}/clusterroles", "/api/v1/namespaces"):
            self._admin.call("DELETE", f"{path}/{self.name}")


def rules_of(part: str) -> list[dict[str, Any]]:
    """Return the rules of a part's ClusterRole in deploy/kubernetes."""
    bodies = (
        body for path in MANIFEST.parent.glob("*.yaml") for body in yaml.safe_load_all(path.read_text())
    )
    roles = [body for body in bodies if body["kind"] == "ClusterRole"]
    return [rule for role in roles if role["metadata"]["name"] == f"berth-{part}" for rule in role["rules"]]


def needs(part: str) -> dict[str, str]:
    """Return the rights that the part's requests need, each with a test that fails without it."""
    recorded: dict[str, dict[str, str]] = json.loads(RECORDED.read_text())
    return recorded.get(part, {}) | SHOWN_ELSEWHERE.get(part, {})


def without(rules: list[dict[str, Any]], group: str, resource: str, verb: str) -> list[dict[str, Any]]:
    """Return the rules without one verb on one resource."""

    def left(rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if resource not in rule["resources"] or group not in rule["apiGroups"]:
            yield rule
            return
        others = [other for other in rule["resources"] if other != resource]
        verbs = [known for known in rule["verbs"] if known != verb]
        yield from [rule | {"resources": others}] if others else []
        yield from [rule | {"resources": [resource], "verbs": verbs}] if verbs else []

    return [part for rule in rules for part in left(rule)]


def bind(cluster: Any) -> None:
    """Let tenants' namespaces get Secrets, as a watcher of the cluster does by `clusters/watch/granting.py`."""
    from clusters.connections import connect
    from clusters.isolation import granting

    cluster.secret_accounts = granting.accounts(cluster, connect(cluster))
